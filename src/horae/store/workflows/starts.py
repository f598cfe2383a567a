"""Starting steps: creating the executions of steps in parcels.

These scripts lock nothing. In particular, they do not lock the keys of limits and sequences: executions with such keys
are stored on `waiting`, due now, and the promoter then admits them to the queue or lets them wait.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.errors import BadInput, HoraeError, TooLarge
from horae.model.admission.keys import encode_keys, keys_of
from horae.model.admission.limits import fan_key, sequence_name
from horae.model.admission.policy import FairPolicy
from horae.model.base.ids import parcel_id
from horae.model.documents.schema import checker_of
from horae.model.executions.execution import Extra, Rerun
from horae.model.executions.parcel import MAX_ITEM, Envelope, Parcel, make_parcel, parcel_sizes
from horae.model.executions.slice import QueuedSlice, Slice, WaitingSlice
from horae.model.executions.submission import NewExecution
from horae.model.expressions.meter import ITEM_STEPS, MOST_STEPS, Meter, refuse_over_budget, shared_budget
from horae.model.fleet.protocol import Failure
from horae.model.workflows.decisions.workflow import Pin, Start, StepEnd
from horae.store.admission.share_lanes import assign_share_lanes
from horae.store.base import shelves
from horae.store.base.deferred import Change
from horae.store.executions.entering.placing import place
from horae.store.executions.parcels import assign_shelves, first_wake, insert_parcels, insert_timeouts, least_ranks
from horae.store.script import Insert, Script
from horae.store.triggers.dependencies.starts import Consequences, NewId
from horae.store.triggers.targets import Lead, Target, execution_of
from horae.store.workflows.rerun import NO_TAKEOVER, Takeover, takeover_of
from horae.store.workflows.rows import STEP
from horae.store.workflows.terms import StepTerms
from horae.store.workflows.workflow_run import WorkflowRun

FANNED: shelves.Columns = (*STEP, ("child", "uuid"), ("count", "int"), ("taken", "bool"))


class NewChildren(Struct):
    """Children that were created but are not written yet, and steps that could not begin."""

    parcels: list[tuple[Parcel, int]] = []  # each with the rank lead of its executions
    paused: set[UUID] = set()  # workflows whose children wait until the workflow is resumed
    foreach_parcels: list[tuple[UUID, int, str, UUID, int, bool]] = []  # rows of `flow_parcels`
    refused: list[tuple[WorkflowRun, StepEnd]] = []  # steps that could not begin, each with its failure


def begin_steps(runs: Collection[WorkflowRun], terms: StepTerms, new_id: NewId, now: Instant) -> Script[NewChildren]:
    """Create the children of all steps that are to start.

    They are only collected in memory: the caller stores them by the changes that `changes_of` returns.
    """
    wanted = [(run, start) for run in runs for start in run.starts]
    begun = NewChildren()
    if not wanted:
        return begun
    yield from terms.look_up({pin for run, start in wanted if (pin := run.pins.get(start.step))}, now)
    lead = yield from terms.lead(now)
    single: list[tuple[WorkflowRun, Start, NewExecution]] = []
    for run, full_start in wanted:
        taken = yield from _takeover_for(run, full_start, terms.targets)
        start = _without_reused_items(taken, run, full_start, begun) if taken.item_indexes else full_start
        try:
            target = _target(run, start, terms.targets)
            executions = _executions_of(run, start, target, lead, now, taken.nested_reruns)
        except Exception as error:  # only the invalid step fails, never the report of the step before it
            begun.refused.append((run, _refused(start, error)))
            continue
        if start.foreach:
            yield from _fan_out(run, start, executions, new_id, now, begun)
        else:
            single.append((run, start, executions[0]))
    yield from _create_single_children(single, new_id, now, begun)
    begun.paused = {run.workflow.execution for run, _ in wanted if run.workflow.paused}
    for run in runs:
        run.starts.clear()
    return begun


def _takeover_for(run: WorkflowRun, start: Start, targets: Mapping[Pin, Target]) -> Script[Takeover]:
    """Return the parts of a starting step that a rerun takes over from the workflow that it repeats."""
    pin = run.pins.get(start.step)
    target = None if pin is None else targets.get(pin)
    return NO_TAKEOVER if target is None else (yield from takeover_of(run, start, type(target.spec.task)))


def _without_reused_items(taken: Takeover, run: WorkflowRun, start: Start, begun: NewChildren) -> Start:
    """Return the start of a foreach without the items that a rerun takes over.

    The results of these items stay in their old parcels; `begun` collects references to these parcels.
    """
    run.take_over(start.step, len(taken.item_indexes))
    begun.foreach_parcels += [(*run.stored.place, start.step, parcel, count, True) for parcel, count in taken.parcels]
    left = [at for at in range(len(start.items)) if at not in taken.item_indexes]
    return structs.replace(start, items=[start.items[at] for at in left], item_indexes=left)


def changes_of(begun: NewChildren, now: Instant, consequences: Consequences) -> list[Change]:
    """Return the changes that store new children, and record in `done` their parcels, lanes and due times.

    If `done.keeps_newborn` is set, children that may run at once are added to `done.newborn` and not queued.
    """
    if not begun.parcels:
        return []
    ready, later = assign_shelves(begun.parcels, now)
    if begun.paused:
        ready, later = _move_to_gate(ready, later, begun)
    if consequences.keeps_newborn:
        consequences.newborn += ready
    else:
        for lane, rank in least_ranks(ready).items():
            consequences.queue_lane(lane, rank)
    consequences.wake_by(first_wake(later))
    consequences.parcels += [parcel for parcel, _ in begun.parcels]
    return [
        insert_parcels(begun.parcels),
        *([] if consequences.keeps_newborn else [shelves.put_queued(ready)]),
        shelves.put_waiting(later),
        *insert_timeouts(begun.parcels),
        Insert("flow_parcels", FANNED, begun.foreach_parcels),
    ]


def gate_of(workflow: UUID) -> str:
    """Return the name of the gate at which the steps of a paused workflow wait."""
    return f"flow:{workflow}"


def _move_to_gate(
    ready: Sequence[QueuedSlice], later: Sequence[WaitingSlice], begun: NewChildren
) -> tuple[list[QueuedSlice], list[WaitingSlice]]:  # fmt: skip
    """Move new children of paused workflows from `ready` and `later` to the gate of their workflow.

    A paused workflow starts no step, but a loop that has begun starts its next run. This run waits like children that
    had not begun when the workflow was paused.
    """
    gates = {
        parcel.id: gate_of(parent)
        for parcel, _ in begun.parcels
        if (parent := parcel.envelope.parent) is not None and parent in begun.paused
    }
    held = [
        paused(item_slice, gates[item_slice.parcel]) for item_slice in (*ready, *later) if item_slice.parcel in gates
    ]
    others = [item_slice for item_slice in later if item_slice.parcel not in gates]
    return [item_slice for item_slice in ready if item_slice.parcel not in gates], [*others, *held]


def paused(s: Slice, gate: str) -> WaitingSlice:
    """Return a waiting slice that replaces a slice that has not begun, until its workflow is resumed."""
    return WaitingSlice(
        parcel=s.parcel, lo=s.lo, hi=s.hi, job=s.job, queue=s.queue, namespace=s.namespace, width=s.width,
        flags=s.flags, reason="paused", gate=gate,
    )  # fmt: skip


def _target(run: WorkflowRun, start: Start, targets: Mapping[Pin, Target]) -> Target:
    """Return the job that a step runs. Raises BadInput when it was deleted."""
    pin = run.pins.get(start.step)
    target = None if pin is None else targets.get(pin)
    if target is None:
        raise BadInput(f'The job that the step "{start.step}" runs does not exist.', "Change the workflow.")
    if target.state == "deleted" and not is_owned(target.name):
        raise BadInput(f'The job "{target.name}" was deleted.', "Restore it, or change the workflow.")
    return target


def is_owned(name: str) -> bool:
    """Tell whether a job is defined inside a workflow.

    Such a job is deleted with the workflow's definition, but workflows under way may still run it.
    """
    return "/" in name


def _refused(start: Start, error: Exception) -> StepEnd:
    message = error.detail if isinstance(error, HoraeError) else str(error)
    failure = Failure(type=type(error).__name__, message=message, permanent=True)
    bad = len(start.items) if start.foreach else 0
    return StepEnd(step=start.step, state="failed", error=failure, reason="start", bad=bad)


def _executions_of(
    run: WorkflowRun, start: Start, target: Target, lead: Lead, now: Instant, nested_reruns: Mapping[int, Rerun]
) -> list[NewExecution]:
    """Return the executions of a step: one, or for a foreach one for each item.

    If the items of a foreach differ only by their params, only the first execution is returned as a sample of all.
    `nested_reruns` has the reruns of nested workflows, by index of the item.
    """
    held = run.stored
    extra = structs.replace(held.extra, step=start.step, rerun=None, retry_of=None)
    check_params = checker_of(target.spec, "params")
    for item in start.items:
        if len(item) > MAX_ITEM:
            remedy = f"Keep them under {MAX_ITEM} bytes; pass a reference instead."
            raise TooLarge(f'The params of the step "{start.step}" have {len(item)} bytes.', remedy)
        check_params(item)
    alike = start.foreach and start.item_indexes is None and not nested_reruns and not _differ(target, lead)
    executions = []
    meter = Meter(MOST_STEPS + ITEM_STEPS * len(start.items))
    places = range(len(start.items)) if start.item_indexes is None else start.item_indexes
    for i, item in list(zip(places, start.items, strict=True))[: 1 if alike else None]:
        item_extra = structs.replace(extra, index=i if start.foreach else None, rerun=nested_reruns.get(i))
        priority = held.priority if start.priority is None else start.priority
        due_at = now + start.delay if start.delay else 0
        with shared_budget(meter):
            one = execution_of(target, item_extra, lead, due_at=due_at, item=item, priority=priority)
            refuse_over_budget()
        executions.append(structs.replace(one, envelope=_envelope(run, start, one)))
    return executions


def _differ(target: Target, lead: Lead) -> bool:
    """Tell whether the executions of a foreach may differ by their keys or lanes, or are batches."""
    spec, policy = target.spec, lead.policy(target.queue)
    templates = [*(limit.key for limit in spec.limits), spec.sequence]
    by_param = isinstance(policy, FairPolicy) and policy.by not in ("job", "caller")
    circuit = spec.circuit is not None and spec.circuit.key is not None
    by_param |= spec.affinity is not None or any("${" in text for text in templates)
    return circuit or by_param or spec.batch is not None


def _envelope(run: WorkflowRun, start: Start, one: NewExecution) -> Envelope:
    """Return the envelope of a child, completed by its parent and by the concurrency limit or order of its foreach."""
    envelope = one.envelope
    keys = structs.replace(keys_of(envelope.keys), child=True)
    if start.ordered and keys.sequence is None:
        keys = structs.replace(keys, sequence=sequence_name(run.workflow.execution, start.step))
    elif start.ordered:
        fan = fan_key(run.workflow.execution, start.step, 1)
        keys = structs.replace(keys, limits=tuple(sorted((*keys.limits, fan))))
    elif start.concurrency is not None and start.concurrency < len(start.items):
        fan = fan_key(run.workflow.execution, start.step, start.concurrency)
        keys = structs.replace(keys, limits=tuple(sorted((*keys.limits, fan))))
    return structs.replace(
        envelope, keys=encode_keys(keys), parent=run.workflow.execution, deadline=run.stored.deadline
    )


def _fan_out(
    run: WorkflowRun,
    start: Start,
    executions: Sequence[NewExecution],
    new_id: NewId,
    now: Instant,
    begun: NewChildren,
) -> Script[None]:
    """Create the children of a foreach, in as few parcels as possible.

    `executions` has one execution for each item, or one sample if the items differ only by their params.
    """
    executions = yield from assign_share_lanes(executions, now)
    if start.item_indexes is not None or len(executions) == len(start.items):
        _, parcels = place(executions, {}, new_id, now)
    else:
        parcels = list(_parcels_of_items(start.items, executions[0], new_id, now))
    begun.parcels += parcels
    begun.foreach_parcels += [(*run.stored.place, start.step, parcel.id, len(parcel), False) for parcel, _ in parcels]
    run.set_child(start.step, parcels[0][0].id)


def _parcels_of_items(
    items: Sequence[bytes], like: NewExecution, new_id: NewId, now: Instant
) -> Iterator[tuple[Parcel, int]]:
    """Yield parcels of items with the same envelope, each with its rank lead.

    The extra of a parcel has the index of its first item among all items of the foreach.
    """
    envelope = like.envelope if like.envelope.due_at else structs.replace(like.envelope, due_at=now)
    at = 0
    for count in parcel_sizes(map(len, items)):
        extra: Extra = structs.replace(like.extra, index=at)
        yield make_parcel(parcel_id(new_id()), envelope, items[at : at + count], [extra] * count, now), like.rank_lead
        at += count


def _create_single_children(
    single: Sequence[tuple[WorkflowRun, Start, NewExecution]], new_id: NewId, now: Instant, begun: NewChildren
) -> Script[None]:
    """Create the children of other steps than foreach; those of one workflow with equal envelopes share a parcel."""
    if not single:
        return
    executions = yield from assign_share_lanes([one for _, _, one in single], now)
    receipts, parcels = place(executions, {}, new_id, now)
    begun.parcels += parcels
    for (run, start, _), (receipt, *_) in zip(single, receipts, strict=True):
        run.set_child(start.step, receipt.execution_id)
