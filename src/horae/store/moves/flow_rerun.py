"""A workflow that begins as the rerun of another: with its graph and its versions, and with what it had finished."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.model.execution import Rerun
from horae.model.packing import Packed
from horae.model.workflow import decide
from horae.model.workflow.flow import Ended, Start
from horae.model.workflow.plan import Plan
from horae.model.workflow.rerun import copies, kept_steps
from horae.store.moves import flow_results, flow_rows
from horae.store.moves.deferred import Deferred
from horae.store.moves.flow_course import Course, plans_of
from horae.store.moves.flow_rows import EVERY_STEP, Held
from horae.store.script import ForEach, Script, Statement

DONE = Statement(
    "items_to_take_over",
    "SELECT p.extras, p.ends, p.items, h.lo, h.hi FROM given JOIN parcels p ON p.id = given.parcel"
    " JOIN history h ON h.parcel = p.id AND h.state = 'success'",
)


def before(rerun: Rerun) -> Script[Held | None]:
    """The workflow that a rerun is of; None when nothing is known of it any more."""
    return (yield from flow_rows.flows_of([rerun.of])).get(rerun.of)


def begin(course: Course, rerun: Rerun, moves: Deferred, now: Instant) -> Script[None]:
    """Begin with nothing running, take over what is done, and go on from there."""
    about, is_paused = course.held.about, course.flow.paused
    flow = structs.replace(course.flow, paused=True, breakpoints=frozenset(rerun.breakpoints))
    yield from course.decide(decide.begin(course.plan, flow, about, now), moves, now)
    for ended in (yield from _taken_over(rerun, course.plan)):
        yield from course.decide(decide.after(course.plan, course.flow, about, [ended], now), moves, now)
    if is_paused:
        return
    held = [row for row in course.rows.values() if row.state == "held"]
    yield from course.decide(decide.resume(course.plan, course.flow, about, held, now), moves, now)


class Items(Struct, frozen=True):
    """Items of a foreach that a rerun takes over: their places, and the parcels in which they lie."""

    places: frozenset[int]
    parcels: list[tuple[UUID, int]]


def items_of(course: Course, start: Start) -> Script[Items | None]:
    """Find the items of a foreach that succeeded in the workflow that this one is a rerun of; None for none.

    The list must be the same. If the workflow's params or its definition may be others now, so must be the items'.
    """
    rerun = course.held.extra.rerun
    known = None if rerun is None or not rerun.since else (yield from before(rerun))
    if rerun is None or known is None or start.ordered:
        return None
    rows = {row.step: row for row, _ in (yield from flow_rows.some_steps(EVERY_STEP, [known.place]))[known.place]}
    row, kept = rows.get(start.step), kept_steps(course.plan, rows, rerun.since)
    if row is None or row.total != len(start.items) or start.step not in kept.in_part:
        return None
    is_same = not rerun.latest and known.params == course.held.params
    children = yield from flow_results.children_of(known.place, start.step)
    places: set[int] = set()
    for extras, ends, items, lo, hi in (yield ForEach(DONE, flow_results.CHILD, [(id,) for id, _ in children])):
        given = Packed(ends, items)
        for item, at in enumerate(flow_results.places_of(extras, lo, hi), lo):
            if not is_same and given.one(item) != start.items[at]:
                return None
            places.add(at)
    return Items(frozenset(places), children) if 0 < len(places) < row.total else None


def _taken_over(rerun: Rerun, plan: Plan) -> Script[Sequence[Ended]]:
    """What of a workflow stays done, by the graph that its rerun has."""
    known = yield from before(rerun)
    if known is None:
        return []
    steps = (yield from flow_rows.some_steps(EVERY_STEP, [known.place]))[known.place]
    kept = kept_steps(plan, {row.step: row for row, _ in steps}, rerun.since).whole
    if not kept:
        return []
    found = yield from flow_rows.steps_of([(*known.place, name, True) for name in kept])
    rows = {row.step: row for row, _ in found.values()}
    theirs = (yield from plans_of([(known.digest, known.flow.job, known.flow.version)]))[known.digest]
    lying = [row for row in rows.values() if flow_results.lies_elsewhere(row, theirs)]
    if lying:
        rows |= yield from flow_results.read(known.place, lying, theirs)
    return copies(kept, rows, rerun)
