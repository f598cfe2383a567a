"""Scenes of single triggers and of turns: a fire under way is decided once, and a turn has at most one holder."""

from typing import Any
from uuid import UUID

from msgspec import structs

from horae.engine.definitions import job_changes
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.triggers.decisions.named_trigger import NamedTrigger
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Interval
from horae.store.triggers import turns
from horae.store.triggers.turns import turn_key
from tests.races.duel import LEFT
from tests.races.scenes import MINUTE, Cast, cast, scene
from tests.races.stage import Move, Scene
from tests.store_contract.world import NAMESPACE, World, add_trigger, lead, rank, success

EVERY = 1_000_000


async def due(world: World, overlap: str = "allow", *, fires: int = 1) -> Cast:
    """Create a job with one trigger, "often", that has due fires."""
    c = await cast(world)
    rules = Rules(overlap=overlap, grace=MINUTE)
    await add_trigger(world, c.job, Interval(every=EVERY, anchor=world.now()), rules, "often")
    c.now += fires * EVERY
    return c


async def covered(world: World, c: Cast) -> None:
    """Check that all fires up to now are in the ledger once, and that each fire that ran has one execution."""
    rows = await world.rows("SELECT execution FROM fires WHERE disposition = 'fired'")
    items = await world.rows("SELECT coalesce(sum(n), 0) FROM parcels")
    assert len({row[0] for row in rows}) == len(rows) == int(items[0][0]), (
        "a nominal fire ran twice, or without a record"
    )
    assert len(await world.rows("SELECT last FROM fires")) == 1, "a nominal fire was decided twice, or never"


async def changing(c: Cast, when: NamedTrigger | None, **changes: Any) -> Move:
    before = await c.world.store.job(c.job.id, NAMESPACE)
    assert before is not None
    spec = structs.replace(c.job.spec, description="changed", **changes)
    draft = job_changes.JobDraft(spec=spec, whens=[] if when is None else [when])
    return Move("edit", lambda: job_changes.edit(before, draft, c.new_id, c.now))


@scene("fire / edit of the trigger")
async def _(world: World) -> Scene:
    c = await due(world)
    edit = await changing(c, NamedTrigger(name="often", trigger=Interval(every=2 * EVERY, anchor=world.now())))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        await covered(world, c)
        assert len(await world.rows("SELECT trigger_id FROM timers")) == 1

    return Scene(left=[c.fire()], right=[edit], check=check)


@scene("fire / other rules of the trigger")
async def _(world: World) -> Scene:
    """The new version decides the fires that the old one left: in any order, each fire is decided once."""
    c = await due(world)
    same = Interval(every=EVERY, anchor=world.now())
    edit = await changing(c, NamedTrigger(name="often", trigger=same, rules=Rules(overlap="allow", grace=2 * MINUTE)))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        await world.store.write(lambda: _fire(c))
        await covered(world, c)

    return Scene(left=[c.fire()], right=[edit], check=check)


def _fire(c: Cast) -> Any:
    return c.fire().make()


@scene("fire / removal of the trigger")
async def _(world: World) -> Scene:
    c = await due(world)
    edit = await changing(c, None)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        await covered(world, c)
        assert await world.rows("SELECT trigger_id FROM timers") == [], "a removed trigger came back"

    return Scene(left=[c.fire()], right=[edit], check=check)


@scene("fire / pause of the trigger")
async def _(world: World) -> Scene:
    c = await due(world)
    before = await world.store.job(c.job.id, NAMESPACE)
    assert before is not None
    pause = Move("pause_trigger", lambda: job_changes.switch(before, "often", "paused")(c.now))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        ((next_fire, state),) = await world.rows(
            "SELECT t.next_fire_at, g.state FROM timers t JOIN triggers g ON g.id = t.trigger_id"
        )
        assert (next_fire, state) == (None, "paused"), "a paused trigger will fire"

    return Scene(left=[c.fire()], right=[pause], check=check)


# Turns


async def taken(world: World, overlap: str) -> tuple[Cast, UUID]:
    """Create a trigger whose first execution is queued; the next fire is due."""
    c = await due(world, overlap)
    world.clock.advance(EVERY + 5)
    (parcel,) = (await world.store.fire(10, lead)).parcels
    c.now = world.now() + EVERY
    return c, execution_id(parcel.id, 0)


def passing(c: Cast) -> Move:
    key = turn_key(c.job.id, "often")
    return Move("pass_on", lambda: turns.pass_on(key, rank, c.new_id, c.now))


async def one_at_a_time(world: World) -> None:
    """Check that at most one execution has the turn."""
    live = " UNION ALL ".join(
        f"SELECT parcel, lo, hi FROM {shelf}" for shelf in ("waiting WHERE reason <> 'overlap'", "queued", "running")
    )
    ((count,),) = await world.rows(f"SELECT coalesce(sum(hi - lo), 0) FROM ({live}) AS live")
    assert count <= 1, "two executions of one trigger have the turn"


@scene("fire / report of the holder of the turn")
async def _(world: World) -> Scene:
    c, _ = await taken(world, "queueOne")
    w = await world.worker()
    (slice,) = await w.claim(1)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        await one_at_a_time(world)
        await world.store.write(lambda: passing(c).make())
        assert await world.rows("SELECT parcel FROM waiting") == [], "a waiting execution never gets its turn"

    return Scene(left=[c.fire()], right=[c.report(w, success(slice))], check=check, patient=LEFT)


@scene("fire / passing the turn")
async def _(world: World) -> Scene:
    """The last execution has ended and the next waits, when one more fires."""
    c, first = await taken(world, "queueAll")
    world.clock.advance(EVERY)
    await world.store.fire(10, lead)
    await world.store.cancel(parcel_of(first), index_of(first), "")
    c.now = world.now() + EVERY

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        await one_at_a_time(world)
        ((holders,),) = await world.rows("SELECT count(*) FROM holders")
        assert holders == 1

    return Scene(left=[c.fire()], right=[passing(c)], check=check, patient=LEFT)


@scene("a read of turns / passing the turn")
async def _(world: World) -> Scene:
    """Before its decision, a fire sees that the next execution waits, or has its turn."""
    c, first = await taken(world, "queueAll")
    world.clock.advance(EVERY)
    await world.store.fire(10, lead)
    await world.store.cancel(parcel_of(first), index_of(first), "")
    key = turn_key(c.job.id, "often")

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert not left[0][key].is_free, "a turn that was passed on meanwhile seemed free"

    return Scene(left=[Move("look", lambda: turns.read_turns({key}))], right=[passing(c)], check=check, patient=LEFT)


@scene("fire that replaces / passing the turn")
async def _(world: World) -> Scene:
    c, first = await taken(world, "queueOne")
    world.clock.advance(EVERY)
    await world.store.fire(10, lead)
    await world.store.cancel(parcel_of(first), index_of(first), "")
    c.now = world.now() + EVERY

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        await one_at_a_time(world)
        ((waiting,),) = await world.rows("SELECT count(*) FROM waiting WHERE reason = 'overlap'")
        assert waiting <= 1, "more executions than the newest wait"

    return Scene(left=[c.fire()], right=[passing(c)], check=check, patient=LEFT)


@scene("passing the turn / passing the turn")
async def _(world: World) -> Scene:
    c, first = await taken(world, "queueAll")
    for _ in range(2):
        world.clock.advance(EVERY)
        await world.store.fire(10, lead)
    await world.store.cancel(parcel_of(first), index_of(first), "")
    c.now = world.now()

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        await one_at_a_time(world)
        assert sum(done.rows for done in left + right) == 1, "a turn was passed to two executions, or to none"

    return Scene(left=[passing(c)], right=[passing(c)], check=check, patient="")


@scene("forgetting turns / fire")
async def _(world: World) -> Scene:
    c, first = await taken(world, "queueAll")
    await world.store.cancel(parcel_of(first), index_of(first), "")
    forget = Move("forget_turns", lambda: turns.forget("", 10))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        await one_at_a_time(world)
        ((holders,),) = await world.rows("SELECT count(*) FROM holders")
        assert holders == 1, "the turn of a fired execution is deleted"

    return Scene(left=[forget], right=[c.fire()], check=check)
