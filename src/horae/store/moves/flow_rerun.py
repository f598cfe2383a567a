"""A workflow that begins as the rerun of another: with its graph and its versions, and with what it had finished."""

from collections.abc import Sequence

from msgspec import structs

from horae.env import Instant
from horae.model.execution import Rerun
from horae.model.workflow import decide
from horae.model.workflow.flow import Ended
from horae.model.workflow.plan import Plan
from horae.model.workflow.rerun import copies, kept_steps
from horae.store.moves import flow_results, flow_rows
from horae.store.moves.deferred import Deferred
from horae.store.moves.flow_course import Course, plans_of
from horae.store.moves.flow_rows import Held
from horae.store.script import Script


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


def _taken_over(rerun: Rerun, plan: Plan) -> Script[Sequence[Ended]]:
    """What of a workflow stays done, by the graph that its rerun has."""
    known = yield from before(rerun)
    if known is None:
        return []
    steps = (yield from flow_rows.some_steps(flow_rows.EVERY_STEP, [known.place]))[known.place]
    kept = kept_steps(plan, {row.step: row for row, _ in steps}, rerun.since)
    if not kept:
        return []
    found = yield from flow_rows.steps_of([(*known.place, name, True) for name in kept])
    rows = {row.step: row for row, _ in found.values()}
    theirs = (yield from plans_of([(known.digest, known.flow.job, known.flow.version)]))[known.digest]
    lying = [row for row in rows.values() if flow_results.lies_elsewhere(row, theirs)]
    if lying:
        rows |= yield from flow_results.read(known.place, lying, theirs)
    return copies(kept, rows, rerun)
