"""Backfills: fires of the past that are to run."""

from typing import Annotated, Literal

from msgspec import Meta, field

from horae.errors import Conflict, NotFound
from horae.features.backfills.engine.backfills import Asked
from horae.features.backfills.model.values import DEFAULT_CONCURRENT, MOST_CONCURRENT, BackfillState
from horae.features.backfills.model.view import BackfillPlan, BackfillRunView, BackfillView
from horae.features.backfills.part import BackfillsPart
from horae.model.base.view import Page
from horae.model.fleet.protocol import ABSENT
from horae.server.access import OPERATE, VIEW
from horae.server.call import Call
from horae.server.reading.bodies import Body, Params, Priority, When
from horae.server.reading.queries import JobRef, Paged
from horae.server.reply import Reply, ok
from horae.server.route import API, CHANGES, REQUEST, get, post
from horae.server.scopes import closed


class BackfillBody(Body, frozen=True, kw_only=True):
    """Which fires are to run, and how."""

    job: Annotated[str, Meta(min_length=1, max_length=128, description="The job's name or id.")]
    since: Annotated[When, Meta(description="The first instant that counts, RFC 3339.")] = field(name="from")
    until: Annotated[When, Meta(description="The first instant that does not; not after now.")] = field(name="to")
    trigger: Annotated[str, Meta(max_length=128, description="Only this trigger of the job, by name.")] | None = None
    max_concurrent: Annotated[
        int, Meta(ge=1, le=MOST_CONCURRENT, description="Executions that may be live at a time.")
    ] = DEFAULT_CONCURRENT
    order: Annotated[Literal["oldest", "newest"], Meta(description="Which fires go first.")] = "oldest"
    force: Annotated[bool, Meta(description="Run what ran before, too.")] = False
    priority: Annotated[Priority, Meta(description="Instead of the job's own.")] | None = None
    params: Annotated[Params, Meta(description="Over the params of the job and the trigger.")] = ABSENT
    dry_run: Annotated[bool, Meta(description="Only say what would run.")] = False


class BackfillList(Paged, frozen=True, kw_only=True):
    """Which backfills."""

    job: JobRef | None = None
    state: Annotated[BackfillState, Meta(description="Only those in this state.")] | None = None


class CancelBackfill(Body, frozen=True, kw_only=True):
    """What becomes of the executions that a cancelled backfill started."""

    executions: Annotated[
        Literal["finish", "cancel"], Meta(description="Let them finish, or cancel those that have not ended.")
    ] = "finish"


@post(
    f"{API}/backfills", "backfills.create", {201: BackfillView, 200: BackfillPlan},
    access=OPERATE, scope=closed, audit=REQUEST, status=201, refuses=(NotFound, Conflict),
)  # fmt: skip
async def create(call: Call, body: BackfillBody) -> Reply:
    """Run what did not run of a job's fires in [from, to); with `dryRun`, say what that would be (200)."""
    asked = Asked(
        job=body.job, since=body.since, until=body.until, trigger=body.trigger, max_concurrent=body.max_concurrent,
        newest_first=body.order == "newest", force=body.force, priority=body.priority,
        params=None if body.params == ABSENT else bytes(body.params),
    )  # fmt: skip
    if body.dry_run:
        return ok(await call.node.part(BackfillsPart).backfills.plan(call.namespace, asked))
    made = await call.node.part(BackfillsPart).backfills.create(call.namespace, asked, call.caller)
    return ok(made, 201, location=f"{API}/backfills/{made.backfill_id}")


@get(f"{API}/backfills", "backfills.list", Page[BackfillView], access=VIEW, scope=closed, refuses=(NotFound,))
async def list_backfills(call: Call, query: BackfillList) -> Reply:
    """List backfills, newest first."""
    page = await call.node.part(BackfillsPart).backfills.list(
        call.namespace, job=query.job, state=query.state, limit=query.limit, cursor=query.cursor
    )
    return ok(page)


@get(f"{API}/backfills/{{id}}", "backfills.get", BackfillView, access=VIEW, scope=closed, refuses=(NotFound,))
async def get_backfill(call: Call) -> Reply:
    """Read a backfill and how far it is."""
    return ok(await call.node.part(BackfillsPart).backfills.get(call.namespace, call.id()))


@get(
    f"{API}/backfills/{{id}}/runs", "backfills.runs", Page[BackfillRunView],
    access=VIEW, scope=closed, refuses=(NotFound,),
)  # fmt: skip
async def list_runs(call: Call, query: Paged) -> Reply:
    """List the fires that a backfill ran, with their executions, in the order of the fires."""
    page = await call.node.part(BackfillsPart).backfills.runs(
        call.namespace, call.id(), limit=query.limit, cursor=query.cursor
    )
    return ok(page)


@post(
    f"{API}/backfills/{{id}}/pause", "backfills.pause", BackfillView,
    access=OPERATE, scope=closed, audit=CHANGES, refuses=(NotFound, Conflict),
)  # fmt: skip
async def pause(call: Call) -> Reply:
    """Start nothing more until resumed; what was started goes on."""
    return ok(await call.node.part(BackfillsPart).backfills.pause(call.namespace, call.id()))


@post(
    f"{API}/backfills/{{id}}/resume", "backfills.resume", BackfillView,
    access=OPERATE, scope=closed, audit=CHANGES, refuses=(NotFound, Conflict),
)  # fmt: skip
async def resume(call: Call) -> Reply:
    """Go on where it stopped."""
    return ok(await call.node.part(BackfillsPart).backfills.resume(call.namespace, call.id()))


@post(
    f"{API}/backfills/{{id}}/cancel", "backfills.cancel", BackfillView,
    access=OPERATE, scope=closed, audit=CHANGES, refuses=(NotFound, Conflict),
)  # fmt: skip
async def cancel(call: Call, body: CancelBackfill) -> Reply:
    """Start nothing more, for good; what was started finishes, or is cancelled too."""
    view = await call.node.part(BackfillsPart).backfills.cancel(
        call.namespace, call.id(), executions=body.executions == "cancel"
    )
    return ok(view)
