"""Scenes of holds: after the acknowledgement of a hold, nothing of its queue is started, whatever was under way."""

from typing import Any

from horae.model.admission.hold import NEVER, Hold
from horae.model.base.instant import format_instant
from horae.model.triggers.calendars.read import parse_times
from horae.model.triggers.calendars.resolve import current_calendar
from horae.store.admission import holds
from tests.races.scenes import MINUTE, Cast, cast, holding, replies, scene
from tests.races.stage import Move, Scene
from tests.store_contract.world import NAMESPACE, World, success


def held(c: Cast, **more: Any) -> list[Move]:
    """Hold the job's queue, and read the running executions after the acknowledgement."""
    fields = {"queue": c.job.queue, "until_at": c.now + MINUTE, "created_at": c.now, **more}
    hold = Hold(id=c.new_id(), namespace=NAMESPACE, **fields)
    return [Move("hold", lambda: holds.open_hold(hold)), Move("look", lambda: holds.running_by_queue(NAMESPACE))]


async def begun_is_known(world: World, left: list[Any], right: list[Any]) -> None:
    """Check that every execution running at the end ran when the hold was acknowledged."""
    assert await world.store.read(lambda: holds.running_by_queue(NAMESPACE)) == left[-1], (
        "an execution was started under a hold"
    )


@scene("hold / claim")
async def _(world: World) -> Scene:
    c = await cast(world)
    await world.parcel(c.job, 2)
    w = await world.worker()
    return Scene(left=held(c), right=[c.claim(w, 2)], check=begun_is_known)


@scene("hold / claim for parked exchanges")
async def _(world: World) -> Scene:
    c = await cast(world)
    await world.parcel(c.job, 2)
    a, b = await world.worker("a"), await world.worker("b")
    return Scene(left=held(c), right=[c.serve((a, 1), (b, 1))], check=begun_is_known)


@scene("hold of the namespace / two claims")
async def _(world: World) -> Scene:
    c = await cast(world)
    await world.parcel(c.job, 2)
    a, b = await world.worker("a"), await world.worker("b")
    return Scene(left=held(c, queue=None), right=[c.claim(a), c.claim(b)], check=begun_is_known)


@scene("hold / report and claim")
async def _(world: World) -> Scene:
    c = await cast(world)
    _, w, slice = await holding(c, 1)
    await world.parcel(c.job, 1)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        running = (await world.store.read(lambda: holds.running_by_queue(NAMESPACE))).get(c.job.queue, 0)
        assert running <= left[-1].get(c.job.queue, 0), "an execution was started under a hold"
        granted = sum(s.hi - s.lo for reply in replies(right) for s in reply.granted)
        assert running == granted, "a granted execution does not run"

    return Scene(left=held(c), right=[c.report(w, success(slice), free=1)], check=check)


@scene("hold / hand over")
async def _(world: World) -> Scene:
    c = await cast(world)
    w = await world.worker()
    return Scene(left=held(c), right=[c.hand_over(w)], check=begun_is_known)


@scene("a hold is prolonged / its time is over")
async def _(world: World) -> Scene:
    c = await cast(world)
    first, _ = held(c, reason="deploy", until_at=c.now - 1, created_at=c.now - MINUTE)
    await world.store.write(first.make)
    again, _ = held(c, reason="deploy")
    turn = Move("turn", lambda: holds.advance(c.now))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        open_now = await world.store.read(holds.all_open)
        assert [hold.until_at for hold in open_now] == [c.now + MINUTE], "a hold that was prolonged is gone"

    return Scene(left=[again], right=[turn], check=check)


@scene("advance / advance")
async def _(world: World) -> Scene:
    c = await cast(world)
    first, _ = held(c, until_at=c.now - 1, created_at=c.now - MINUTE)
    await world.store.write(first.make)
    turn = Move("turn", lambda: holds.advance(c.now))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert len(left[0].ended) + len(right[0].ended) == 1, "a hold ended twice, or never"

    return Scene(left=[turn], right=[turn], check=check, patient="")


@scene("a window's calendar changes / claim")
async def _(world: World) -> Scene:
    c = await cast(world)
    await world.parcel(c.job, 2)
    w = await world.worker()
    window, look = held(c, calendar="nights", from_at=NEVER, until_at=None)
    await world.store.write(window.make)
    times = parse_times({"windows": [f"{format_instant(c.now - MINUTE)}/{format_instant(c.now + MINUTE)}"]})
    change = Move(
        "follow", lambda: holds.follow(NAMESPACE, {"nights": current_calendar("nights", {"nights": times})}, c.now)
    )
    return Scene(left=[change, look], right=[c.claim(w, 2)], check=begun_is_known)
