"""Reruns: a workflow begins with the graph and job versions of an earlier workflow, and takes over its finished steps.

With `Rerun.latest` it has the current graph and versions instead.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.base.packing import Packed
from horae.model.executions.execution import Rerun
from horae.model.workflows.decisions import decide
from horae.model.workflows.decisions.plan import Plan
from horae.model.workflows.decisions.rerun import FAILED, ends_of_reused, reused_steps
from horae.model.workflows.decisions.values import Workflow
from horae.model.workflows.decisions.workflow import Start, StepEnd
from horae.store.base.deferred import Deferred
from horae.store.script import ForEach, Script, Statement
from horae.store.workflows import results as workflow_results
from horae.store.workflows import rows as workflow_rows
from horae.store.workflows.rows import EVERY_STEP, StoredWorkflow
from horae.store.workflows.workflow_run import WorkflowRun, plans_of

ENDED = Statement(
    "items_to_take_over",
    "SELECT p.id, p.extras, p.ends, p.items, h.lo, h.hi, h.state FROM given JOIN parcels p ON p.id = given.parcel"
    " JOIN history h ON h.parcel = p.id",
)
GIVEN = Statement("params_of_children", "SELECT p.id, p.ends, p.items FROM given JOIN parcels p ON p.id = given.parcel")


def repeated_workflow(rerun: Rerun) -> Script[StoredWorkflow | None]:
    """Return the earlier workflow that a rerun repeats; None when it was deleted."""
    return (yield from workflow_rows.workflows_of([rerun.of])).get(rerun.of)


def begin(run: WorkflowRun, rerun: Rerun, moves: Deferred, now: Instant) -> Script[None]:
    """Begin a rerun, and take over the finished steps.

    The workflow is paused meanwhile, so that no step starts that is still to be taken over. It stays paused if it was
    paused before.
    """
    about, is_paused = run.stored.about, run.workflow.paused
    workflow = structs.replace(run.workflow, paused=True, breakpoints=frozenset(rerun.breakpoints))
    yield from run.decide(decide.begin(run.plan, workflow, about, now), moves, now)
    for ended in (yield from _reused_ends(rerun, run.plan)):
        yield from run.decide(decide.after(run.plan, run.workflow, about, [ended], now), moves, now)
    if is_paused:
        return
    held = [row for row in run.rows.values() if row.state == "held"]
    yield from run.decide(decide.resume(run.plan, run.workflow, about, held, now), moves, now)


class Takeover(Struct, frozen=True):
    """The parts that a rerun takes over from a step that did not succeed as a whole."""

    item_indexes: frozenset[int] = frozenset()  # indexes of the items of a foreach that succeeded
    parcels: list[tuple[UUID, int]] = []  # the parcels of these items, each with its number of items
    # By index of the item (0 if the step is no foreach): reruns of the nested workflows that did not succeed.
    nested_reruns: Mapping[int, Rerun] = {}


NO_TAKEOVER = Takeover()
NO_ID = UUID(int=0)


def takeover_of(run: WorkflowRun, start: Start, task_type: type) -> Script[Takeover]:
    """Return the parts of a step to take over from the earlier workflow: items that succeeded, and nested workflows.

    `task_type` is the type of the task of the step's job. Nothing is taken over from a foreach if its list of items now
    has another length. If the workflow's params or definition may have changed, the params of the items must be the
    same, too.
    """
    rerun = run.stored.extra.rerun
    node = run.plan.nodes.get(start.step)  # None for an undo step
    if rerun is None or not rerun.since or node is None or node.step.loop is not None:
        return NO_TAKEOVER
    known = (yield from repeated_workflow(rerun)) if start.foreach or task_type is Workflow else None
    if known is None:
        return NO_TAKEOVER
    rows = {row.step: row for row, _ in (yield from workflow_rows.some_steps(EVERY_STEP, [known.place]))[known.place]}
    row = rows.get(start.step)
    if row is None or start.step not in reused_steps(run.plan, rows, rerun.since).in_part:
        return NO_TAKEOVER
    is_same = not rerun.latest and known.params == run.stored.params
    if not start.foreach:
        return Takeover(
            nested_reruns=(yield from _rerun_nested(run, start, {0: row.execution}, rerun, is_same=is_same))
        )
    if row.total != len(start.items):
        return NO_TAKEOVER
    children = yield from workflow_results.children_of(known.place, start.step)
    return (yield from _takeover_of_items(run, start, children, rerun, is_same=is_same, nested=task_type is Workflow))


def _takeover_of_items(
    run: WorkflowRun, start: Start, children: list[tuple[UUID, int]], rerun: Rerun, *, is_same: bool, nested: bool
) -> Script[Takeover]:
    """Return the parts of a foreach to take over: the items that succeeded, and if `nested` the reruns of the others.

    `children` are the parcels of the earlier workflow. Without `is_same`, nothing is taken over if the params of an
    item that succeeded have changed.
    """
    places: set[int] = set()
    failed: dict[int, UUID] = {}  # item -> its newest execution: a rerun's parcels include parcels that it took over
    rows = yield ForEach(ENDED, workflow_results.CHILD, [(execution,) for execution, _ in children])
    for parcel, extras, ends, items, lo, hi, state in rows:
        given = Packed(ends, items)
        for item, at in enumerate(workflow_results.places_of(extras, lo, hi), lo):
            if state != "success":
                failed[at] = max(execution_id(parcel, item), failed.get(at, NO_ID))
            elif not is_same and given.one(item) != start.items[at]:
                return NO_TAKEOVER
            else:
                places.add(at)
    if len(places) == len(start.items):
        return NO_TAKEOVER
    left: dict[int, UUID | None] = (
        {at: execution for at, execution in failed.items() if at not in places} if nested else {}
    )
    within = yield from _rerun_nested(run, start, left, rerun, is_same=is_same)
    return Takeover(frozenset(places), children if places else [], within)


def _rerun_nested(
    run: WorkflowRun, start: Start, children: Mapping[int, UUID | None], rerun: Rerun, *, is_same: bool
) -> Script[dict[int, Rerun]]:
    """Return reruns of nested workflows, each from its failed steps.

    `children` are executions of the earlier workflow by index of the item. Only workflows of the step's job with the
    same params are rerun. Like the rerun of the parent, they use the original or the current definitions.
    """
    ids = [execution for execution in children.values() if execution is not None]
    if not ids:
        return {}
    workflows, pin = (yield from workflow_rows.workflows_of(ids)), run.pins.get(start.step)
    alike = {execution for execution, held in workflows.items() if pin is not None and held.workflow.job == pin.job}
    if alike and not is_same:
        rows = yield ForEach(
            GIVEN, workflow_results.CHILD, [(parcel,) for parcel in sorted(set(map(parcel_of, alike)))]
        )
        given = {parcel: Packed(ends, items) for parcel, ends, items in rows}
        alike = {
            execution
            for at, execution in children.items()
            if execution in alike
            and parcel_of(execution) in given
            and given[parcel_of(execution)].one(index_of(execution)) == start.items[at]
        }
    return {
        at: Rerun(of=execution, since=FAILED, latest=rerun.latest)
        for at, execution in children.items()
        if execution in alike
    }


def _reused_ends(rerun: Rerun, plan: Plan) -> Script[Sequence[StepEnd]]:
    """Return the ends of the steps that the rerun takes over as a whole, with the results of the earlier workflow."""
    known = yield from repeated_workflow(rerun)
    if known is None:
        return []
    steps = (yield from workflow_rows.some_steps(EVERY_STEP, [known.place]))[known.place]
    kept = reused_steps(plan, {row.step: row for row, _ in steps}, rerun.since).whole
    if not kept:
        return []
    found = yield from workflow_rows.steps_of([(*known.place, name, True) for name in kept])
    rows = {row.step: row for row, _ in found.values()}
    theirs = (yield from plans_of([(known.digest, known.workflow.job, known.workflow.version)]))[known.digest]
    apart = [row for row in rows.values() if workflow_results.is_stored_apart(row, theirs)]
    if apart:
        rows |= yield from workflow_results.read(known.place, apart, theirs)
    return ends_of_reused(kept, rows, rerun)
