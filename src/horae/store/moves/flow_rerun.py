"""A workflow that begins as the rerun of another: with its graph and its versions, and with what it had finished."""

from collections.abc import Sequence

from msgspec import structs

from horae.env import Instant
from horae.model.execution import Rerun
from horae.model.workflow import decide
from horae.model.workflow.flow import Ended, Pin
from horae.model.workflow.rerun import copies, kept_steps
from horae.store.moves import flow_results, flow_rows
from horae.store.moves.deferred import Deferred
from horae.store.moves.flow_course import Course, plans_of
from horae.store.moves.flow_rows import Held
from horae.store.script import Script


def taken_over(rerun: Rerun) -> Script[tuple[Held, list[Ended]] | None]:
    """The workflow that a rerun is of, and what of it stays done; None when nothing is known of it any more."""
    before = (yield from flow_rows.flows_of([rerun.of])).get(rerun.of)
    if before is None:
        return None
    plan = (yield from plans_of([(before.digest, before.flow.job, before.flow.version)]))[before.digest]
    known = (yield from flow_rows.some_steps(flow_rows.EVERY_STEP, [before.place]))[before.place]
    kept = kept_steps(plan, {row.step: row for row, _ in known}, rerun.since)
    if not kept:
        return before, []
    found = yield from flow_rows.steps_of([(*before.place, name, True) for name in kept])
    rows = {row.step: row for row, _ in found.values()}
    lying = [row for row in rows.values() if flow_results.lies_elsewhere(row, plan)]
    if lying:
        rows |= yield from flow_results.read(before.place, lying, plan)
    return before, copies(kept, rows, rerun)


def as_before(held: Held, before: Held, pins: dict[str, Pin]) -> Held:
    """A rerun of the version that was run, with the versions of jobs that its steps ran."""
    flow = structs.replace(held.flow, job=before.flow.job, version=before.flow.version, pins=pins)
    return structs.replace(held, flow=flow, digest=before.digest)


def begin(course: Course, rerun: Rerun, done: Sequence[Ended], moves: Deferred, now: Instant) -> Script[None]:
    """Begin with nothing running, take over what is done, and go on from there."""
    about = course.held.about
    flow = structs.replace(course.flow, paused=True, breakpoints=frozenset(rerun.breakpoints))
    yield from course.decide(decide.begin(course.plan, flow, about, now), moves, now)
    for ended in done:
        yield from course.decide(decide.after(course.plan, course.flow, about, [ended], now), moves, now)
    held = [row for row in course.rows.values() if row.state == "held"]
    yield from course.decide(decide.resume(course.plan, course.flow, about, held, now), moves, now)
