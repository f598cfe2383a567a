"""Audit: proofs about a live store, and the log of who did what."""

from typing import Annotated

from msgspec import Meta, field

from horae.engine.executions.execution_audit import ExecutionsAudit
from horae.engine.triggers.fire_audit import FiresAudit
from horae.errors import BadInput, NotFound
from horae.features.audit_log.model.values import RowFilter
from horae.features.audit_log.model.view import AuditRow, AuditVerdict
from horae.features.audit_log.part import AuditLogPart
from horae.model.base.instant import EARLIEST, LATEST, parse_instant
from horae.model.base.view import Page
from horae.server.access import ADMIN, INSTALLATION, OVERSEE, VIEW
from horae.server.call import ApiCall
from horae.server.reading.bodies import When
from horae.server.reading.queries import Paged, Query, Text
from horae.server.reply import Response, ok
from horae.server.route import API, REQUEST, get, post
from horae.server.scopes import by_job_filter, closed

AFTER_ALL = 2**62


class FiresOf(Query, frozen=True, kw_only=True):
    """Whose fires, and which."""

    job: Annotated[Text, Meta(description="A job's name or id.")]
    since: Annotated[When, Meta(description="The first instant that counts, RFC 3339.")] = field(name="from")
    until: Annotated[When, Meta(description="The first instant that does not.")] = field(name="to")
    trigger: Annotated[Text, Meta(description="Only this trigger, by name.")] | None = None


class LogRows(Paged, frozen=True, kw_only=True):
    """Which rows of the audit log, newest first."""

    since: Annotated[When, Meta(description="Not before this.")] | None = field(default=None, name="from")
    until: Annotated[When, Meta(description="Before this.")] | None = field(default=None, name="to")
    actor: Annotated[Text, Meta(description="`key:` and a key's id, or `user:` and a name.")] | None = None
    target: (
        Annotated[Text, Meta(description="A thing and what it holds, `jobs/etl`, or all of a noun, `jobs`.")] | None
    ) = None
    action: Annotated[Text, Meta(description="An operation, `jobs.edit`, or all of a noun, `jobs.`.")] | None = None


@get(f"{API}/audit/log", "audit.log", Page[AuditRow], access=ADMIN, scope=closed)
async def read_log(call: ApiCall, query: LogRows) -> Response:
    """Tell who did what, newest first: what was changed by people and programs, before and after."""
    asked = RowFilter(
        before=_place(query.cursor), limit=query.limit + 1, namespace=call.namespace,
        since=EARLIEST if query.since is None else parse_instant(query.since, field="from"),
        until=LATEST if query.until is None else parse_instant(query.until, field="to"),
        actor=query.actor or "", target=query.target or "", action=query.action or "",
    )  # fmt: skip
    rows = await call.node.part(AuditLogPart).audit_log.rows(asked)
    more = len(rows) > query.limit
    items = rows[: query.limit]
    return ok(Page(items=items, next_cursor=str(items[-1].seq) if more else None))


def _place(cursor: str | None) -> int:
    if cursor is None:
        return AFTER_ALL
    if not cursor.isdecimal() or len(cursor) > 18:
        raise BadInput(f'"{cursor[:40]}" is not a cursor.', "Send `nextCursor` of the page before.", field="cursor")
    return int(cursor)


@get(f"{API}/audit/log/verdict", "audit.verify", AuditVerdict, access=OVERSEE, scope=closed)
async def verify_log(call: ApiCall) -> Response:
    """Check that no row of the audit log was edited, removed, put elsewhere or cut off; names the first that was."""
    return ok(await call.node.part(AuditLogPart).audit_log.verify())


@get(f"{API}/audit/executions", "audit.executions", ExecutionsAudit, access=OVERSEE, scope=closed)
async def check(call: ApiCall) -> Response:
    """Check that each execution lies on one shelf, in one slice, with an owner."""
    return ok(await call.node.work.audit.executions())


@post(f"{API}/audit/executions", "audit.repair", ExecutionsAudit, access=INSTALLATION, scope=closed, audit=REQUEST)
async def repair(call: ApiCall) -> Response:
    """Check, and queue again what has no owner."""
    return ok(await call.node.work.audit.executions(repair=True))


@get(f"{API}/audit/fires", "audit.fires", FiresAudit, access=VIEW, scope=by_job_filter, refuses=(NotFound,))
async def check_fires(call: ApiCall, query: FiresOf) -> Response:
    """Check that each nominal fire of a job's triggers is covered by exactly one row of the ledger."""
    audits = call.node.firing.fire_audits
    return ok(await audits.job(call.namespace, query.job, query.since, query.until, query.trigger))
