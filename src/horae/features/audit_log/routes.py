"""Audit: consistency checks of a live store, and the audit log."""

from typing import Annotated

from msgspec import Meta, field

from horae.engine.executions.execution_audit import ExecutionsAudit
from horae.engine.triggers.fire_audit import FiresAudit
from horae.errors import BadInput, NotFound
from horae.features.audit_log.model import AuditRow, AuditVerdict, RowFilter
from horae.features.audit_log.part import AuditLogPart
from horae.model.base.instant import EARLIEST, END_OF_RANGE, parse_instant
from horae.model.base.view import Page
from horae.server.access import ADMIN, INSTALLATION, OVERSEE, VIEW
from horae.server.call import ApiCall
from horae.server.reading.bodies import When
from horae.server.reading.queries import Paged, Query, Text
from horae.server.reply import Response, ok
from horae.server.route import API, REQUEST, get, post
from horae.server.scopes import by_job_filter, closed

AFTER_ALL = 2**62


class FireAuditQuery(Query, frozen=True, kw_only=True):
    """The job and time range of an audit of fires."""

    job: Annotated[Text, Meta(description="A job's name or id.")]
    since: Annotated[When, Meta(description="The start of the range, RFC 3339.")] = field(name="from")
    until: Annotated[When, Meta(description="The end of the range, exclusive.")] = field(name="to")
    trigger: Annotated[Text, Meta(description="Only this trigger, by name.")] | None = None


class AuditLogQuery(Paged, frozen=True, kw_only=True):
    """The selection of rows of the audit log, newest first."""

    since: Annotated[When, Meta(description="Only rows from this time on.")] | None = field(default=None, name="from")
    until: Annotated[When, Meta(description="Only rows before this time.")] | None = field(default=None, name="to")
    actor: (
        Annotated[Text, Meta(description="Only this actor: `key:` and a key's id, or `user:` and a name.")] | None
    ) = None
    target: (
        Annotated[
            Text,
            Meta(
                description="Only this object and its parts, such as `jobs/etl`, or all objects of a kind, such as"
                " `jobs`."
            ),
        ]
        | None
    ) = None
    action: (
        Annotated[
            Text,
            Meta(
                description="Only this operation, such as `jobs.edit`, or, with a dot at the end, all such operations:"
                " `jobs.`."
            ),
        ]
        | None
    ) = None


@get(f"{API}/audit/log", "audit.log", Page[AuditRow], access=ADMIN, scope=closed)
async def read_log(call: ApiCall, query: AuditLogQuery) -> Response:
    """List the actions of users and programs, newest first, with the changed fields before and after."""
    asked = RowFilter(
        before=_place(query.cursor), limit=query.limit + 1, namespace=call.namespace,
        since=EARLIEST if query.since is None else parse_instant(query.since, field="from"),
        until=END_OF_RANGE if query.until is None else parse_instant(query.until, field="to"),
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
        raise BadInput(f'"{cursor[:40]}" is not a cursor.', "Send `nextCursor` of the previous page.", field="cursor")
    return int(cursor)


@get(f"{API}/audit/log/verdict", "audit.verify", AuditVerdict, access=OVERSEE, scope=closed)
async def verify_log(call: ApiCall) -> Response:
    """Check that no row of the audit log was edited, removed, moved or cut off; name the first such row."""
    return ok(await call.node.part(AuditLogPart).audit_log.verify())


@get(f"{API}/audit/executions", "audit.executions", ExecutionsAudit, access=OVERSEE, scope=closed)
async def check(call: ApiCall) -> Response:
    """Check that each execution is on one shelf, in one slice, with an owner."""
    return ok(await call.node.work.audit.executions())


@post(f"{API}/audit/executions", "audit.repair", ExecutionsAudit, access=INSTALLATION, scope=closed, audit=REQUEST)
async def repair(call: ApiCall) -> Response:
    """Check executions, and queue those without an owner again."""
    return ok(await call.node.work.audit.executions(repair=True))


@get(f"{API}/audit/fires", "audit.fires", FiresAudit, access=VIEW, scope=by_job_filter, refuses=(NotFound,))
async def check_fires(call: ApiCall, query: FireAuditQuery) -> Response:
    """Check that each nominal fire of a job's triggers is covered by exactly one row of the ledger."""
    audits = call.node.firing.fire_audits
    return ok(await audits.job(call.namespace, query.job, query.since, query.until, query.trigger))
