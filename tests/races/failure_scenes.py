"""Scenes of failures: an execution over its time ends once, whatever moves it, and is not forgotten by a
slower server.
"""

from typing import Any
from uuid import UUID

from horae.model.definitions.retry import RetryPolicy
from horae.model.definitions.timeouts import Timeouts
from horae.model.triggers.decisions.values import Interval
from horae.store.executions.leaving import timeouts
from horae.store.triggers import streaks
from tests.races.scenes import Cast, cast, scene
from tests.races.stage import Move, Scene
from tests.store_contract.world import NAMESPACE, World, add_trigger, failed

QUEUE = {"timeouts": Timeouts(queue=5)}
WHOLE = {"retry": RetryPolicy(within=4)}
HOUR = 3_600_000_000


def end(c: Cast) -> Move:
    return Move("end overdue", lambda: timeouts.end_overdue(10, c.new_id, c.now))


def of(parcel: UUID, n: int) -> Any:
    """Check that each item has ended once or goes on with another check scheduled."""

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        states = await world.states(parcel)
        assert len(states) == n, "an item is lost"
        rows = await world.rows("SELECT sum(hi - lo) FROM history WHERE parcel = $1", parcel)
        final = sum(state in ("failed", "cancelled") for state in states)
        assert (rows[0][0] or 0) == final, "an item ended twice"
        kept = await world.rows("SELECT at FROM timeouts WHERE parcel = $1", parcel)
        assert len(kept) == 1 or final == n, "a live item is not checked again"

    return check


@scene("end overdue / claim")
async def _(world: World) -> Scene:
    c = await cast(world, **QUEUE)
    parcel = await world.parcel(c.job, 3)
    return Scene(left=[end(c)], right=[c.claim(await world.worker(), 2)], check=of(parcel, 3), patient="")


@scene("end overdue / end overdue, two servers")
async def _(world: World) -> Scene:
    c = await cast(world, **QUEUE)
    parcel = await world.parcel(c.job, 3)
    return Scene(left=[end(c)], right=[end(c)], check=of(parcel, 3), patient="")


@scene("end overdue / promote")
async def _(world: World) -> Scene:
    c = await cast(world, **WHOLE)
    parcel = await world.parcel(c.job, 3, due_at=world.now() + 1)
    return Scene(left=[end(c)], right=[c.promote()], check=of(parcel, 3), patient="")


@scene("end overdue / cancel")
async def _(world: World) -> Scene:
    c = await cast(world, **QUEUE)
    parcel = await world.parcel(c.job, 3)
    return Scene(left=[end(c)], right=[c.cancel(parcel, 1)], check=of(parcel, 3))


@scene("end overdue / rescue")
async def _(world: World) -> Scene:
    c = await cast(world, **WHOLE)
    parcel = await world.parcel(c.job, 3)
    w = await world.worker()
    await w.claim(2)
    await w.lose()
    return Scene(left=[end(c)], right=[c.rescue(w)], check=of(parcel, 3))


@scene("pause after failures / resume, pause after failures")
async def _(world: World) -> Scene:
    c = await cast(world, pause_after=1)
    await add_trigger(world, c.job, Interval(every=HOUR), name="hourly")
    await world.parcel(c.job, 1)
    w = await world.worker()
    (slice,) = await w.claim(1)
    await w.report(failed(slice))
    pause = Move("pause", lambda: streaks.pause_if_failing(c.job.id, c.now))
    resume = Move("resume", lambda: streaks.resume(c.job.id, NAMESPACE, 1, c.now + 1))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        (trigger,) = await world.rows("SELECT state FROM triggers")
        (row,) = await world.rows("SELECT paused_at FROM streaks")
        assert (trigger[0] == "paused") == (row[0] is not None), "the trigger and the reason contradict each other"
        assert sum(done is not None for done in (*left, right[1])) <= 1 or right[0], "paused twice"

    return Scene(left=[pause], right=[resume, pause], check=check)
