"""Scenes of limits: no key, queue or rate is exceeded, and no execution waits while there is room."""

from typing import Any

from msgspec import structs

from horae.model.admission.claim_plan import LaneState
from horae.model.admission.keys import EnvelopeKeys
from horae.model.admission.limits import KeyLimit, Limit, key_name, queue_limit, sequence_name
from horae.model.admission.rate import Rate
from horae.model.definitions.retry import RetryPolicy
from horae.model.executions import submission
from horae.store.admission import coarse, holder_sweep
from horae.store.executions.entering import submit
from horae.store.executions.leaving import cancel
from tests.races.scenes import MINUTE, Cast, cast, scene
from tests.races.stage import Move, Scene
from tests.store_contract.world import World, failed, success

AT_ONCE = 2


class Limited(Cast):
    """A job whose executions share one key with a limit, or a sequence, or a rate."""

    keys: EnvelopeKeys

    def submit_keyed(self, n: int = 1) -> Move:
        wanted = submission.Submission(executions=self.world.wanted(self.job, n, keys=self.keys))
        return Move("submit", lambda: submit.submit([wanted], self.new_id, self.now))

    async def parcels(self, count: int) -> list[Any]:
        return [await self.world.parcel(self.job, keys=self.keys) for _ in range(count)]


async def limited(world: World, **more: Any) -> Limited:
    c = await cast(world, limits=(KeyLimit(key="k", concurrency=AT_ONCE),), **more)
    made = Limited(c.world, c.job)
    made.keys = EnvelopeKeys(limits=(key_name(c.job.id, "k", "a"),))
    return made


async def in_sequence(world: World, **more: Any) -> Limited:
    c = await cast(world, sequence="k", **more)
    made = Limited(c.world, c.job)
    made.keys = EnvelopeKeys(sequence=sequence_name(c.job.id, "a"))
    return made


def at_most(most: int) -> Any:
    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        holding = [*await world.on("queued"), *await world.on("running")]
        held = sum(s.hi - s.lo for s in holding)
        assert held <= most, f"{held} hold a key that allows {most}"

    return check


within = at_most(AT_ONCE)
alone = at_most(1)


@scene("submit / submit under a key")
async def _(world: World) -> Scene:
    c = await limited(world)
    return Scene(left=[c.submit_keyed(2)], right=[c.submit_keyed(2)], check=within)


@scene("report that frees a key / submit under it")
async def _(world: World) -> Scene:
    c = await limited(world)
    await c.parcels(2)
    w = await world.worker()
    held = await w.claim(2)
    return Scene(left=[c.report(w, success(held[0]))], right=[c.submit_keyed()], check=within)


@scene("report / report, both free a key")
async def _(world: World) -> Scene:
    c = await limited(world)
    await c.parcels(4)
    a, b = await world.worker("a"), await world.worker("b")
    (first,), (second,) = await a.claim(1), await b.claim(1)
    return Scene(left=[c.report(a, success(first))], right=[c.report(b, success(second))], check=within)


@scene("report that frees a key / cancel of an execution waiting for it")
async def _(world: World) -> Scene:
    c = await limited(world)
    parcels = await c.parcels(3)
    w = await world.worker()
    held = await w.claim(2)
    gone = next(parcel for parcel in parcels if parcel not in {s.parcel for s in held})
    stop = Move("cancel", lambda: cancel.cancel(gone, 0, "", c.now, c.new_id))
    return Scene(left=[c.report(w, success(held[0]))], right=[stop], check=within)


@scene("failure that gives a key back / promotion of a retry under it")
async def _(world: World) -> Scene:
    c = await limited(world, retry=RetryPolicy(retries=3, delay=MINUTE, jitter=0))
    await c.parcels(2)
    w = await world.worker()
    first, second = await w.claim(2)
    await w.report(failed(first), policies=c.job.policy)
    await c.parcels(2)
    world.clock.advance(2 * MINUTE)
    c = structs_at(c)
    return Scene(left=[c.report(w, failed(second))], right=[c.promote()], check=within)


def structs_at(c: Limited) -> Limited:
    """Return the same cast at the present instant."""
    made = Limited(c.world, c.job)
    made.keys = c.keys
    return made


@scene("rescue that frees a key / submit under it")
async def _(world: World) -> Scene:
    c = await limited(world, delivery="at-most-once")
    await c.parcels(3)
    w = await world.worker()
    await w.claim(2)
    return Scene(left=c.lose(w), right=[c.submit_keyed()], check=within)


@scene("sweep of a key / report that frees it")
async def _(world: World) -> Scene:
    c = await limited(world)
    await c.parcels(3)
    w = await world.worker()
    held = await w.claim(2)
    sweep = Move("admitted", lambda: holder_sweep.admit(c.keys.limits, c.now))
    return Scene(left=[c.report(w, success(held[0]))], right=[sweep], check=within)


@scene("submit / submit in a sequence")
async def _(world: World) -> Scene:
    c = await in_sequence(world)
    return Scene(left=[c.submit_keyed(2)], right=[c.submit_keyed(2)], check=alone)


@scene("report / submit in a sequence")
async def _(world: World) -> Scene:
    c = await in_sequence(world)
    await c.parcels(2)
    w = await world.worker()
    (held,) = await w.claim(1)
    return Scene(left=[c.report(w, success(held))], right=[c.submit_keyed()], check=alone)


@scene("report / cancel of the next in a sequence")
async def _(world: World) -> Scene:
    c = await in_sequence(world)
    _, second, _ = await c.parcels(3)
    w = await world.worker()
    (held,) = await w.claim(1)
    stop = Move("cancel", lambda: cancel.cancel(second, 0, "", c.now, c.new_id))
    return Scene(left=[c.report(w, success(held))], right=[stop], check=alone)


async def narrow(world: World, **said: Any) -> Cast:
    """Create a queue with a limit that the claims know."""
    c = await cast(world)
    if said:
        await world.store.write(lambda: coarse.put(Limit(**said), queue=c.job.queue))
    c.views = [LaneState(lane=c.job.lane, limits=(queue_limit(c.job.queue),))]
    await world.parcel(c.job, 4)
    return c


def running(most: int) -> Any:
    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        held = sum(s.hi - s.lo for s in await world.on("running"))
        assert held <= most, f"{held} run in a queue that allows {most}"

    return check


@scene("claim / claim under a queue's limit")
async def _(world: World) -> Scene:
    c = await narrow(world, concurrency=1)
    a, b = await world.worker("a"), await world.worker("b")
    return Scene(left=[c.claim(a, 2)], right=[c.claim(b, 2)], check=running(1))


@scene("report and claim / claim under a queue's limit")
async def _(world: World) -> Scene:
    c = await narrow(world, concurrency=1)
    a, b = await world.worker("a"), await world.worker("b")
    (held,) = await a.claim(1, views=c.views)
    return Scene(left=[c.report(a, success(held), free=2)], right=[c.claim(b, 2)], check=running(1))


@scene("claim / claim under a queue's rate")
async def _(world: World) -> Scene:
    c = await narrow(world, rate=Rate(1, MINUTE))
    a, b = await world.worker("a"), await world.worker("b")
    return Scene(left=[c.claim(a, 2)], right=[c.claim(b, 2)], check=running(1))


@scene("limit of a queue / claim without knowledge of it")
async def _(world: World) -> Scene:
    c = await narrow(world)
    c.views = [structs.replace(view, limits=()) for view in c.views]
    w = await world.worker()

    def set_limit() -> Any:
        yield from coarse.put(Limit(concurrency=1), queue=c.job.queue)

    def count() -> Any:
        found = yield from coarse.lock_rooms([queue_limit(c.job.queue)], c.now)
        return found.available([queue_limit(c.job.queue)], c.job.lane)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        held = sum(s.hi - s.lo for s in await world.on("running"))
        assert left[-1] == 1 - held, "an execution was started that the new limit did not count"

    return Scene(left=[Move("limit", set_limit), Move("look", count)], right=[c.claim(w, 1)], check=check)


@scene("claim / claim under a key's rate")
async def _(world: World) -> Scene:
    c = await cast(world, limits=(KeyLimit(key="k", rate=Rate(1, MINUTE)),))
    keys = EnvelopeKeys(limits=(key_name(c.job.id, "k", "a"),), rated=True)
    for _ in range(4):
        await world.parcel(c.job, keys=keys)
    await world.do("INSERT INTO rates (name, pace) VALUES ($1, 0)", keys.limits[0])
    a, b = await world.worker("a"), await world.worker("b")
    return Scene(left=[c.claim(a, 1)], right=[c.claim(b, 1)], check=running(1))
