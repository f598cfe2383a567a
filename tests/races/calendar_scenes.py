"""Scenes of calendars: the calendars of a trigger exist, and a change and a fire decide each fire once."""

from typing import Any

import msgspec

from horae.engine.definitions import job_changes
from horae.engine.triggers import calendar_changes
from horae.env import SECOND
from horae.errors import BadInput, Conflict, Stale
from horae.model.definitions.job import Spec
from horae.model.definitions.tasks import CommandTask
from horae.model.triggers.calendars.read import parse_times
from horae.model.triggers.decisions.named_trigger import NamedTrigger
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Interval
from horae.store.triggers import calendars, fire
from tests.races.scenes import Cast, cast, scene
from tests.races.stage import Move, Scene
from tests.store_contract.world import NAMESPACE, World, add_trigger, lead

HOUR = 3600 * SECOND
ADVANCE = Rules(overlap="allow", calendars=("work",), outside="advance")
OPEN, SHORT = {"hours": "00:00-24:00"}, {"hours": "00:00-08:00"}


async def calendar_job(world: World, definition: dict[str, Any] = OPEN) -> Cast:
    """Create a job with a trigger whose fires a calendar advances; it has been decided once."""
    c = await cast(world)
    text, now = msgspec.json.encode(definition).decode(), world.now()
    await world.store.write(lambda: calendars.put(NAMESPACE, "work", text, "", now))
    await add_trigger(world, c.job, Interval(every=HOUR, anchor=now), ADVANCE, name="schedule")
    await world.store.fire(100, lead)
    return c


def putting(world: World, definition: dict[str, Any], if_match: int | None = None) -> Move:
    times, now = parse_times(definition), world.now()
    return Move(
        "put_calendar",
        lambda: calendar_changes.put(NAMESPACE, "work", times, "", if_match, new=False, now=now),
        refusals=(Stale,),
    )


def firing(world: World) -> Move:
    now = world.now()
    return Move("fire", lambda: fire.fire(100, lead, world.env.new_id, now))


def creating(world: World) -> Move:
    id, now = world.env.new_id(), world.now()
    spec = Spec(name="new", task=CommandTask(argv=("true",)))
    made = job_changes.JobDraft(spec=spec, whens=[NamedTrigger(trigger=Interval(every=HOUR), rules=ADVANCE)])
    script = lambda: job_changes.create(id, NAMESPACE, made, world.env.new_id, now)  # noqa: E731
    return Move("create", script, refusals=(BadInput,))


def deleting(world: World) -> Move:
    now = world.now()
    return Move("delete_calendar", lambda: calendar_changes.delete(NAMESPACE, "work", None, now), refusals=(Conflict,))


@scene("calendar change / fire")
async def _(world: World) -> Scene:
    await calendar_job(world)
    world.clock.advance(HOUR)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert left == ["changed"]
        rows = await world.rows("SELECT first, last, disposition FROM fires ORDER BY first")
        # A fire that saw the new version may have advanced the fire of the next hour to now, which adds one.
        assert [first for first, *_ in rows] == [world.now(), world.now() + HOUR][: len(rows) or 1], "twice, or never"
        assert all(first == last for first, last, _ in rows), "a fire was decided twice"
        assert {word for *_, word in rows[:1]} <= {"fired", "moved"}
        assert {word for *_, word in rows[1:]} <= {"moved"}
        # The timer was woken after the fire, or the fire saw the new version, or is due in time to see it.
        (following,) = (await world.rows("SELECT next_fire_at FROM timers"))[0]
        assert following <= world.now() + HOUR * len(rows)

    return Scene(left=[putting(world, SHORT)], right=[firing(world)], check=check)


@scene("calendar change / calendar change, one version")
async def _(world: World) -> Scene:
    await calendar_job(world)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert sum(isinstance(result, Stale) for result in left + right) == 1, "both changed one version"
        rows = await world.rows("SELECT version FROM calendars WHERE valid_to IS NULL")
        assert rows == [(2,)], "two versions are present"

    other = {"hours": "00:00-07:00"}
    return Scene(left=[putting(world, SHORT, 1)], right=[putting(world, other, 1)], check=check)


@scene("calendar deletion / creation of a job that uses it")
async def _(world: World) -> Scene:
    text, now = msgspec.json.encode(OPEN).decode(), world.now()
    await world.store.write(lambda: calendars.put(NAMESPACE, "work", text, "", now))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        present = await world.rows("SELECT name FROM calendars WHERE valid_to IS NULL")
        uses = await world.rows("SELECT calendar FROM calendar_triggers")
        assert len(uses) <= len(present), "a trigger uses a deleted calendar"
        assert sum(isinstance(result, BadInput | Conflict) for result in left + right) == 1

    return Scene(left=[deleting(world)], right=[creating(world)], check=check)


@scene("calendar change / edit of a trigger that uses it")
async def _(world: World) -> Scene:
    c = await calendar_job(world)
    before = await world.store.job(c.job.id, NAMESPACE)
    spec = msgspec.structs.replace(c.job.spec, description="changed")
    when = NamedTrigger(trigger=Interval(every=2 * HOUR, anchor=world.now()), rules=ADVANCE)
    made = job_changes.JobDraft(spec=spec, whens=[when])
    edit = Move("edit", lambda: job_changes.edit(before, made, c.new_id, c.now))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert (left, right) == (["changed"], [True])
        uses = await world.rows("SELECT u.trigger_id FROM calendar_triggers u JOIN timers t USING (trigger_id)")
        assert len(uses) == 1, "the calendar's triggers are not the live ones"

    return Scene(left=[putting(world, SHORT)], right=[edit], check=check)
