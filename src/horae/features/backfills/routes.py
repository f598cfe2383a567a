"""Backfills: running fires of the past."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from horae.errors import Conflict, NotFound
from horae.features.backfills.model.request import BACKFILL, read_request
from horae.features.backfills.model.values import BackfillState
from horae.features.backfills.model.view import BackfillPlan, BackfillRunView, BackfillView
from horae.features.backfills.part import BackfillsPart
from horae.model.base.view import Page
from horae.model.fields.derived import body
from horae.server.access import OPERATE, VIEW
from horae.server.call import ApiCall
from horae.server.reading.bodies import RequestBody
from horae.server.reading.queries import JobRef, Paged
from horae.server.reply import Response, ok
from horae.server.route import API, CHANGES, REQUEST, get, post
from horae.server.scopes import closed

BackfillBody = body(
    BACKFILL, "BackfillBody", "The fires to run, with options.", RequestBody, needed=("job", "from", "to")
)


class BackfillList(Paged, frozen=True, kw_only=True):
    """The query of a page of backfills."""

    job: JobRef | None = None
    state: Annotated[BackfillState, Meta(description="Only backfills in this state.")] | None = None


class CancelBackfill(RequestBody, frozen=True, kw_only=True):
    """The cancellation of a backfill."""

    executions: Annotated[
        Literal["finish", "cancel"], Meta(description="Let its executions finish, or cancel the unfinished ones.")
    ] = "finish"


@post(
    f"{API}/backfills", "backfills.create", {201: BackfillView, 200: BackfillPlan},
    access=OPERATE, scope=closed, audit=REQUEST, status=201, takes=BackfillBody,
    refuses=(NotFound, Conflict),
)  # fmt: skip
async def create(call: ApiCall, body: dict[str, Any]) -> Response:
    """Run the fires of a job in [from, to) that did not run; with `dryRun`, only return the plan (200)."""
    asked = read_request(body)
    if asked.dry_run:
        return ok(await call.node.part(BackfillsPart).backfills.plan(call.namespace, asked))
    made = await call.node.part(BackfillsPart).backfills.create(call.namespace, asked, call.caller)
    return ok(made, 201, location=f"{API}/backfills/{made.backfill_id}")


@get(f"{API}/backfills", "backfills.list", Page[BackfillView], access=VIEW, scope=closed, refuses=(NotFound,))
async def list_backfills(call: ApiCall, query: BackfillList) -> Response:
    """List backfills, newest first."""
    page = await call.node.part(BackfillsPart).backfills.list(
        call.namespace, job=query.job, state=query.state, limit=query.limit, cursor=query.cursor
    )
    return ok(page)


@get(f"{API}/backfills/{{id}}", "backfills.get", BackfillView, access=VIEW, scope=closed, refuses=(NotFound,))
async def get_backfill(call: ApiCall) -> Response:
    """Read a backfill with its progress."""
    return ok(await call.node.part(BackfillsPart).backfills.get(call.namespace, call.id()))


@get(
    f"{API}/backfills/{{id}}/runs", "backfills.runs", Page[BackfillRunView],
    access=VIEW, scope=closed, refuses=(NotFound,),
)  # fmt: skip
async def list_runs(call: ApiCall, query: Paged) -> Response:
    """List the fires that a backfill ran, with their executions, in the order of the fires."""
    page = await call.node.part(BackfillsPart).backfills.runs(
        call.namespace, call.id(), limit=query.limit, cursor=query.cursor
    )
    return ok(page)


@post(
    f"{API}/backfills/{{id}}/pause", "backfills.pause", BackfillView,
    access=OPERATE, scope=closed, audit=CHANGES, refuses=(NotFound, Conflict),
)  # fmt: skip
async def pause(call: ApiCall) -> Response:
    """Pause a backfill until it is resumed; running executions continue."""
    return ok(await call.node.part(BackfillsPart).backfills.pause(call.namespace, call.id()))


@post(
    f"{API}/backfills/{{id}}/resume", "backfills.resume", BackfillView,
    access=OPERATE, scope=closed, audit=CHANGES, refuses=(NotFound, Conflict),
)  # fmt: skip
async def resume(call: ApiCall) -> Response:
    """Resume a paused backfill."""
    return ok(await call.node.part(BackfillsPart).backfills.resume(call.namespace, call.id()))


@post(
    f"{API}/backfills/{{id}}/cancel", "backfills.cancel", BackfillView,
    access=OPERATE, scope=closed, audit=CHANGES, refuses=(NotFound, Conflict),
)  # fmt: skip
async def cancel(call: ApiCall, body: CancelBackfill) -> Response:
    """Cancel a backfill for good; its running executions finish, or are cancelled, too."""
    view = await call.node.part(BackfillsPart).backfills.cancel(
        call.namespace, call.id(), executions=body.executions == "cancel"
    )
    return ok(view)
