"""The audit of executions: consistency checks of a live store.

It reads page by page, so that it blocks no other work.
"""

from collections.abc import Mapping
from uuid import UUID

from msgspec import Struct

from horae.engine.base.hints import Hint, Hints
from horae.env import Env
from horae.store.contract import Store
from horae.store.executions.reads import audit
from horae.store.triggers.dependencies import audit_joins
from horae.store.workflows import audit as workflow_audit


class ExecutionsAudit(Struct, frozen=True, kw_only=True, rename="camel"):
    """The contents of the store, its inconsistencies (the first ones in detail), and the effects of a repair."""

    shelves: Mapping[str, audit.ShelfSize]
    findings_by_kind: Mapping[str, int]
    findings: list[audit.Finding]
    repaired: audit.RepairResult | None = None


class ExecutionAuditor:
    """Checks that each execution is in one slice on one shelf, with an owner, and that its dependents were started."""

    def __init__(self, env: Env, store: Store, hints: Hints) -> None:
        self._env, self._store, self._hints = env, store, hints

    async def executions(self, *, repair: bool = False) -> ExecutionsAudit:
        """Check every execution.

        Each page is read at one instant, because executions move between shelves meanwhile.

        After a repair everything is checked again: the report then shows what the repair left.
        """
        report = await self._check_all()
        repaired = None
        if repair and report.findings:
            now = self._env.now()
            repaired = await self._store.write(
                lambda: audit.repair(report.findings, now, self._env.rng, self._env.new_id)
            )
            repaired.joins = await self._store.write(
                lambda: audit_joins.repair_joins(report.findings, self._env.new_id, now)
            )
            self._hints.send(Hint(wake_at=now))
            report = await self._check_all()
        return ExecutionsAudit(
            shelves=report.shelves, findings_by_kind=report.kinds, findings=report.findings, repaired=repaired
        )

    async def _check_all(self) -> audit.AuditReport:
        report = audit.AuditReport()
        after: UUID | None = audit.FIRST
        while after is not None:
            page, after = await self._page(after)
            report.add(page)
        now = self._env.now()
        for finding in await self._store.read_at_once(lambda: audit_joins.audit_joins(now)):
            report.find(finding)
        for finding in await self._store.read_at_once(workflow_audit.audit_workflows):
            report.find(finding)
        return report

    async def _page(self, after: UUID) -> tuple[audit.AuditReport, UUID | None]:
        now = self._env.now()
        return await self._store.read_at_once(lambda: audit.audit_page(after, now))
