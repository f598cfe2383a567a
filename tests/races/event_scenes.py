"""Scenes of events and watches: each event is decided once at each trigger, and each object version fires once."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from msgspec import structs

from horae.engine.definitions import job_changes
from horae.features.events.store import events, watches
from horae.features.events.store.watches import FoundObject, LeaseLost, Poll
from horae.model.triggers.decisions.external import EventTrigger, WatchTrigger
from horae.model.triggers.decisions.named_trigger import NamedTrigger
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.events.values import NewEvent
from tests.races.duel import LEFT
from tests.races.scenes import Cast, cast, scene
from tests.races.stage import Move, Scene
from tests.store_contract.moves.test_events import fits
from tests.store_contract.world import NAMESPACE, World, add_trigger, lead

ALLOW = Rules(overlap="allow")
PLACE = WatchTrigger(url="s3://bucket/in/", existing="fire")


async def listening(world: World, rules: Rules = ALLOW) -> Cast:
    c = await cast(world)
    await add_trigger(world, c.job, EventTrigger(event="upload"), rules, name="schedule")
    return c


def taking(c: Cast, *ids: str) -> Move:
    given = [NewEvent(name="upload", id=id) for id in ids]
    return Move("take_events", lambda: events.take(NAMESPACE, given, lead, fits, c.new_id, c.now))


async def fired(world: World) -> tuple[int, int, int]:
    """Return the number of events, of decisions that fired, and of executions."""
    kept = await world.rows("SELECT id FROM events")
    fires = await world.rows("SELECT execution FROM event_fires WHERE disposition = 'fired'")
    items = await world.rows("SELECT coalesce(sum(n), 0) FROM parcels")
    return len(kept), len({row[0] for row in fires}), int(items[0][0])


@scene("event / event, the same")
async def _(world: World) -> Scene:
    c = await listening(world)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await fired(world) == (1, 1, 1), "an event fired twice, or never"
        told = [event for taken in left + right for event in taken.events]
        assert sorted(event.repeated for event in told) == [False, True]
        assert told[0].outcomes == told[1].outcomes, "one event got two answers"

    return Scene(left=[taking(c, "e1")], right=[taking(c, "e1")], check=check)


@scene("event / event, the same in two orders")
async def _(world: World) -> Scene:
    c = await listening(world)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await fired(world) == (3, 3, 3), "an event fired twice, or never"

    return Scene(left=[taking(c, "a", "b", "c")], right=[taking(c, "c", "b", "a")], check=check)


@scene("event / event, at most one fire")
async def _(world: World) -> Scene:
    c = await listening(world, Rules(overlap="allow", max_fires=1))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await fired(world) == (2, 1, 1), "more executions fired than allowed"

    return Scene(left=[taking(c, "a")], right=[taking(c, "b")], check=check)


@scene("event / event, no overlap")
async def _(world: World) -> Scene:
    c = await listening(world, Rules(overlap="skip"))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await fired(world) == (2, 1, 1), "two executions overlapped"

    return Scene(left=[taking(c, "a")], right=[taking(c, "b")], check=check)


@scene("event / delete")
async def _(world: World) -> Scene:
    c = await listening(world)
    before = await world.store.job(c.job.id, NAMESPACE)
    delete = Move("delete", lambda: job_changes.delete(before, c.new_id, c.now, "pending"))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await world.on("queued") == [], "an execution of a deleted job is queued"

    return Scene(left=[taking(c, "a")], right=[delete], check=check)


def editing(c: Cast, before: Any, trigger: EventTrigger | WatchTrigger) -> Move:
    spec = structs.replace(c.job.spec, description="changed")
    change = job_changes.JobDraft(spec=spec, whens=[NamedTrigger(trigger=trigger, rules=ALLOW)])
    return Move("edit", lambda: job_changes.edit(before, change, c.new_id, c.now))


@scene("event / edit of the trigger")
async def _(world: World) -> Scene:
    c = await listening(world)
    before = await world.store.job(c.job.id, NAMESPACE)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert right == [True], "an edit met another edit"
        assert await fired(world) == (1, 1, 1), "both versions of a trigger handled an event, or none"

    edit = editing(c, before, EventTrigger(event="upload", filter="${true}"))
    return Scene(left=[taking(c, "a")], right=[edit], check=check)


# Watches


async def watching(world: World) -> Cast:
    c = await cast(world)
    await add_trigger(world, c.job, PLACE, ALLOW, name="schedule")
    return c


async def looking(world: World) -> Poll:
    (poll,) = await world.store.change(lambda now: watches.lease_due(1, now))
    return poll


def found(*objects: int) -> list[FoundObject]:
    return [
        FoundObject(object=UUID(int=n + 1), event=NewEvent(name="in", id=f"o{n}", scope="watch:1"), silent=False)
        for n in objects
    ]


def seeing(c: Cast, poll: Poll, *objects: int) -> Move:
    given = found(*objects)
    make: Callable[[], Any] = lambda: watches.record_found(poll, given, lead, fits, c.new_id, c.now)  # noqa: E731
    return Move("see_objects", make, refusals=(LeaseLost,))


@scene("watch / watch, one object found twice")
async def _(world: World) -> Scene:
    c = await watching(world)
    poll = await looking(world)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await fired(world) == (3, 3, 3), "an object version fired twice, or never"

    return Scene(left=[seeing(c, poll, 1, 2)], right=[seeing(c, poll, 3, 2)], check=check)


@scene("watch / due, a scan that takes too long")
async def _(world: World) -> Scene:
    c = await watching(world)
    poll = await looking(world)
    late = c.now + watches.LEASE
    due = Move("due_watches", lambda: watches.lease_due(1, late))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        ((polled_at, next_poll_at),) = await world.rows("SELECT polled_at, next_poll_at FROM watches")
        assert (polled_at == late) == bool(right[0]), "a scan lost its watch without noticing"
        assert not right[0] or next_poll_at == late + watches.LEASE, "an outdated scan changed the time of the next one"

    return Scene(left=[seeing(c, poll, 1)], right=[due], check=check, patient=LEFT)


@scene("due / due, one watch")
async def _(world: World) -> Scene:
    c = await watching(world)
    due = Move("due_watches", lambda: watches.lease_due(1, c.now))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert sorted(map(len, left + right)) == [0, 1], "two servers scan one location, or none"

    return Scene(left=[due], right=[due], check=check, patient="")


@scene("watch / edit of the trigger")
async def _(world: World) -> Scene:
    c = await watching(world)
    before = await world.store.job(c.job.id, NAMESPACE)
    poll = await looking(world)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert right == [True]
        assert await fired(world) == (1, 1, 1), "an object is lost, or fired by both versions"

    edit = editing(c, before, structs.replace(PLACE, interval=1_000_000))
    return Scene(left=[seeing(c, poll, 1)], right=[edit], check=check)


@scene("watch / delete")
async def _(world: World) -> Scene:
    c = await watching(world)
    before = await world.store.job(c.job.id, NAMESPACE)
    poll = await looking(world)
    delete = Move("delete", lambda: job_changes.delete(before, c.new_id, c.now, "pending"))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await world.on("queued") == [], "an execution of a deleted job is queued"

    return Scene(left=[seeing(c, poll, 1)], right=[delete], check=check)
