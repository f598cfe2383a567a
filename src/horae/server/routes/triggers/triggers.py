"""Triggers of jobs. A `ref` is a job's name or id, and a `name` is the name of a trigger of that job."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, field

from horae.errors import BadInput, Conflict, NotFound, Stale
from horae.model.base.view import CompleteList, Page
from horae.model.fields.derived import body
from horae.model.triggers.decisions.preview import MOST
from horae.model.triggers.decisions.schedule import FIELDS, KIND_NAMES
from horae.model.triggers.fire_view import PreviewView, TriggerView
from horae.server.access import EDIT, OPERATE, VIEW
from horae.server.call import ApiCall
from horae.server.reading.bodies import RequestBody, When
from horae.server.reading.queries import JobRef, Paged, Text
from horae.server.reply import Response, ok
from horae.server.route import API, CHANGES, UNRECORDED, delete, get, patch, post
from horae.server.routes.definitions.jobs import IF_MATCH
from horae.server.scopes import by_job, by_job_filter, closed

if TYPE_CHECKING:  # created at run time from the table

    class TriggerPatch(RequestBody, frozen=True, kw_only=True): ...
else:
    TriggerPatch = body(
        FIELDS,
        "TriggerPatch",
        "Parts of a trigger: one kind's fields, rules and params; null resets a field to its default.",
        RequestBody,
    )


class TriggerBody(TriggerPatch, frozen=True, kw_only=True):
    """A trigger: the field that defines its kind, and options that differ from the defaults."""


class PreviewBody(TriggerPatch, frozen=True, kw_only=True):
    """A trigger to preview, or `job` and `trigger` of an existing trigger; the start, and the number of fires."""

    job: str | None = None
    trigger: str | None = None
    from_: Annotated[When, Meta(description="Only fires strictly after this time; now by default.")] | None = field(
        default=None, name="from"
    )
    count: Annotated[int, Meta(ge=1, le=MOST)] = 10


if TYPE_CHECKING:
    KindName = str
else:
    KindName = Literal[KIND_NAMES]


class TriggerList(Paged, frozen=True, kw_only=True):
    """The selection of triggers."""

    job: JobRef | None = None
    state: Annotated[Literal["active", "paused", "ended"], Meta(description="Only triggers in this state.")] | None = (
        None
    )
    kind: Annotated[KindName, Meta(description="Only triggers of this kind.")] | None = None
    search: Annotated[Text, Meta(description="A part of the trigger's or the job's name.")] | None = None


OF_JOB = f"{API}/jobs/{{ref}}/triggers"


@get(
    f"{API}/triggers", "triggers.list", Page[TriggerView],
    access=VIEW, scope=by_job_filter, refuses=(NotFound, BadInput),
)  # fmt: skip
async def list_triggers(call: ApiCall, query: TriggerList) -> Response:
    """List triggers across jobs, in the order of creation."""
    page = await call.node.definitions.triggers.list(
        call.namespace, job=query.job, state=query.state, kind=query.kind, search=query.search, limit=query.limit,
        cursor=query.cursor,
    )  # fmt: skip
    return ok(page)


@post(
    f"{API}/triggers/preview", "triggers.preview", PreviewView,
    access=VIEW, scope=closed, audit=UNRECORDED, takes=PreviewBody, refuses=(NotFound,),
)  # fmt: skip
async def preview(call: ApiCall, body: dict[str, Any]) -> Response:
    """List the next fires of a new trigger, or of an existing trigger; nothing is stored."""
    return ok(await call.node.definitions.triggers.preview(call.namespace, body))


@get(OF_JOB, "triggers.of-job", CompleteList[TriggerView], access=VIEW, scope=by_job, refuses=(NotFound,))
async def of_job(call: ApiCall) -> Response:
    """List a job's triggers, sorted by name."""
    return ok(CompleteList(items=await call.node.definitions.triggers.of_job(call.namespace, call.path("ref"))))


@post(
    OF_JOB, "triggers.add", TriggerView,
    access=EDIT, scope=by_job, audit=CHANGES, status=201, takes=TriggerBody, headers=IF_MATCH,
    refuses=(NotFound, Conflict, Stale),
)  # fmt: skip
async def add(call: ApiCall, body: dict[str, Any]) -> Response:
    """Add a trigger to a job, as a new version of the job."""
    made = await call.node.definitions.triggers.add(call.namespace, call.path("ref"), body, if_match=call.if_match())
    return ok(made, 201, location=f"{API}/jobs/{made.job_id}/triggers/{made.name}")


@get(f"{OF_JOB}/{{name}}", "triggers.get", TriggerView, access=VIEW, scope=by_job, refuses=(NotFound,))
async def get_trigger(call: ApiCall) -> Response:
    """Read one trigger; the trigger of a job's `schedule` is named "schedule"."""
    return ok(await call.node.definitions.triggers.get(call.namespace, call.path("ref"), call.path("name")))


@patch(
    f"{OF_JOB}/{{name}}", "triggers.edit", TriggerView,
    access=EDIT, scope=by_job, audit=CHANGES, takes=TriggerPatch, headers=IF_MATCH, refuses=(NotFound, Conflict, Stale),
)  # fmt: skip
async def edit(call: ApiCall, body: dict[str, Any]) -> Response:
    """Change parts of a trigger, as a new version of its job. It keeps its count of fires and its last execution."""
    ref, name = call.path("ref"), call.path("name")
    return ok(await call.node.definitions.triggers.edit(call.namespace, ref, name, body, if_match=call.if_match()))


@delete(
    f"{OF_JOB}/{{name}}", "triggers.remove", TriggerView,
    access=EDIT, scope=by_job, audit=CHANGES, status=200, headers=IF_MATCH, refuses=(NotFound, Stale),
)  # fmt: skip
async def remove(call: ApiCall) -> Response:
    """Remove a trigger: it stops firing at once on all servers."""
    ref, name = call.path("ref"), call.path("name")
    return ok(await call.node.definitions.triggers.remove(call.namespace, ref, name, if_match=call.if_match()))


@post(
    f"{OF_JOB}/{{name}}/pause", "triggers.pause", TriggerView,
    access=OPERATE, scope=by_job, audit=CHANGES, refuses=(NotFound, Conflict),
)  # fmt: skip
async def pause(call: ApiCall) -> Response:
    """Stop a trigger from firing until it is resumed."""
    return ok(await call.node.definitions.triggers.pause(call.namespace, call.path("ref"), call.path("name")))


@post(
    f"{OF_JOB}/{{name}}/resume", "triggers.resume", TriggerView,
    access=OPERATE, scope=by_job, audit=CHANGES, refuses=(NotFound, Conflict),
)  # fmt: skip
async def resume(call: ApiCall) -> Response:
    """Resume a paused trigger; the ledger has the fires that it skipped while it was paused."""
    return ok(await call.node.definitions.triggers.resume(call.namespace, call.path("ref"), call.path("name")))
