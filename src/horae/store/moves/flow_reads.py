"""Reading workflows for people: all of one, by a few statements whatever its steps have fanned out to."""

from uuid import UUID

from msgspec import Struct

from horae.model.workflow.plan import Plan
from horae.store.moves import flow_rows
from horae.store.moves.flow_course import plans_of
from horae.store.moves.flow_rows import Held, Pinned
from horae.store.script import Among, Script, Statement

NAMES = Statement("names_of_jobs", "SELECT id, name FROM jobs WHERE id = ANY($1)")


class Whole(Struct, frozen=True):
    """A workflow with its graph, its steps, and the names of the jobs that they run."""

    held: Held
    plan: Plan
    steps: list[Pinned]
    names: dict[UUID, str]


def whole(execution: UUID) -> Script[Whole | None]:
    """All of a workflow; None when the execution is none, or has not begun."""
    held = (yield from flow_rows.flows_of([execution])).get(execution)
    if held is None:
        return None
    plans = yield from plans_of([(held.digest, held.flow.job, held.flow.version)])
    steps = (yield from flow_rows.some_steps(flow_rows.EVERY_STEP, [held.place]))[held.place]
    jobs = {held.flow.job, *(pin.job for _, pin in steps if pin is not None)}
    names: dict[UUID, str] = dict((yield Among(NAMES, sorted(jobs))))
    return Whole(held, plans[held.digest], steps, names)
