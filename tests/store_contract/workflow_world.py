"""Helpers for workflows in the small world: define, begin, advance and run them as servers and workers do."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from uuid import UUID

import msgspec

from horae.env import Instant
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.definitions.job import Spec
from horae.model.executions.parcel import extras_of
from horae.model.executions.slice import RunningSlice
from horae.model.executions.submission import Submission
from horae.model.fleet.protocol import Outcome
from horae.model.workflows.decisions.values import Workflow, WorkflowStep
from horae.store.admission import lanes
from horae.store.definitions import jobs
from horae.store.script import Script
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows import begin as workflow_begin
from horae.store.workflows import cancel as workflow_cancel
from horae.store.workflows import due as workflow_due
from tests.store_contract.world import NAMESPACE, TestJob, World, success

Report = Callable[[RunningSlice], Outcome]


def step(name: str, job: TestJob | None = None, **more: Any) -> WorkflowStep:
    """Return a step that runs a job, or waits."""
    return WorkflowStep(name=name, job="" if job is None else str(job.id), **more)


async def workflow(
    world: World, *steps: WorkflowStep, name: str = "flow", on_error: Any = "fail", **spec: Any
) -> TestJob:
    """Create a job that is a workflow of these steps."""
    more = {key: spec.pop(key) for key in ("output", "on_success", "on_failure", "last") if key in spec}
    made = Spec(name=name, task=Workflow(steps=steps, on_error=on_error, **more), **spec)
    id, now = world.env.new_id(), world.now()

    def script() -> Script[TestJob]:
        q, lane = yield from lanes.ensure_lane(NAMESPACE, made.queue, made.lane_needs, "", now)
        assert (yield from jobs.add(id, NAMESPACE, made, q.id, lane.id, now)) is None
        return TestJob(id=id, spec=made, queue=q.id, lane=lane.id)

    return await world.store.write(script)


async def open_all(world: World) -> list[UUID]:
    """Begin queued workflows, as a server does; return their executions."""
    rows = await world.rows("SELECT id FROM lanes WHERE needs LIKE '%kind:workflow%'")
    views = [view for view in await world.views() if view.lane in {row[0] for row in rows}]
    opened = await world.store.change(
        lambda now: workflow_begin.open_some(views, 100, frozenset(), world.env.new_id, now)
    )
    return opened.executions


async def begin(world: World, job: TestJob, params: Mapping[str, Any] | None = None) -> UUID:
    """Submit a workflow and begin it."""
    wanted = [msgspec.structs.replace(world.wanted(job)[0], item=msgspec.json.encode(params or {}))]
    await world.store.submit([Submission(executions=wanted)])
    (execution,) = await open_all(world)
    return execution


async def look(world: World) -> workflow_due.DueResult:
    """Advance due workflows, and stop executions that are to be stopped, as a server does."""
    looked = await world.store.change(lambda now: workflow_due.advance_due(100, world.env.new_id, now))
    for execution in looked.stops:
        await stop(world, execution)
    return looked


async def stop(world: World, execution: UUID) -> None:
    """Cancel the executions of a workflow's steps that are to be stopped."""
    what = await world.store.read(lambda: workflow_cancel.to_stop(execution))
    if what is None:
        return
    for child, _ in what.children:
        await world.store.cancel(parcel_of(child), index_of(child), what.reason)
    for shelf in workflow_cancel.PENDING:
        move = partial(workflow_cancel.cancel_pending, shelf, what.parcels, what.reason, world.env.new_id)
        await world.store.change(lambda now: move(now, Consequences()))  # noqa: B023
    for child in await world.store.read(lambda: workflow_cancel.workflows_in(what.parcels)):
        await world.store.cancel(parcel_of(child), index_of(child), what.reason)
    for session in await world.store.read(lambda: workflow_cancel.sessions_of(what.parcels)):
        await world.store.change(lambda now: workflow_cancel.ask_session(session, what.parcels, what.reason, now))  # noqa: B023
    assert await world.store.read(lambda: workflow_cancel.left_of(what.parcels)) == []
    await world.store.change(
        lambda now: workflow_cancel.finish_stops(execution, what.stops, world.env.new_id, now, Consequences())
    )


async def steps(world: World, execution: UUID) -> dict[str, str]:
    """Return the state of each step by name."""
    rows = await world.rows(
        "SELECT step, state FROM flow_steps WHERE parcel = $1 AND item = $2 ORDER BY step",
        parcel_of(execution),
        index_of(execution),
    )
    return dict(rows)


async def state(world: World, execution: UUID) -> str:
    """Return the state of an execution, as users see it."""
    rows = await world.rows(
        "SELECT state FROM executions WHERE parcel = $1 AND item = $2", parcel_of(execution), index_of(execution)
    )
    return str(rows[0][0])


async def result(world: World, execution: UUID) -> Any:
    """Return the output of a workflow."""
    rows = await world.rows(
        "SELECT results FROM history WHERE parcel = $1 AND lo = $2", parcel_of(execution), index_of(execution)
    )
    return None if rows[0][0] is None else msgspec.json.decode(rows[0][0])


async def step_of(world: World, slice: RunningSlice) -> str:
    """Return the step to which a running slice belongs."""
    (parcel,) = await world.store.parcels([slice.parcel])
    return extras_of(parcel.extras, slice.lo, slice.hi)[0].step or ""


async def params_of(world: World, slice: RunningSlice) -> Any:
    """Return the params of the first item of a running slice."""
    (parcel,) = await world.store.parcels([slice.parcel])
    return msgspec.json.decode(parcel.items.one(slice.lo))


async def run(
    world: World, worker: Any, outcomes: Mapping[str, Report] | None = None, *, rounds: int = 100, **more: Any
) -> list[str]:
    """Run steps with the given outcomes, or successfully, until none is left; return their names in order of starts."""
    names: list[str] = []
    for _ in range(rounds):
        await open_all(world)
        held = await worker.claim(100, **more)
        if not held:
            break
        for slice in held:
            for item in range(slice.lo, slice.hi):
                one = msgspec.structs.replace(slice, lo=item, hi=item + 1)
                name = await step_of(world, one)
                names.append(name)
                await worker.report((outcomes or {}).get(name, success)(one))
    return names


def after(world: World, seconds: float) -> Instant:
    return world.now() + int(seconds * 1_000_000)


def child(slice: RunningSlice) -> UUID:
    return execution_id(slice.parcel, slice.lo)
