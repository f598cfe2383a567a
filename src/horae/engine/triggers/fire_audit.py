"""The audit of fires: the nominal fires of a job's triggers are computed anew and compared with the ledger."""

from collections.abc import Mapping
from typing import Annotated
from uuid import UUID

from msgspec import Meta, field

from horae.engine.base.refs import find_job
from horae.env import Env
from horae.errors import BadInput
from horae.model.base.instant import format_instant, parse_instant
from horae.model.base.view import Time, View
from horae.model.triggers.cron.zone import tzdata_version
from horae.store.contract import Store
from horae.store.triggers import audit_fires as moves


class FireFindingView(View, frozen=True, kw_only=True):
    """An inconsistency in the ledger.

    Its kind is `uncovered` (no row covers some fires), `duplicate` (two rows cover them), `unexpected` (a row has no
    fire) or `undecidable` (the fires of a trigger cannot be computed).
    """

    kind: moves.Kind
    trigger: str
    trigger_id: UUID
    first: Time
    last: Time
    fires: int
    instants: Annotated[list[Time], Meta(description="The first of these fires; all findings list at most 100.")]
    detail: str | None = None


class FiresAudit(View, frozen=True, kw_only=True):
    """The audit of a job's nominal fires in [from, to). Without findings each fire is covered exactly once."""

    job_id: UUID
    job_name: str
    since: Time = field(name="from")
    until: Time = field(name="to")
    known_from: (
        Annotated[Time, Meta(description="The ledger is complete from this instant on; earlier fires are not checked.")]
        | None
    )
    fires: Annotated[int, Meta(description="Nominal fires that rows of the ledger cover.")]
    rows: int
    versions: Annotated[int, Meta(description="Versions of triggers that were checked.")]
    dispositions: Mapping[str, int]
    undecided: Annotated[
        int, Meta(description="Due fires that are not decided yet, because their trigger is paused or late.")
    ]
    findings: list[FireFindingView]
    unlisted_fires: Annotated[int, Meta(description="Fires of findings whose instants are not listed.")]
    tzdata: Annotated[str, Meta(description="The version of the time zone rules by which the fires were computed.")]
    notes: list[str]


class FireAuditor:
    """Checks that every nominal fire is covered by exactly one row of the ledger."""

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store

    async def job(self, namespace: int, ref: str, since: str, until: str, trigger: str | None = None) -> FiresAudit:
        """Audit a job's fires in [since, until), both RFC 3339. A deleted job is found by its id only.

        The cost grows with the number of ledger rows in this time.
        """
        first, end = parse_instant(since, field="from"), parse_instant(until, field="to")
        if end <= first:
            detail = f"`to` ({format_instant(end)}) is not after `from` ({format_instant(first)})."
            raise BadInput(detail, "`from` is the first instant that counts, `to` the first that does not.", field="to")
        job = (await find_job(self._store, namespace, ref)).job
        now = self._env.now()
        report = await self._store.read_at_once(lambda: moves.audit_job(job.id, trigger, first, end, now))
        notes = []
        if report.known_from > first:
            notes.append(
                f"The ledger is complete from {format_instant(report.known_from)} on; earlier fires are not checked."
            )
        for version, changed_at in report.zones:
            notes.append(
                f"Until {format_instant(changed_at)} fires were computed by tzdata {version}: where its rules differ"
                " from the present ones, fires that were decided then may appear as unexpected and uncovered."
            )
        if not report.triggers and not report.findings:
            notes.append("The job has no trigger that fires at instants.")
        if report.undecided:
            notes.append("Some fires are not decided yet: their trigger is paused, or they are just due.")
        return FiresAudit(
            job_id=job.id, job_name=job.name, since=format_instant(first), until=format_instant(end),
            known_from=format_instant(report.known_from) if report.known_from else None, fires=report.fires,
            rows=report.rows, versions=report.triggers, dispositions=dict(report.dispositions),
            undecided=report.undecided, findings=[_shown(finding) for finding in report.findings],
            unlisted_fires=report.unnamed, tzdata=tzdata_version(), notes=notes,
        )  # fmt: skip


def _shown(finding: moves.FireFinding) -> FireFindingView:
    return FireFindingView(
        kind=finding.kind, trigger=finding.name, trigger_id=finding.trigger, first=format_instant(finding.first),
        last=format_instant(finding.last), fires=finding.fires,
        instants=[format_instant(at) for at in finding.instants], detail=finding.detail or None,
    )  # fmt: skip
