"""Jobs: named, versioned definitions of work with a schedule and options. A `ref` is a job's name or id."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from horae.engine.base.execution_sealing import page_without_sealed
from horae.engine.parts.optional import JobStatisticsPart
from horae.errors import BadInput, Conflict, KeyReused, NotFound, OverQuota, Stale
from horae.model.admission.held_key_view import HeldKeyView
from horae.model.base.view import Page, View
from horae.model.definitions.job import JOB
from horae.model.definitions.job_view import JobPlanView, JobView
from horae.model.definitions.listed_job_view import ListedJobView
from horae.model.executions.execution_view import ExecutionView
from horae.model.fields.derived import body
from horae.model.fields.kinds import SpanText
from horae.model.triggers.dependency_view import DependenciesView
from horae.model.workflows.decisions.naming import owner_of
from horae.model.workflows.decisions.values import STEPS
from horae.model.workflows.reading.steps import STEP
from horae.model.workflows.reading.workflow import WORKFLOW
from horae.server.access import EDIT, OPERATE, VIEW
from horae.server.call import ApiCall
from horae.server.idempotency import submission_key
from horae.server.reading.bodies import RequestBody
from horae.server.reading.queries import DryRun, Paged, Query, QueueName, Text
from horae.server.reply import Response, ok
from horae.server.route import API, CHANGES, REQUEST, UNRECORDED, delete, get, patch, post, put
from horae.server.routes.executions.execution_queries import JobExecutions
from horae.server.routes.executions.submission import (
    SubmissionOptions,
    TriggerReceipt,
    is_old,
    single_receipt,
    submit_of,
    with_result,
    with_warning,
)
from horae.server.scopes import by_definition, by_job, by_leaving_out, closed

StepBody = body(
    STEP,
    "StepBody",
    "A step: its name, one field with its task, and options. With `job`, the options override those of that job.",
    RequestBody,
    needed=("name",),
)

IF_MATCH = {"If-Match": "The ETag of the job that was read: the edit is refused if the job has changed since."}
_STEPS: Any = list[StepBody]  # type: ignore[valid-type] # created at run time


class _Limited(RequestBody, frozen=True, kw_only=True):
    timeout: Annotated[SpanText | None, Meta(description="The same as the job's `timeout`.")] = None


WorkflowBody = body(
    WORKFLOW,
    "WorkflowBody",
    "A workflow: each of its steps is an execution of its own.",
    _Limited,
    needed=("steps",),
    types={row.name: _STEPS for row in WORKFLOW.rows if row.kind is STEPS},
)
_TYPES = {"workflow": _STEPS | WorkflowBody}

JobPatch = body(
    JOB, "JobPatch", "Parts of a job's definition; null resets a field to its default.", RequestBody, types=_TYPES
)
JobBody = body(
    JOB,
    "JobBody",
    "A job: its name, one of command, python, http and workflow, and options that differ from the defaults.",
    RequestBody,
    needed=("name",),
    types=_TYPES,
)


class ForgottenResults(View, frozen=True, kw_only=True):
    """The number of deleted cached results."""

    forgotten: int


class JobList(Paged, frozen=True, kw_only=True):
    """The selection of jobs to list."""

    search: Annotated[Text, Meta(description="A part of the name, the description or a tag.")] | None = None
    prefix: Annotated[Text, Meta(description="The start of the name.")] | None = None
    state: Annotated[Literal["active", "paused", "deleted"], Meta(description="Only jobs in this state.")] | None = None
    tag: Annotated[Text, Meta(description='Only jobs with this tag: "name" or "name=value".')] | None = None
    queue: QueueName | None = None
    owner_workflow: Annotated[Text, Meta(description="Only jobs that this workflow owns for its steps.")] | None = None
    owned: Annotated[bool, Meta(description="Include jobs that workflows own for their steps.")] = False
    statistics: Annotated[
        bool, Meta(description="Include each job's newest executions, success rate and durations.")
    ] = False


class DeleteJobQuery(Query, frozen=True, kw_only=True):
    """The treatment of a deleted job's executions."""

    queued: Annotated[Literal["cancel", "finish"], Meta(description="The treatment of queued executions.")] = "cancel"
    running: Annotated[Literal["cancel", "finish"], Meta(description="The treatment of running executions.")] = "finish"
    force: Annotated[bool, Meta(description="Delete the job even if workflows run it.")] = False


def _shown(job: JobView, status: int = 200) -> Response:
    location = f"{API}/jobs/{job.job_id}" if status == 201 else None
    return ok(job, status, location=location, version=job.version)


@post(
    f"{API}/jobs", "jobs.create", {201: JobView, 200: JobPlanView},
    access=EDIT, scope=by_definition, audit=REQUEST, status=201, takes=JobBody, refuses=(Conflict,),
)  # fmt: skip
async def create(call: ApiCall, body: dict[str, Any], query: DryRun) -> Response:
    """Create a job; with `dryRun`, return the job that would be created (200)."""
    if query.dry_run:
        return ok(await call.node.definitions.job_plans.create(call.namespace, body))
    return _shown(await call.node.definitions.jobs.create(call.namespace, body), 201)


@get(f"{API}/jobs", "jobs.list", Page[ListedJobView], access=VIEW, scope=by_leaving_out, refuses=(NotFound,))
async def list_jobs(call: ApiCall, query: JobList) -> Response:
    """List jobs, sorted by name; deleted jobs only if `state` selects them.

    If jobs are large, or if the credential is for some jobs only, a page may have fewer than `limit` jobs although more
    follow.
    """
    lister = call.node.require(JobStatisticsPart) if query.statistics else None
    page = await call.node.definitions.jobs.list(
        call.namespace, search=query.search, prefix=query.prefix, state=query.state, tag=query.tag, queue=query.queue,
        owner=query.owner_workflow, owned=query.owned, limit=query.limit, cursor=query.cursor,
    )  # fmt: skip
    if call.who.scoped:
        mine = [job for job in page.items if call.who.covers(owner_of(job.name), job.queue)]
        page = msgspec.structs.replace(page, items=mine)
    if lister is not None:
        return ok(Page(items=await lister.listed(page.items), next_cursor=page.next_cursor))
    return ok(page)


@get(f"{API}/jobs/{{ref}}", "jobs.get", JobView, access=VIEW, scope=by_job, refuses=(NotFound,))
async def get_job(call: ApiCall) -> Response:
    """Read a job. A deleted job is found only by its id."""
    return _shown(await call.node.definitions.jobs.get(call.namespace, call.path("ref")))


@put(
    f"{API}/jobs/{{ref}}", "jobs.replace", {200: (JobView, JobPlanView)},
    access=EDIT, scope=by_job, audit=CHANGES, takes=JobBody, headers=IF_MATCH, refuses=(NotFound, Conflict, Stale),
)  # fmt: skip
async def replace(call: ApiCall, body: dict[str, Any], query: DryRun) -> Response:
    """Replace the whole definition of a job; a change makes a new version. With `dryRun`, only return the changes."""
    ref, if_match = call.path("ref"), call.if_match()
    if query.dry_run:
        return ok(
            await call.node.definitions.job_plans.edit(call.namespace, ref, body, if_match=if_match, replace=True)
        )
    return _shown(await call.node.definitions.jobs.edit(call.namespace, ref, body, if_match=if_match, replace=True))


@patch(
    f"{API}/jobs/{{ref}}", "jobs.edit", {200: (JobView, JobPlanView)},
    access=EDIT, scope=by_job, audit=CHANGES, takes=JobPatch, headers=IF_MATCH, refuses=(NotFound, Conflict, Stale),
)  # fmt: skip
async def edit(call: ApiCall, body: dict[str, Any], query: DryRun) -> Response:
    """Change parts of a job's definition by a JSON merge patch. With `dryRun`, return the changes only."""
    ref, if_match = call.path("ref"), call.if_match()
    if query.dry_run:
        return ok(await call.node.definitions.job_plans.edit(call.namespace, ref, body, if_match=if_match))
    return _shown(await call.node.definitions.jobs.edit(call.namespace, ref, body, if_match=if_match))


@delete(
    f"{API}/jobs/{{ref}}", "jobs.delete", JobView,
    access=EDIT, scope=by_job, audit=CHANGES, status=200, headers=IF_MATCH, refuses=(NotFound, Conflict, Stale),
)  # fmt: skip
async def delete_job(call: ApiCall, query: DeleteJobQuery) -> Response:
    """Delete a job: its triggers stop at once, its history stays readable, its name is free again."""
    job = await call.node.definitions.jobs.delete(
        call.namespace, call.path("ref"), queued=query.queued, running=query.running, if_match=call.if_match(),
        force=query.force,
    )  # fmt: skip
    return _shown(job)


@post(
    f"{API}/jobs/{{ref}}/pause", "jobs.pause", JobView,
    access=OPERATE, scope=by_job, audit=CHANGES, refuses=(NotFound, Conflict),
)  # fmt: skip
async def pause(call: ApiCall) -> Response:
    """Pause a job: none of its executions starts until it is resumed; running executions continue."""
    return _shown(await call.node.definitions.jobs.pause(call.namespace, call.path("ref")))


@post(
    f"{API}/jobs/{{ref}}/resume", "jobs.resume", JobView,
    access=OPERATE, scope=by_job, audit=CHANGES, refuses=(NotFound, Conflict),
)  # fmt: skip
async def resume(call: ApiCall) -> Response:
    """Resume a paused job."""
    return _shown(await call.node.definitions.jobs.resume(call.namespace, call.path("ref")))


@post(
    f"{API}/jobs/{{ref}}/restore", "jobs.restore", JobView,
    access=EDIT, scope=by_definition, audit=CHANGES, refuses=(NotFound, Conflict),
)  # fmt: skip
async def restore(call: ApiCall) -> Response:
    """Undo a deletion; a name means the last deleted job of that name."""
    return _shown(await call.node.definitions.jobs.restore(call.namespace, call.path("ref")))


@post(
    f"{API}/jobs/{{ref}}/trigger", "jobs.trigger", {202: TriggerReceipt, 200: TriggerReceipt},
    access=OPERATE, scope=by_job, audit=UNRECORDED, idempotency="submission",
    refuses=(NotFound, Conflict, KeyReused, OverQuota),
)  # fmt: skip
async def trigger(call: ApiCall, body: SubmissionOptions) -> Response:
    """Run a job now, after a delay or at an instant; an empty body runs it now with the job's own params.

    A `key` makes the submission unique for a time: a repetition returns 200 with the first execution. The answer is
    also 200 if the job's `unique` or `debounce` merges the submission with another one, or if the job's `cache` has a
    result for it. By default the job runs without waiting for its dependencies, and its end may start dependent jobs.
    The body can change both, and `note` in the answer explains the effect.
    """
    request = submit_of(call.path("ref"), body, call.trace)
    receipts = await call.node.submitter.submit(
        call.namespace, [request], origin="trigger", caller=call.caller, idempotency=submission_key(call)
    )
    receipt = await with_warning(call, call.path("ref"), await with_result(call, single_receipt(receipts)))
    about = await call.node.definitions.dependencies.of_run(call.namespace, call.path("ref"))
    answer = TriggerReceipt(
        **msgspec.structs.asdict(receipt),
        fires=tuple(about.dependents) if body.propagate else (),
        note=about.note(propagate=body.propagate, wait=body.wait_for_dependencies),
    )
    return ok(answer, 200 if is_old(receipt) else 202, location=f"{API}/executions/{receipt.execution_id}")


@get(
    f"{API}/jobs/{{ref}}/dependencies", "jobs.dependencies", DependenciesView,
    access=VIEW, scope=closed, refuses=(NotFound,),
)  # fmt: skip
async def dependencies(call: ApiCall) -> Response:
    """Read a job's dependencies, their states, its waiting executions, and the jobs that depend on it."""
    return ok(await call.node.definitions.dependencies.of(call.namespace, call.path("ref")))


@get(
    f"{API}/jobs/{{ref}}/executions", "jobs.executions", Page[ExecutionView],
    access=VIEW, scope=by_job, refuses=(NotFound, BadInput),
)  # fmt: skip
async def executions(call: ApiCall, query: JobExecutions) -> Response:
    """List a job's executions, newest first."""
    page = await call.node.work.executions.list(
        call.namespace, job=call.path("ref"), status=query.status, tag=query.tag, worker=query.worker,
        since=query.since, until=query.until, limit=query.limit, cursor=query.cursor,
    )  # fmt: skip
    return ok(page_without_sealed(page))


@delete(
    f"{API}/jobs/{{ref}}/cache", "jobs.forget-results", ForgottenResults,
    access=OPERATE, scope=by_job, audit=CHANGES, status=200, refuses=(NotFound,),
)  # fmt: skip
async def forget_results(call: ApiCall) -> Response:
    """Delete the cached results of a job, so that they answer no further submission."""
    return ok(
        ForgottenResults(forgotten=await call.node.definitions.jobs.forget_results(call.namespace, call.path("ref")))
    )


@get(
    f"{API}/jobs/{{ref}}/limits", "jobs.limits", Page[HeldKeyView],
    access=VIEW, scope=by_job, refuses=(NotFound, BadInput),
)  # fmt: skip
async def limits(call: ApiCall, query: Paged) -> Response:
    """List the held keys of a job's limits and sequence, with the executions that hold them; at most 100 per page."""
    page = await call.node.admission.held_keys.page(
        call.namespace, call.path("ref"), limit=query.limit, cursor=query.cursor
    )
    return ok(page)
