"""Begin: the server claims workflows from the queue, as it does for workers, and starts their first steps.

The claim respects holds, pauses, circuits, limits and rates as it does for workers. A root workflow without limits and
rates begins in the transaction of the claim. A workflow that is a step, or has a limit or a rate, only gets its row
here, in the state "opening", and begins a moment later, see `due`. The reason is the order of locks: its beginning may
need locks that must be taken before those that the claim has taken already.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from uuid import UUID

import msgspec
from msgspec import Struct, field, structs

from horae.env import Instant
from horae.model.admission.claim_plan import LaneState
from horae.model.admission.keys import CHILD, LIMITED, RATED
from horae.model.base.ids import execution_id
from horae.model.definitions.job import Spec
from horae.model.definitions.rollout import VersionChoice
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import Parcel, extra_of
from horae.model.executions.slice import RunningSlice, WaitingSlice
from horae.model.fleet.deal import WorkRequest
from horae.model.workflows.decisions import decide
from horae.model.workflows.decisions.naming import calls_of
from horae.model.workflows.decisions.values import Workflow
from horae.model.workflows.decisions.workflow import Pin, WorkflowExecution
from horae.store.base import shelves
from horae.store.base.deferred import Deferred
from horae.store.definitions import rollouts
from horae.store.definitions.jobs import definitions
from horae.store.executions.parcels import read_parcels
from horae.store.fleet.claim import ClaimResult, claim
from horae.store.script import Among, ForEach, Script, Statement
from horae.store.triggers.dependencies.starts import Consequences, NewId
from horae.store.workflows import cancel as workflow_cancel
from horae.store.workflows import rerun as workflow_rerun
from horae.store.workflows.advance import WorkflowBatch
from horae.store.workflows.rows import OPENING, StoredWorkflow, pins_of, put_workflows
from horae.store.workflows.workflow_run import WorkflowRun, digest_of, plan_by, with_secrets

NO_SESSION = UUID(int=0)  # stands for the session in the claim, because no worker gets these executions
GATE = "children"  # the gate at which workflows wait for their children
ROOTS = Statement(
    "roots_of_workflows", "SELECT f.execution, f.root FROM given JOIN flows f ON f.execution = given.execution"
)
CURRENT = Statement("versions_of_jobs", "SELECT j.id, j.version, j.rollout FROM jobs j WHERE j.id = ANY($1)")
Version = tuple[UUID, int]
Choices = Mapping[UUID, VersionChoice[Pin]]  # job -> the version to choose, for jobs with an active rollout


class BegunWorkflow(Struct, frozen=True):
    """The data about a workflow that left the queue which tracing needs."""

    slice: RunningSlice
    extra: Extra
    execution: UUID
    made: tuple[Instant, Instant]  # when it was due, and when it was created
    version: Version


TraceOf = Callable[[Extra, UUID, int], str]  # returns the trace context for the steps of an attempt


class OpenedWorkflows(Struct):
    """Workflows that left the queue by one claim."""

    claimed: ClaimResult
    # The consequences of the workflows that began in the same transaction.
    started: Consequences = field(default_factory=Consequences)
    executions: list[UUID] = []  # all these workflows, also those that begin later
    begun: list[BegunWorkflow] = []  # the same workflows, if tracing is on


def open_some(
    views: Sequence[LaneState],
    most: int,
    paused: frozenset[UUID],
    new_id: NewId,
    now: Instant,
    trace_of: TraceOf | None = None,
) -> Script[OpenedWorkflows]:
    """Claim at most `most` workflows from the lanes of `views`, lowest rank first, and begin them.

    Jobs in `paused` are left out. `trace_of` returns the trace context for the steps of a workflow; it is None if
    tracing is off.
    """
    moves = Deferred()
    want = WorkRequest(session=NO_SESSION, channel=0, n=0, free=most)
    lanes = frozenset(view.lane for view in views)
    claimed = yield from claim([want], {NO_SESSION: lanes}, views, paused, moves, now)
    yield from moves.make()
    opened = OpenedWorkflows(claimed)
    if claimed.running:
        limited = any(view.limits for view in views)
        yield from _open(claimed.running, opened, new_id, now, trace_of, limited=limited)
    return opened


def _open(
    running: Sequence[RunningSlice], opened: OpenedWorkflows, new_id: NewId, now: Instant, trace_of: TraceOf | None, *,
    limited: bool,
) -> Script[None]:  # fmt: skip
    """Move claimed workflows to `waiting`, one slice each, and begin them; with `limited` they begin a moment later.

    The reason for `limited`: a workflow may end in the transaction in which it begins. Its end releases its keys and
    advances jobs that depend on it. The locks for this must be taken before the locks of limits and rates, but the
    claim has taken those already.
    """
    parcels = {p.id: p for p in (yield from read_parcels(sorted({claimed.parcel for claimed in running})))}
    specs = yield from _specs({(p.envelope.job, p.envelope.version) for p in parcels.values()})
    pins, choices = yield from _pins(specs)
    roots = yield from _roots(parcels.values())
    batch = WorkflowBatch(Deferred(), new_id, now, opened.started)
    waiting: list[WaitingSlice] = []
    opening: list[StoredWorkflow] = []
    for claimed in running:
        parcel = parcels[claimed.parcel]
        version = parcel.envelope.job, parcel.envelope.version
        for item in range(claimed.lo, claimed.hi):
            spec = specs[version]
            held = _new_row(parcel, item, claimed, spec, pins[version], choices, roots, now)
            rerun = held.extra.rerun
            before = None if rerun is None or rerun.latest else (yield from workflow_rerun.repeated_workflow(rerun))
            if before is not None:
                spec, runs = yield from _original_definition(before)
                then = _new_row(parcel, item, claimed, spec, runs, {}, roots, now)
                held = structs.replace(then, workflow=structs.replace(then.workflow, version=before.workflow.version))
            if trace_of is not None:
                held = _traced(held, claimed, parcel, opened, extra_of(parcel.extras, item), trace_of)
            waiting.append(_waits(claimed, item))
            opened.executions.append(held.workflow.execution)
            if claimed.flags & (CHILD | RATED) or limited:
                opening.append(structs.replace(held, state=OPENING, wake_at=now))
                opened.started.check_by(now)
                continue
            batch.runs[held.workflow.execution] = new_run(held, _workflow(spec))
    yield from with_secrets(batch.runs.values())
    yield shelves.take("running", running)
    batch.moves.add([shelves.put_waiting(waiting)])
    if opening:
        batch.moves.add([put_workflows(opening)])
    for run in batch.runs.values():
        yield from begin(run, batch.moves, now)
    yield from batch.moves.make()  # a workflow that ends at once must be on `waiting`: its end moves it to `history`
    yield from workflow_cancel.settle(batch, {}, new_id, now, opened.started)


def begin(run: WorkflowRun, moves: Deferred, now: Instant) -> Script[None]:
    """Start the first steps of a workflow; if it is a rerun, the first steps that have to run again."""
    rerun = run.stored.extra.rerun
    if rerun is not None:
        yield from workflow_rerun.begin(run, rerun, moves, now)
        return
    yield from run.decide(decide.begin(run.plan, run.workflow, run.stored.about, now), moves, now)


def _original_definition(before: StoredWorkflow) -> Script[tuple[bytes, dict[str, Pin]]]:
    """Return the definition of an earlier workflow, and the job versions that its steps ran."""
    version = before.workflow.job, before.workflow.version
    return (yield from _specs([version]))[version], (yield from pins_of(before.place))


def new_run(held: StoredWorkflow, workflow: Workflow) -> WorkflowRun:
    """Return the `WorkflowRun` of a workflow that has no row in `flows` yet."""
    return WorkflowRun(held, plan_by(held.digest, workflow), is_new=True)


def _specs(versions: Iterable[Version]) -> Script[dict[Version, bytes]]:
    return (yield from definitions(sorted(versions)))


@lru_cache(maxsize=256)
def _read(spec: bytes) -> Spec:
    return msgspec.json.decode(spec, type=Spec)


def _workflow(spec: bytes) -> Workflow:
    task = _read(spec).task
    assert isinstance(task, Workflow)
    return task


@lru_cache(maxsize=256)
def _digest(spec: bytes) -> str:
    return digest_of(_workflow(spec))


def _pins(specs: Mapping[Version, bytes]) -> Script[tuple[dict[Version, dict[str, Pin]], Choices]]:
    """Return the job versions that the steps of workflows run, and the versions from which rollouts choose.

    A step runs the version that its definition names, otherwise the current version of the job. A job that is defined
    inside a workflow has its own version for each version of the workflow.
    """
    calls = {version: dict(calls_of(_workflow(spec))) for version, spec in specs.items()}
    jobs = sorted({UUID(call.runs) for mine in calls.values() for call in mine.values()})
    rows = (yield Among(CURRENT, jobs)) if jobs else []
    current: dict[UUID, int] = {job: version for job, version, _ in rows}
    rolling = [job for job, _, rollout in rows if rollout is not None]
    pins = {
        version: {
            name: Pin(job, call.version or current[job])
            for name, call in mine.items()
            if (job := UUID(call.runs)) in current
        }
        for version, mine in calls.items()
    }  # fmt: skip
    return pins, (yield from _choices(rolling, current)) if rolling else {}


def _choices(rolling: Sequence[UUID], current: Mapping[UUID, int]) -> Script[Choices]:
    """Return the versions from which the rollouts of jobs choose. `current` has the current versions."""
    found = yield from rollouts.active_rollouts(rolling)
    return {
        job: VersionChoice(rollout=rollout, current=current[job], arms={version: Pin(job, version) for version in arms})
        for job, (rollout, arms) in found.items()
    }


def _chosen(
    pins: Mapping[str, Pin], choices: Choices, spec: Spec, item: bytes, extra: Extra, execution: UUID
) -> dict[str, Pin]:
    """Return the job versions that the steps of one workflow run.

    Where a rollout is under way, it chooses the version once for the whole workflow, by the workflow's params or by
    chance.
    """
    if not choices:
        return dict(pins)
    return {
        name: (choices[pin.job].of(spec, item, extra.tags, lambda: execution) if pin.job in choices else None) or pin
        for name, pin in pins.items()
    }


def _roots(parcels: Iterable[Parcel]) -> Script[dict[UUID, UUID]]:
    """Return the root of each workflow to which parcels of steps belong."""
    above = {p.envelope.parent for p in parcels if p.envelope.parent is not None}
    rows = (
        (yield ForEach(ROOTS, (("execution", "uuid"),), [(parent_id,) for parent_id in sorted(above)])) if above else []
    )
    return dict(rows)


def _new_row(
    parcel: Parcel,
    item: int,
    running: RunningSlice,
    stored: bytes,
    pins: Mapping[str, Pin],
    choices: Choices,
    roots: Mapping[UUID, UUID],
    now: Instant,
) -> StoredWorkflow:
    """Return the row of a workflow that is about to begin. `stored` is its definition as JSON."""
    e, spec = parcel.envelope, _read(stored)
    execution = execution_id(parcel.id, item)
    parent = e.parent if running.flags & CHILD else None
    bounds = [at for at in (_after(now, spec.timeout), _after(e.due_at, spec.retry.within)) if at is not None]
    until = min(bounds, default=None)
    root = execution if parent is None else roots[parent]
    extra = extra_of(parcel.extras, item)
    runs = _chosen(pins, choices, spec, parcel.items.one(item), extra, execution)
    workflow = WorkflowExecution(execution=execution, root=root, job=e.job, version=e.version, pins=runs)
    params = {**spec.params, **(msgspec.json.decode(parcel.items.one(item)) or {})}
    return StoredWorkflow(
        workflow=workflow, parent=parent, namespace=e.namespace, digest=_digest(stored),
        params=msgspec.json.encode(params), extra=_inherited(extra), priority=e.priority, deadline=e.deadline,
        due_at=e.due_at, queued_at=running.queued_at, began_at=now, until=until, state=workflow.state,
        stops=frozenset(), wake_at=until,
    )  # fmt: skip


def _traced(
    held: StoredWorkflow, running: RunningSlice, parcel: Parcel, opened: OpenedWorkflows, own: Extra, trace_of: TraceOf
) -> StoredWorkflow:
    """Return the workflow with the trace context for its steps, and record it in `opened.begun`."""
    e, execution = parcel.envelope, held.workflow.execution
    opened.begun.append(BegunWorkflow(running, own, execution, (e.due_at, parcel.submitted_at), (e.job, e.version)))
    trace = trace_of(own, execution, running.attempt)
    return structs.replace(held, extra=structs.replace(held.extra, trace=trace))


def _after(at: Instant, span: int | None) -> Instant | None:
    return None if span is None else at + span


def _inherited(extra: Extra) -> Extra:
    """Return the extra to store with a workflow: the data that its children inherit, its `rerun` and its `retry_of`.

    `rerun` and `retry_of` are only for the workflow itself: `begin_steps` removes them from the extras of children.
    """
    return Extra(
        trace=extra.trace, trace_state=extra.trace_state, origin="child", caller=extra.caller, tags=extra.tags,
        interval=extra.interval, backfill=extra.backfill, rerun=extra.rerun, retry_of=extra.retry_of,
    )  # fmt: skip


def _waits(s: RunningSlice, item: int) -> WaitingSlice:
    """Return the slice of a workflow that waits for its children.

    It occupies no worker, so the limits of its queue and namespace do not count it.
    """
    return WaitingSlice(
        parcel=s.parcel, lo=item, hi=item + 1, job=s.job, queue=s.queue, namespace=s.namespace, attempt=s.attempt,
        failures=s.failures, losses=s.losses, alone=s.alone, width=s.width,
        flags=s.flags & ~LIMITED,  # guard: workflow-is-unlimited
        reason="children", gate=GATE,
    )  # fmt: skip
