"""The order of locks within one statement, where no barrier is possible.

An onlooker holds one of three rows that both sides need. Each side locks the rows before it in its own order, and
waits. When the onlooker releases its row, sides with different orders wait for each other.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Any
from uuid import UUID

from msgspec import Struct

from horae.features.events.store import events
from horae.model.base.ids import execution_id
from horae.model.executions import submission
from horae.model.fleet.protocol import Exchange, Register
from horae.model.triggers.events.values import NewEvent
from horae.store.executions.entering import submit
from horae.store.executions.leaving import dead_letters
from horae.store.executions.reads import housekeeping
from horae.store.fleet import exchange, sessions
from horae.store.script import ScriptFactory
from tests.races.stage import Stage
from tests.store_contract.world import NAMESPACE, Worker, World, lead
from tests.waiting import eventually


class Crossing(Struct, frozen=True):
    """The rows that the onlooker holds, and the two scripts that cross."""

    hold: str
    params: tuple[Any, ...]
    first: ScriptFactory[Any]
    second: ScriptFactory[Any]


SetCrossing = Callable[[World], Awaitable[Crossing]]
CROSSINGS: dict[str, SetCrossing] = {}


def crossing(name: str) -> Callable[[SetCrossing], SetCrossing]:
    def keep(made: SetCrossing) -> SetCrossing:
        CROSSINGS[name] = made
        return made

    return keep


async def cross(
    stage: Stage, set_crossing: SetCrossing, changed: AbstractContextManager[None] | None = None
) -> str | None:
    """Let two scripts cross; return the violation afterwards, or None."""
    await stage.world.wipe()
    made = await set_crossing(stage.world)
    with changed or nullcontext():
        return await _cross(stage, made)


async def _cross(stage: Stage, made: Crossing) -> str | None:
    left, right = stage.duel.sides
    drivers = left.driver, right.driver
    retries, hooks = stage.duel.retries, [driver.before for driver in drivers]
    for driver in drivers:
        driver.before = None
    transaction = stage.duel.onlooker.transaction()
    await transaction.start()
    try:
        await stage.duel.onlooker.execute(made.hold, *made.params)
        first = asyncio.create_task(drivers[0].write(made.first))
        await _stands(stage, left.pid, first)
        second = asyncio.create_task(drivers[1].write(made.second))
        await _stands(stage, right.pid, second)
        await transaction.rollback()
        done = await asyncio.gather(first, second, return_exceptions=True)
    finally:
        for driver, hook in zip(drivers, hooks, strict=True):
            driver.before = hook
    errors = [result for result in done if isinstance(result, BaseException)]
    if errors:
        return f"an operation failed: {errors[0]!r}"
    return "a deadlock" if stage.duel.retries != retries else None


async def _stands(stage: Stage, pid: int, task: "asyncio.Task[Any]") -> None:
    """Wait until a side waits for a lock, or has ended without one."""

    async def stands() -> bool:
        blocked = await stage.duel.onlooker.fetchval("SELECT cardinality(pg_blocking_pids($1)) > 0", pid)
        return task.done() or bool(blocked)

    await eventually(stands, every=0.002)


HOLD_SESSION = "SELECT 1 FROM sessions WHERE id = $1 FOR UPDATE"
HOLD_KEY = "INSERT INTO unique_keys (namespace, scope, key, execution, until) VALUES ($1, $2, $3, $4, $5)"
HOLD_EVENT = (
    "INSERT INTO events (id, namespace, within, key, name, type, source, payload, received_at)"
    " VALUES ($1, $2, 'event:upload', 'm', 'upload', '', '', 'null', 0)"
)
HOLD_REQUEST = (
    "INSERT INTO idempotency (namespace, route, key, body_hash, until, created_at) VALUES ($1, $2, $3, $4, $5, 0)"
)


@crossing("exchange / exchange, the same sessions named in two orders")
async def _(world: World) -> Crossing:
    a, m, z = sorted([await world.worker(name) for name in "amz"], key=lambda w: w.session)
    now = world.now()

    def batch(channel: int, *workers: Any) -> ScriptFactory[Any]:
        heads = [w.head(Exchange(channel=channel, n=1), frozenset()) for w in workers]
        return lambda: exchange.exchange(heads, [], frozenset(), {}, now, Random(7), world.env.new_id)

    return Crossing(HOLD_SESSION, (m.session,), batch(0, a, m, z), batch(1, z, m, a))


@crossing("exchange / end_old_epochs")
async def _(world: World) -> Crossing:
    """The sessions were registered in another order than the order of their ids."""
    ids = sorted(world.env.new_id() for _ in range(3))
    presence, now = Register(protocol=1, worker="w"), world.now()
    for id in reversed(ids):
        await world.store.write(lambda id=id: sessions.register(id, NAMESPACE, presence, now))
    heads = [Worker(world, id).head(Exchange(channel=0, n=1), frozenset()) for id in ids]
    return Crossing(
        HOLD_SESSION,
        (ids[1],),
        lambda: exchange.exchange(heads, [], frozenset(), {}, now, Random(7), world.env.new_id),
        lambda: sessions.end_old_epochs(2, now),
    )


@crossing("mark / mark, the same dead letters in two orders")
async def _(world: World) -> Crossing:
    parcel, now = await world.parcel(await world.job(), 3), world.now()
    letters = [(execution_id(parcel, item), None) for item in range(3)]
    held = "INSERT INTO marks (parcel, item, kind, at) VALUES ($1, 1, 'discarded', 0)"
    return Crossing(
        held,
        (parcel,),
        lambda: dead_letters.mark("discarded", letters, now),
        lambda: dead_letters.mark("retried", letters[::-1], now),
    )


@crossing("submit / submit, the same keys named in two orders")
async def _(world: World) -> Crossing:
    job = await world.job()
    now = world.now()

    def batch(keys: str) -> ScriptFactory[Any]:
        asked = [submission.Submission(executions=[e for key in keys for e in world.wanted(job, key=key)])]
        return lambda: submit.submit(asked, world.env.new_id, now)

    held = (NAMESPACE, f"job:{job.id}", "m", UUID(int=0), now + 5)
    return Crossing(HOLD_KEY, held, batch("amz"), batch("zma"))


@crossing("submit / submit, the same requests in two orders")
async def _(world: World) -> Crossing:
    job = await world.job()
    now = world.now()

    def batch(keys: str) -> ScriptFactory[Any]:
        asked = [
            submission.Submission(
                executions=world.wanted(job),
                idempotency=submission.Idempotency(NAMESPACE, "POST", key, b"", now + 5),
            )
            for key in keys
        ]
        return lambda: submit.submit(asked, world.env.new_id, now)

    return Crossing(HOLD_REQUEST, (NAMESPACE, "POST", "m", b"", now + 5), batch("amz"), batch("zma"))


@crossing("event / event, the same ids in two orders")
async def _(world: World) -> Crossing:
    now = world.now()

    def batch(ids: str) -> ScriptFactory[Any]:
        given = [NewEvent(name="upload", id=id) for id in ids]
        return lambda: events.take(NAMESPACE, given, lead, lambda target, item: None, world.env.new_id, now)

    return Crossing(HOLD_EVENT, (UUID(int=0), NAMESPACE), batch("amz"), batch("zma"))


@crossing("sweep of expired keys / submit that replaces some of them")
async def _(world: World) -> Crossing:
    job = await world.job()
    for key, until in (("a", 1), ("c", 2), ("b", 3)):
        await world.submit(job, key=key, key_for=until)
    now = world.now() + 5
    asked = [submission.Submission(executions=[e for key in "ab" for e in world.wanted(job, key=key)])]
    held = "SELECT 1 FROM unique_keys WHERE key = 'c' AND scope = $1 FOR UPDATE"
    return Crossing(
        held,
        (f"job:{job.id}",),
        lambda: housekeeping.forget_expired(now, 0),
        lambda: submit.submit(asked, world.env.new_id, now),
    )
