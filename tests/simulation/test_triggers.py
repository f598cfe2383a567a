"""Random triggers under outages, crashes between any two statements, clock steps and edits while they fire.

The ledger equals the set of nominal fires, always. `HORAE_SEED=n` replays one.
"""

from collections import Counter
from random import Random
from typing import Any
from uuid import UUID

import msgspec
import pytest

from horae.env import SECOND, Env, Instant, VirtualClock, uuid7
from horae.errors import HoraeError
from horae.model.admission.keys import keys_of
from horae.model.base.instant import format_instant
from horae.model.executions.parcel import extras_of
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Trigger, next_fire
from horae.store.sqlite.memory import MemoryDriver
from tests.simulation.actors import Observer, Worker
from tests.simulation.check import all_final, rows
from tests.simulation.seeds import ONLY, each, seeds
from tests.simulation.test_simulation import _replace, _restore, _trouble_worker
from tests.simulation.world import Actor, Lost, World

SEEDS, MORE = 8, 240  # in `make test`, and in `make prove`
GROUP = 8
TROUBLED = 25  # simulated seconds of faults, outages aside
MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
JOBS = ("a", "b", "c")
CALENDARS = ("x", "y")


class SteppedClock(VirtualClock):
    """A clock that can be set without an effect on sleeps."""

    jump = 0

    def now(self) -> Instant:
        return super().now() + self.jump

    def wall(self) -> Instant:
        return self.now()

    def next_wake(self) -> Instant | None:
        following = super().next_wake()
        return None if following is None else following + self.jump


class SteppedWorld(World):
    """A world with a clock that is set at times."""

    def __init__(self, seed: int, servers: int) -> None:
        super().__init__(seed, servers)
        self.clock: SteppedClock = SteppedClock()
        self.env = Env(self.clock, uuid7(Random(seed + 1)), Random(seed + 2))
        self.driver = MemoryDriver(self.env)
        self.hits |= dict.fromkeys(("outage", "clock forward", "clock back", "edit", "pause", "removal", "calendar"), 0)


@pytest.mark.timeout(240)
@seeds(SEEDS, MORE, GROUP)
def test_the_ledger_equals_the_nominal_fires(group: range):
    hits: Counter[str] = Counter()
    for found in each(group, simulate):
        hits.update(found)
    if not ONLY:
        for name in ("server crash", "outage", "clock forward", "clock back", "edit", "pause", "removal", "calendar"):
            assert hits[name], f"faults that never happened prove nothing: {name}"


async def simulate(seed: int) -> dict[str, int]:
    world = SteppedWorld(seed, servers=1 + seed % 3)
    await world.begin()
    world.driver.before = world._between_statements
    observer, operator = Observer(), Actor("operator")
    for name in CALENDARS:
        await world.servers[0].node.definitions.calendars.put(1, name, _calendar(world))
    for name in JOBS:
        await world.servers[0].node.definitions.jobs.create(1, _job(world, name))
    workers = [Worker(world, observer, "worker-0", 4)]
    workers[0].start()
    for _ in range(TROUBLED):
        await world.run(1.0)
        check(world)
        await _trouble(world, workers, observer, operator)
    world.faults.heal()
    await _restore(world, workers, observer)
    await world.run(10.0)
    for name in JOBS:
        await world.servers[0].node.definitions.jobs.pause(1, name)
    check(world)
    for name in JOBS:  # what was queued goes on, and nothing fires any more
        await world.servers[0].node.definitions.jobs.edit(1, name, {"schedule": None, "triggers": None})
        await world.servers[0].node.definitions.jobs.resume(1, name)
    assert await world.run(1800.0, until=_ended(world)), "liveness: not everything ended after the world had healed"
    check(world)
    for actor in (*world.servers, *workers, operator):
        await actor.kill()
    await world.driver.close()
    return world.hits


async def _trouble(world: SteppedWorld, workers: list[Worker], observer: Observer, operator: Actor) -> None:
    rng = world.rng
    if world.servers and rng.random() < max(world.faults.server_crash, 0.05):
        await world.crash_server(rng.choice(world.servers))
    if rng.random() < 0.04:
        world.hits["outage"] += 1
        for server in list(world.servers):
            await world.crash_server(server)
        await world.run(rng.choice([3.0, 20.0, 90.0]))
    if len(world.servers) < 2 or (len(world.servers) < 3 and rng.random() < 0.3):
        await world.add_server("another")
    if rng.random() < 0.05:
        step = rng.choice([-4 * MINUTE, -30 * SECOND, 2 * MINUTE, HOUR, 20 * HOUR])
        world.hits["clock back" if step < 0 else "clock forward"] += 1
        world.clock.jump += step
    if rng.random() < 0.3:
        operator.spawn(_edit(world))
    for worker in list(workers):
        await _trouble_worker(world, workers, worker, observer)
    if not workers:
        _replace(world, workers, observer)


def _job(world: World, name: str) -> dict[str, Any]:
    return {
        "name": name, "python": "work", "params": {"i": 0, "ms": world.rng.choice([1, 900, 2500]), "fail": 0},
        "schedule": _trigger(world), "triggers": [_trigger(world) | {"name": f"t{n}"} for n in range(2)],
    }  # fmt: skip


def _trigger(world: World) -> dict[str, Any]:
    rng, now = world.rng, world.env.now()
    kind: dict[str, Any] = rng.choice(
        [
            {"every": rng.choice(["1s", "2s", "7s"])},
            {"every": "3s", "anchor": format_instant(now - 500_000)},
            {"cron": rng.choice(["*/2 * * * * *", "0,13,40 * * * * *", "* * * * *"])},
            {"cron": "*/5 * * * * *", "timezone": rng.choice(["Australia/Lord_Howe", "America/New_York"])},
            {"at": format_instant(now + rng.randrange(1, 60) * SECOND)},
        ]
    )
    rules: dict[str, Any] = {
        "overlap": rng.choice(["skip", "allow", "queueOne", {"queueAll": 3}, "cancelOther"]),
        "misfire": rng.choice(["skip", "latest", {"all": 5}, {"window": "10s"}]),
        "grace": rng.choice(["0s", "2s", "1m"]),
    }
    if rng.random() < 0.2:
        rules["maxFires"] = rng.randrange(1, 6)
    if rng.random() < 0.2:
        rules["spread"] = "5s"
    elif rng.random() < 0.2:
        rules["jitter"] = "2s"
    if rng.random() < 0.2 and "at" not in kind:
        rules["startAt"] = format_instant(now + 5 * SECOND)
        rules["endAt"] = format_instant(now + 3 * HOUR)
    if rng.random() < 0.4 and "at" not in kind:
        rules["calendars"] = rng.choice([["x"], ["y"], ["x", "y"]])
        rules["outside"] = rng.choice(["skip", "postpone", "advance"])
    return kind | rules


def _calendar(world: World) -> dict[str, Any]:
    """Return a calendar that is open for a few periods of seconds, and then for minutes of every quarter of an hour."""
    rng, second, hours = world.rng, 8 * 3600, []
    for _ in range(4):
        start = second + rng.randrange(1, 12)
        second = start + rng.randrange(1, 15)
        hours.append((start, second))
    for quarter in range(0, 86_400, 900):
        start = quarter + rng.randrange(150, 400)
        hours.append((start, start + rng.randrange(20, 450)))
    return {"hours": [f"{_clock(start)}-{_clock(end)}" for start, end in hours]}


def _clock(second: int) -> str:
    return f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"


async def _edit(world: SteppedWorld) -> None:
    """Change, pause, resume, remove or add a trigger; answers may be lost, and requests repeated."""
    rng = world.rng
    job, name = rng.choice(JOBS), rng.choice(["schedule", "t0", "t1"])
    deed = rng.choice(["edit", "rules", "pause", "resume", "remove", "add", "job pause", "job resume", "calendar"])
    world.hits[{"remove": "removal", "pause": "pause", "calendar": "calendar"}.get(deed, "edit")] += 1
    new = _trigger(world)
    deeds = {
        "edit": lambda node: node.definitions.jobs.edit(1, job, {"schedule": new}),
        "rules": lambda node: node.definitions.triggers.edit(
            1, job, name, {"misfire": new["misfire"], "grace": new["grace"]}
        ),
        "pause": lambda node: node.definitions.triggers.pause(1, job, name),
        "resume": lambda node: node.definitions.triggers.resume(1, job, name),
        "remove": lambda node: node.definitions.triggers.remove(1, job, name),
        "add": lambda node: node.definitions.triggers.add(1, job, new | {"name": name}),
        "job pause": lambda node: node.definitions.jobs.pause(1, job),
        "job resume": lambda node: node.definitions.jobs.resume(1, job),
        "calendar": lambda node: node.definitions.calendars.put(1, rng.choice(CALENDARS), _calendar(world)),
    }
    try:
        await world.call(deeds[deed])
    except (Lost, HoraeError):
        return


def check(world: World) -> None:
    """Check between two transactions that each decided nominal fire is covered once and ran at most once."""
    if world.driver._turn.locked():
        return
    found = "SELECT g.id, g.definition, g.rules, g.valid_from, coalesce(t.decided_through, g.valid_to) FROM triggers g"
    for id, definition, rules, since, through in rows(
        world.driver, f"{found} LEFT JOIN timers t ON t.trigger_id = g.id"
    ):
        trigger, bounds = msgspec.json.decode(definition, type=Trigger), msgspec.json.decode(rules, type=Rules)
        _check_ledger(world, id, trigger, bounds, since, through)
    _check_executions(world)
    _check_turns(world)


def _check_ledger(world: World, id: UUID, trigger: Trigger, rules: Rules, since: Instant, through: Instant) -> None:
    """Check that each row begins with the fire after the row before and ends with a fire, without a gap."""
    covered = since
    text = f"SELECT first, last FROM fires WHERE trigger_id = x'{id.hex}' ORDER BY last"
    for first, last in rows(world.driver, text):
        assert _following(trigger, rules, covered) == first, f"{trigger}: a hole or a double after {covered}"
        assert _following(trigger, rules, last - 1) == last, f"{trigger}: {last} is no fire"
        covered = last
    following = _following(trigger, rules, covered)
    assert following is None or following > through, f"{trigger}: {following} was decided without a word"


def _following(trigger: Trigger, rules: Rules, after: Instant) -> Instant | None:
    found = next_fire(trigger, max(after, (rules.start_at or 0) - 1))
    return None if found is None or found >= (rules.end_at or 1 << 62) else found


def _check_executions(world: World) -> None:
    """Check that each fire has the execution of its row, and no other."""
    made: Counter[tuple[UUID, Instant]] = Counter()
    for n, extras in rows(world.driver, "SELECT n, extras FROM parcels WHERE extras IS NOT NULL"):
        for extra in extras_of(extras, 0, n):
            if extra.trigger is not None:
                made[extra.trigger, extra.fire_at or 0] += 1
    fired = rows(world.driver, "SELECT trigger_id, last FROM fires WHERE execution IS NOT NULL")
    assert made == Counter((trigger, last) for trigger, last in fired)


def _check_turns(world: World) -> None:
    """Check that of a trigger's executions that take turns, at most one is not at the gate."""
    live = " UNION ALL ".join(
        f"SELECT parcel, lo, hi FROM {shelf}" for shelf in ("waiting WHERE reason <> 'overlap'", "queued", "running")
    )
    text = f"SELECT p.keys, s.hi - s.lo FROM ({live}) s JOIN parcels p ON p.id = s.parcel WHERE p.keys IS NOT NULL"
    busy: Counter[str] = Counter()
    for keys, count in rows(world.driver, text):
        turn = keys_of(keys).turn
        if turn is not None:
            busy[turn] += count
    assert all(count <= 1 for count in busy.values()), busy


def _ended(world: World):
    async def done() -> bool:
        return all_final(world.driver)

    return done
