"""Reads of workflows for users. Each takes a few statements, however many steps and items a workflow has."""

from collections.abc import Collection, Iterable, Sequence
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.definitions.job import Spec
from horae.model.executions.parcel import extras_of
from horae.model.executions.settle import timing_of
from horae.model.workflows.decisions.plan import Plan
from horae.model.workflows.decisions.values import Workflow
from horae.model.workflows.decisions.workflow import StepRow
from horae.model.workflows.waits import Wait
from horae.store.base.shelves import ITEM
from horae.store.definitions.jobs import definitions
from horae.store.executions.first_starts import BEGAN
from horae.store.script import Among, Fetch, ForEach, Script, Statement
from horae.store.workflows import rows as workflow_rows
from horae.store.workflows import waits as workflow_waits
from horae.store.workflows.rows import Pinned, Place, StoredWorkflow
from horae.store.workflows.workflow_run import digest_of, plan_by, plans_of

VERSIONS = Statement("present_versions", "SELECT id, version FROM jobs WHERE id = ANY($1)")
NAMES = Statement("names_of_jobs", "SELECT id, name FROM jobs WHERE id = ANY($1)")


class WorkflowDetails(Struct, frozen=True):
    """A workflow with its graph and its steps."""

    held: StoredWorkflow
    plan: Plan
    steps: list[Pinned]
    names: dict[UUID, str]  # the names of the workflow's job and of the jobs that the steps run
    waits: dict[str, Wait]  # step -> its wait for an event, a signal, an approval or a callback
    starts: dict[str, Instant | None] = {}  # first start by step, see `starts_of`


def present_plan(job: UUID) -> Script[Plan | None]:
    """Return the graph of the current version of a job; None if the job is no longer a workflow."""
    versions = [(job_id, version) for job_id, version in (yield Among(VERSIONS, [job]))]
    for spec in (yield from definitions(versions)).values():
        task = msgspec.json.decode(spec, type=Spec).task
        if isinstance(task, Workflow):
            return plan_by(digest_of(task), task)
    return None


def read_workflow(execution: UUID) -> Script[WorkflowDetails | None]:
    """Return a workflow with its steps; None when the execution is not a workflow or has not begun."""
    held = (yield from workflow_rows.workflows_of([execution])).get(execution)
    if held is None:
        return None
    plans = yield from plans_of([(held.digest, held.workflow.job, held.workflow.version)])
    steps = (yield from workflow_rows.some_steps(workflow_rows.EVERY_STEP, [held.place]))[held.place]
    jobs = {held.workflow.job, *(pin.job for _, pin in steps if pin is not None)}
    names: dict[UUID, str] = dict((yield Among(NAMES, sorted(jobs))))
    waits = yield from _waits(held, steps)
    starts = yield from starts_of(execution, held.place, (row for row, _ in steps))
    return WorkflowDetails(held, plans[held.digest], steps, names, waits, starts)


def failed_steps(executions: Collection[UUID]) -> Script[dict[UUID, list[StepRow]]]:
    """Return the failed steps of each workflow. Executions that are not workflows are left out."""
    rows = yield ForEach(
        workflow_rows.FAILED_STEPS, ITEM, sorted((parcel_of(job_id), index_of(job_id)) for job_id in executions)
    )
    found: dict[UUID, list[StepRow]] = {}
    for row in rows:
        found.setdefault(execution_id(row[0], row[1]), []).append(workflow_rows.read_step(row)[0])
    return found


def _waits(held: StoredWorkflow, steps: Iterable[Pinned]) -> Script[dict[str, Wait]]:
    if not any(row.state == "waiting" for row, _ in steps):
        return {}
    return {step: wait for step, _, _, wait in (yield from workflow_waits.waits_of(held.place))}


MOST_PARCELS = 1_000  # the first runs of loops are searched in so many of a workflow's parcels, oldest first
_LAST = "SELECT max(x.lo) FROM {shelf} x WHERE x.parcel = given.parcel AND x.lo <= given.item"
# The first start of an execution is stored as a durable step if it was suspended, and in `flows` if it is a workflow.
# Otherwise it is the start of its first attempt.
OF_CHILDREN = Statement(
    "starts_of_children",
    "SELECT given.parcel, given.item, coalesce((SELECT s.at FROM steps s WHERE s.parcel = given.parcel"
    f" AND s.item = given.item AND s.name = '{BEGAN}'), (SELECT f.began_at FROM flows f WHERE f.parcel = given.parcel"
    " AND f.item = given.item), (SELECT min(a.started_at) FROM attempts a WHERE a.parcel = given.parcel"
    " AND a.lo <= given.item AND a.hi > given.item), r.started_at, r.granted_at),"
    " h.lo, h.started_at, h.completed_at, h.timings FROM given"
    f" LEFT JOIN running r ON r.parcel = given.parcel AND r.lo = ({_LAST.format(shelf='running')})"
    " AND r.hi > given.item"
    f" LEFT JOIN history h ON h.parcel = given.parcel AND h.lo = ({_LAST.format(shelf='history')})"
    " AND h.hi > given.item",
)
OF_FANS = Statement(
    "starts_of_fans",
    "SELECT c.step, min(h.started_at) FROM flow_parcels c JOIN history h ON h.parcel = c.child"
    " WHERE c.parcel = $1 AND c.item = $2 AND NOT c.taken GROUP BY c.step"
    " UNION ALL SELECT c.step, min(coalesce(r.started_at, r.granted_at)) FROM flow_parcels c"
    " JOIN running r ON r.parcel = c.child WHERE c.parcel = $1 AND c.item = $2 AND NOT c.taken GROUP BY c.step",
)
FIRST_CHILDREN = Statement(
    "first_children", "SELECT p.id, p.n, p.extras FROM parcels p WHERE p.parent = $1 ORDER BY p.id LIMIT $2"
)


def starts_of(execution: UUID, place: Place, rows: Iterable[StepRow]) -> Script[dict[str, Instant | None]]:
    """Return the first start of each step.

    It is None for a step whose execution has ended without a start. Steps without an execution (waits, for example),
    steps whose executions have not started, and steps whose executions were deleted are left out.
    """
    rows = [row for row in rows if row.execution is not None]
    children = {row.step: row.execution for row in rows if not row.total}
    if any(row.iteration for row in rows):
        children |= yield from _first_runs(execution, {row.step for row in rows if row.iteration})
    found: dict[str, Instant | None] = {}
    if any(row.total for row in rows):
        for step, at in (yield Fetch(OF_FANS, place)):
            starts = [one for one in (at, found.get(step)) if one is not None]
            found[step] = min(starts, default=None)
    asked = {(parcel_of(job_id), index_of(job_id)): step for step, job_id in children.items() if job_id is not None}
    if not asked:
        return found
    for parcel, item, first, lo, started_at, completed_at, timings in (yield ForEach(OF_CHILDREN, ITEM, list(asked))):
        ended = None if lo is None else timing_of(timings, item - lo, started_at, completed_at)[0]
        starts = [at for at in (first, ended) if at is not None]
        if starts or lo is not None:
            found[asked[parcel, item]] = min(starts, default=None)
    return found


def _first_runs(execution: UUID, loops: set[str]) -> Script[dict[str, UUID | None]]:
    """Return the execution of the first run of each loop, because the row of a step refers only to the latest run."""
    found: dict[str, UUID | None] = {}
    for parcel, count, extras in (yield Fetch(FIRST_CHILDREN, (execution, MOST_PARCELS))):
        for item, extra in enumerate(extras_of(extras, 0, count)):
            if extra.step in loops:
                found.setdefault(extra.step, execution_id(parcel, item))
    return found


STATES = Statement(
    "step_states",
    "SELECT s.parcel, s.item, s.step, s.state FROM given JOIN flow_steps s ON s.parcel = given.parcel"
    " AND s.item = given.item",
)


def states_of(places: Sequence[Place]) -> Script[dict[Place, dict[str, str]]]:
    """Return the states of steps by name, for several executions; empty for executions that are not workflows."""
    found: dict[Place, dict[str, str]] = {place: {} for place in places}
    for parcel, item, step, state in (yield ForEach(STATES, ITEM, list(found))):
        found[parcel, item][step] = state
    return found
