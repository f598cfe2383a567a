"""Reruns: a workflow begins with the graph and the versions of an earlier one, and takes its finished steps over."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.base.packing import Packed
from horae.model.executions.execution import Rerun
from horae.model.workflows.decisions import decide
from horae.model.workflows.decisions.flow import Start, StepEnd
from horae.model.workflows.decisions.plan import Plan
from horae.model.workflows.decisions.rerun import FAILED, ends_of_reused, reused_steps
from horae.model.workflows.decisions.values import Workflow
from horae.store.base.deferred import Deferred
from horae.store.script import ForEach, Script, Statement
from horae.store.workflows import results as flow_results
from horae.store.workflows import rows as flow_rows
from horae.store.workflows.rows import EVERY_STEP, StoredWorkflow
from horae.store.workflows.workflow_run import WorkflowRun, plans_of

ENDED = Statement(
    "items_to_take_over",
    "SELECT p.id, p.extras, p.ends, p.items, h.lo, h.hi, h.state FROM given JOIN parcels p ON p.id = given.parcel"
    " JOIN history h ON h.parcel = p.id",
)
GIVEN = Statement("params_of_children", "SELECT p.id, p.ends, p.items FROM given JOIN parcels p ON p.id = given.parcel")


def before(rerun: Rerun) -> Script[StoredWorkflow | None]:
    """Return the workflow that a rerun repeats; None when it was deleted."""
    return (yield from flow_rows.flows_of([rerun.of])).get(rerun.of)


def begin(run: WorkflowRun, rerun: Rerun, moves: Deferred, now: Instant) -> Script[None]:
    """Begin a rerun in a paused state, take over the finished steps, and resume it."""
    about, is_paused = run.stored.about, run.flow.paused
    flow = structs.replace(run.flow, paused=True, breakpoints=frozenset(rerun.breakpoints))
    yield from run.decide(decide.begin(run.plan, flow, about, now), moves, now)
    for ended in (yield from _taken_over(rerun, run.plan)):
        yield from run.decide(decide.after(run.plan, run.flow, about, [ended], now), moves, now)
    if is_paused:
        return
    held = [row for row in run.rows.values() if row.state == "held"]
    yield from run.decide(decide.resume(run.plan, run.flow, about, held, now), moves, now)


class Takeover(Struct, frozen=True):
    """The parts of a step that did not succeed which a rerun takes over."""

    places: frozenset[int] = frozenset()  # the items of a foreach that succeeded
    parcels: list[tuple[UUID, int]] = []  # the parcels of these items
    within: Mapping[int, Rerun] = {}  # nested workflows that did not succeed, by item: they are rerun, too


NOTHING_TAKEN = Takeover()
NO_ID = UUID(int=0)


def takeover_of(run: WorkflowRun, start: Start, runs: type) -> Script[Takeover]:
    """Return the parts of a step to take over from the earlier workflow: items that succeeded, and nested workflows.

    The list of a foreach must have the same length. If the workflow's params or definition may have changed, the params
    of the items must be the same, too.
    """
    rerun = run.stored.extra.rerun
    node = run.plan.nodes.get(start.step)  # an undoing has none
    if rerun is None or not rerun.since or node is None or node.step.loop is not None:
        return NOTHING_TAKEN
    known = (yield from before(rerun)) if start.foreach or runs is Workflow else None
    if known is None:
        return NOTHING_TAKEN
    rows = {row.step: row for row, _ in (yield from flow_rows.some_steps(EVERY_STEP, [known.place]))[known.place]}
    row = rows.get(start.step)
    if row is None or start.step not in reused_steps(run.plan, rows, rerun.since).in_part:
        return NOTHING_TAKEN
    is_same = not rerun.latest and known.params == run.stored.params
    if not start.foreach:
        return Takeover(within=(yield from _gone_on(run, start, {0: row.execution}, rerun, is_same=is_same)))
    if row.total != len(start.items):
        return NOTHING_TAKEN
    children = yield from flow_results.children_of(known.place, start.step)
    return (yield from _items(run, start, children, rerun, is_same=is_same, nested=runs is Workflow))


def _items(
    run: WorkflowRun, start: Start, children: list[tuple[UUID, int]], rerun: Rerun, *, is_same: bool, nested: bool
) -> Script[Takeover]:
    """Return the parts to take over from the items of a foreach."""
    places: set[int] = set()
    failed: dict[int, UUID] = {}  # the newest execution of each item: a rerun of a rerun has the executions of both
    rows = yield ForEach(ENDED, flow_results.CHILD, [(execution,) for execution, _ in children])
    for parcel, extras, ends, items, lo, hi, state in rows:
        given = Packed(ends, items)
        for item, at in enumerate(flow_results.places_of(extras, lo, hi), lo):
            if state != "success":
                failed[at] = max(execution_id(parcel, item), failed.get(at, NO_ID))
            elif not is_same and given.one(item) != start.items[at]:
                return NOTHING_TAKEN
            else:
                places.add(at)
    if len(places) == len(start.items):
        return NOTHING_TAKEN
    left: dict[int, UUID | None] = (
        {at: execution for at, execution in failed.items() if at not in places} if nested else {}
    )
    within = yield from _gone_on(run, start, left, rerun, is_same=is_same)
    return Takeover(frozenset(places), children if places else [], within)


def _gone_on(
    run: WorkflowRun, start: Start, children: Mapping[int, UUID | None], rerun: Rerun, *, is_same: bool
) -> Script[dict[int, Rerun]]:
    """Return reruns from the failed steps, for children that are workflows of the step's job with the same params.

    They use the same choice of definitions as the rerun to which they belong.
    """
    ids = [execution for execution in children.values() if execution is not None]
    if not ids:
        return {}
    flows, pin = (yield from flow_rows.flows_of(ids)), run.pins.get(start.step)
    alike = {execution for execution, held in flows.items() if pin is not None and held.flow.job == pin.job}
    if alike and not is_same:
        rows = yield ForEach(GIVEN, flow_results.CHILD, [(parcel,) for parcel in sorted(set(map(parcel_of, alike)))])
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


def _taken_over(rerun: Rerun, plan: Plan) -> Script[Sequence[StepEnd]]:
    """Return the steps of the earlier workflow that stay done in the graph of its rerun."""
    known = yield from before(rerun)
    if known is None:
        return []
    steps = (yield from flow_rows.some_steps(EVERY_STEP, [known.place]))[known.place]
    kept = reused_steps(plan, {row.step: row for row, _ in steps}, rerun.since).whole
    if not kept:
        return []
    found = yield from flow_rows.steps_of([(*known.place, name, True) for name in kept])
    rows = {row.step: row for row, _ in found.values()}
    theirs = (yield from plans_of([(known.digest, known.flow.job, known.flow.version)]))[known.digest]
    apart = [row for row in rows.values() if flow_results.is_stored_apart(row, theirs)]
    if apart:
        rows |= yield from flow_results.read(known.place, apart, theirs)
    return ends_of_reused(kept, rows, rerun)
