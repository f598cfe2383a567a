"""Reading workflows for people: all of one, by a few statements whatever its steps have fanned out to."""

from collections.abc import Collection, Iterable
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.definitions.job import Spec
from horae.model.workflows.decisions.flow import StepRow
from horae.model.workflows.decisions.plan import Plan
from horae.model.workflows.decisions.values import Wait, Workflow
from horae.store.base.shelves import ITEM
from horae.store.definitions.jobs import definitions
from horae.store.script import Among, ForEach, Script, Statement
from horae.store.workflows import rows as flow_rows
from horae.store.workflows import times as flow_times
from horae.store.workflows import waits as flow_waits
from horae.store.workflows.course import digest_of, plan_by, plans_of
from horae.store.workflows.rows import Held, Pinned

VERSIONS = Statement("present_versions", "SELECT id, version FROM jobs WHERE id = ANY($1)")
NAMES = Statement("names_of_jobs", "SELECT id, name FROM jobs WHERE id = ANY($1)")


class Whole(Struct, frozen=True):
    """A workflow with its graph, its steps, and the names of the jobs that they run."""

    held: Held
    plan: Plan
    steps: list[Pinned]
    names: dict[UUID, str]
    waits: dict[str, Wait]  # what its steps wait for that do, but for time alone
    starts: dict[str, Instant | None] = {}  # when steps first began to run; None: not yet, or never


def present_plan(job: UUID) -> Script[Plan | None]:
    """The graph of a workflow's present version; None when it is none any more."""
    versions = [(id, version) for id, version in (yield Among(VERSIONS, [job]))]
    for spec in (yield from definitions(versions)).values():
        task = msgspec.json.decode(spec, type=Spec).task
        if isinstance(task, Workflow):
            return plan_by(digest_of(task), task)
    return None


def whole(execution: UUID) -> Script[Whole | None]:
    """All of a workflow; None when the execution is none, or has not begun."""
    held = (yield from flow_rows.flows_of([execution])).get(execution)
    if held is None:
        return None
    plans = yield from plans_of([(held.digest, held.flow.job, held.flow.version)])
    steps = (yield from flow_rows.some_steps(flow_rows.EVERY_STEP, [held.place]))[held.place]
    jobs = {held.flow.job, *(pin.job for _, pin in steps if pin is not None)}
    names: dict[UUID, str] = dict((yield Among(NAMES, sorted(jobs))))
    waits = yield from _waits(held, steps)
    starts = yield from flow_times.starts_of(execution, held.place, (row for row, _ in steps))
    return Whole(held, plans[held.digest], steps, names, waits, starts)


def failed_steps(executions: Collection[UUID]) -> Script[dict[UUID, list[StepRow]]]:
    """Return the steps that failed, by their workflow; executions that are no workflows have none."""
    rows = yield ForEach(flow_rows.FAILED_STEPS, ITEM, sorted((parcel_of(id), index_of(id)) for id in executions))
    found: dict[UUID, list[StepRow]] = {}
    for row in rows:
        found.setdefault(execution_id(row[0], row[1]), []).append(flow_rows.read_step(row)[0])
    return found


def _waits(held: Held, steps: Iterable[Pinned]) -> Script[dict[str, Wait]]:
    if not any(row.state == "waiting" for row, _ in steps):
        return {}
    return {step: wait for step, _, _, wait in (yield from flow_waits.waits_of(held.place))}
