"""Scenes of dependencies: the transaction that completes a join starts the dependent, once, in any order."""

from typing import Any

from msgspec import structs

from horae.engine.definitions import job_changes
from horae.model.executions import submission
from horae.model.executions.execution import Extra
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Interval
from horae.store.triggers.dependencies import due_joins, joins
from tests.races.scenes import Cast, scene
from tests.races.stage import Move, Scene
from tests.store_contract.world import NAMESPACE, TestJob, Worker, World, add_trigger, failed, success

MINUTE = 60_000_000
HOUR = 60 * MINUTE
FIRST = (0, HOUR)


async def depending(world: World, *upstreams: TestJob, **spec: Any) -> TestJob:
    return await world.job("dependent", dependencies=tuple(str(up.id) for up in upstreams), **spec)


async def held(world: World, job: TestJob, **extra: Any) -> tuple[Worker, Any]:
    """Create a worker that holds one execution of a job."""
    await ask(world, job, **extra)
    w = await world.worker(job.spec.name)
    (slice,) = await w.claim(1, lanes=frozenset({job.lane}))
    return w, slice


async def ask(world: World, job: TestJob, patience: int | None = None, **extra: Any) -> Any:
    wanted = [structs.replace(one, extra=Extra(**extra), patience=patience) for one in world.wanted(job)]
    done = await world.store.submit([submission.Submission(executions=wanted)])
    return done.answers[0][0].execution_id


async def states(world: World, job: TestJob) -> list[str]:
    """Return the states of a job's executions, after a check of everything that is due."""
    now = world.now() + HOUR
    await world.store.write(lambda: due_joins.check_due_joins(100, world.env.new_id, now))
    rows = await world.rows("SELECT id FROM parcels WHERE job = $1 ORDER BY id", job.id)
    return sorted([state for row in rows for state in await world.states(row[0])])


def report(c: Cast, w: Worker, slice: Any, outcome: Any = success) -> Move:
    """Return a report of a worker that holds nothing else and asks for nothing."""
    return c.report(w, outcome(slice))


@scene("report / report, two upstreams of one interval")
async def _(world: World) -> Scene:
    a, b, e = await world.job("a", queue="a"), await world.job("b", queue="b"), await world.job("e", queue="e")
    d = await depending(world, a, b, e)
    early, first = await held(world, e, interval=FIRST)
    await early.report(success(first))
    (w, left), (v, right) = await held(world, a, interval=FIRST), await held(world, b, interval=FIRST)
    c = Cast(world, a)

    async def check(world: World, *_: Any) -> None:
        assert await states(world, d) == ["queued"], "a join of three was not started once"

    return Scene(left=[report(c, w, left)], right=[report(c, v, right)], check=check)


@scene("report / report, two upstreams that are counted")
async def _(world: World) -> Scene:
    a, b = await world.job("a", queue="a"), await world.job("b", queue="b")
    d = await depending(world, a, b)
    (w, left), (v, right) = await held(world, a), await held(world, b)
    c = Cast(world, a)

    async def check(world: World, *_: Any) -> None:
        assert await states(world, d) == ["queued"], "one success of each did not start one execution"
        rows = await world.rows("SELECT unused FROM dependencies")
        assert [row[0] for row in rows] == [0, 0], "a success was left over"

    return Scene(left=[report(c, w, left)], right=[report(c, v, right)], check=check)


@scene("report / report, two executions of one upstream and interval")
async def _(world: World) -> Scene:
    a = await world.job("a", queue="a")
    d = await depending(world, a)
    (w, left), (v, right) = await held(world, a, interval=FIRST), await held(world, a, interval=FIRST)
    c = Cast(world, a)

    async def check(world: World, *_: Any) -> None:
        assert await states(world, d) == ["queued"], "an interval did not start its dependent once"

    return Scene(left=[report(c, w, left)], right=[report(c, v, right, failed)], check=check)


@scene("report / report, upstreams of two dependents")
async def _(world: World) -> Scene:
    a, b = await world.job("a", queue="a"), await world.job("b", queue="b")
    ids = (str(a.id), str(b.id))
    made = [await world.job(f"d{i}", dependencies=ids) for i in range(2)]
    (w, left), (v, right) = await held(world, a, interval=FIRST), await held(world, b, interval=FIRST)
    c = Cast(world, a)

    async def check(world: World, *_: Any) -> None:
        assert [await states(world, d) for d in made] == [["queued"], ["queued"]], "a dependent was not started once"

    return Scene(left=[report(c, w, left)], right=[report(c, v, right)], check=check)


@scene("report / rescue, two upstreams of one interval")
async def _(world: World) -> Scene:
    a, b = await world.job("a", queue="a"), await world.job("b", queue="b", delivery="at-most-once")
    d = await depending(world, a, b, conditions={str(b.id): "failure"})
    (w, left), (v, _) = await held(world, a, interval=FIRST), await held(world, b, interval=FIRST)
    await v.lose()
    c = Cast(world, a)

    async def check(world: World, *_: Any) -> None:
        assert await states(world, d) == ["queued"], "a lost upstream did not complete the join"

    return Scene(left=[report(c, w, left)], right=[c.rescue(v)], check=check)


@scene("report / edit of dependencies, the other upstream is removed")
async def _(world: World) -> Scene:
    a, b = await world.job("a", queue="a"), await world.job("b", queue="b")
    d = await depending(world, a, b)
    w, slice = await held(world, a, interval=FIRST)
    before = await world.store.job(d.id, NAMESPACE)
    change = job_changes.JobDraft(spec=structs.replace(d.spec, dependencies=(str(a.id),)))
    c = Cast(world, a)
    edit = Move("edit", lambda: job_changes.edit(before, change, world.env.new_id, c.now))

    async def check(world: World, *_: Any) -> None:
        assert await states(world, d) == ["queued"], "an edit and a report did not start the dependent once"

    return Scene(left=[report(c, w, slice)], right=[edit], check=check)


@scene("report / delete of the dependent")
async def _(world: World) -> Scene:
    a = await world.job("a", queue="a")
    d = await depending(world, a)
    w, slice = await held(world, a, interval=FIRST)
    before = await world.store.job(d.id, NAMESPACE)
    c = Cast(world, a)
    delete = Move("delete", lambda: job_changes.delete(before, world.env.new_id, c.now, "pending"))

    async def check(world: World, *_: Any) -> None:
        assert await states(world, d) in ([], ["cancelled"]), "a deleted dependent was started"

    return Scene(left=[report(c, w, slice)], right=[delete], check=check)


@scene("report / cancel of the waiting execution")
async def _(world: World) -> Scene:
    a = await world.job("a", queue="a")
    d = await depending(world, a)
    waiting = await ask(world, d, patience=HOUR)
    w, slice = await held(world, a)
    c = Cast(world, a)

    async def check(world: World, *_: Any) -> None:
        assert await states(world, d) in (["cancelled"], ["queued"]), "the execution neither went on nor was cancelled"
        assert await world.store.read(lambda: joins.open_of(d.id)) == [], "a join has no execution"

    return Scene(left=[report(c, w, slice)], right=[c.cancel(waiting, 0)], check=check, patient="")


@scene("report / timeout of the waiting execution")
async def _(world: World) -> Scene:
    a = await world.job("a", queue="a")
    d = await depending(world, a)
    await ask(world, d, patience=1)
    w, slice = await held(world, a)
    c = Cast(world, a)
    look = Move("look", lambda: due_joins.check_due_joins(100, world.env.new_id, c.now))

    async def check(world: World, *_: Any) -> None:
        # After the timeout, the success starts another execution.
        assert await states(world, d) in (["failed", "queued"], ["queued"]), (
            "the execution neither went on nor timed out"
        )

    return Scene(left=[report(c, w, slice)], right=[look], check=check)


@scene("report / check, a retried upstream succeeds while its failure is reported")
async def _(world: World) -> Scene:
    a = await world.job("a", queue="a")
    d = await depending(world, a)
    w, slice = await held(world, a, interval=FIRST)
    await w.report(failed(slice))
    v, again = await held(world, a, interval=FIRST)
    c = Cast(world, a)
    look = Move("look", lambda: due_joins.check_due_joins(100, world.env.new_id, c.now))

    async def check(world: World, *_: Any) -> None:
        found = await states(world, d)
        assert found in (["queued"], ["queued", "skipped"]), "a skipped execution did not start after all"

    return Scene(left=[report(c, v, again)], right=[look], check=check)


@scene("check / check, one failed upstream")
async def _(world: World) -> Scene:
    a = await world.job("a", queue="a")
    d = await depending(world, a)
    w, slice = await held(world, a, interval=FIRST)
    await w.report(failed(slice))
    c = Cast(world, a)
    look = Move("look", lambda: due_joins.check_due_joins(100, world.env.new_id, c.now))

    async def check(world: World, *_: Any) -> None:
        assert await states(world, d) == ["skipped"], "a failure did not skip its dependent once"

    return Scene(left=[look], right=[look], check=check)


@scene("fire / report, a scheduled fire and the upstream of its interval")
async def _(world: World) -> Scene:
    a = await world.job("a", queue="a")
    d = await depending(world, a)
    start = world.now()
    await add_trigger(world, d, Interval(every=MINUTE, anchor=start), Rules(overlap="allow"))
    w, slice = await held(world, a, interval=(start, start + MINUTE))
    world.clock.advance(MINUTE)
    c = Cast(world, d)

    async def check(world: World, *_: Any) -> None:
        assert await states(world, d) == ["queued"], "a fire waits for an ended execution"

    return Scene(left=[c.fire()], right=[report(c, w, slice)], check=check)


@scene("submit / report, a requested wait and its upstream")
async def _(world: World) -> Scene:
    a = await world.job("a", queue="a")
    d = await depending(world, a)
    w, slice = await held(world, a)
    c = Cast(world, d)
    (wanted,) = [structs.replace(one, patience=HOUR) for one in world.wanted(d)]

    async def check(world: World, *_: Any) -> None:
        # A request before the success goes on with it; a request after it finds that the job was started.
        assert await states(world, d) in (["queued"], ["queued", "waiting"]), "a success was lost or used twice"

    return Scene(left=[c.submit(wanted)], right=[report(c, w, slice)], check=check)
