"""Two transactions on a real PostgreSQL, interleaved statement by statement in every order.

Each side runs scripts through its own driver, which stops before every statement and before the commit. A side that
waits for a lock of the other is found in the server's lock table, and the other side goes on. An order is the list of
choices made whenever both sides could go on; following every alternative visits each order once.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any

import asyncpg
from msgspec import Struct

from horae.env import Env
from horae.store.driver import one, op_name
from horae.store.open import Connections
from horae.store.postgres.driver import PostgresDriver
from horae.store.script import Fetch, Op, Script, ScriptFactory, Statement

COMMIT = Statement("commit", "SELECT 1")
# A deadlock is a failure and should not take a second to detect. These databases need not survive a crash either.
SETTINGS = ("SET deadlock_timeout = '20ms'", "SET synchronous_commit = off")
CHANGE = 0.25  # how often a sampled order changes sides
LOOK = 0.002  # seconds after which a statement that has not ended may be waiting for a lock

Order = tuple[str, ...]
LEFT, RIGHT = "L", "R"


class Ran(Struct, frozen=True):
    """One interleaving: the choices, the steps taken, the results of each side's scripts, and the sides that waited."""

    order: Order
    steps: list[str]
    results: dict[str, list[Any]]
    waited: frozenset[str]
    retries: int


def stopping(make: ScriptFactory[Any], begun: Callable[[], None]) -> ScriptFactory[Any]:
    """The same script with one more stop before its commit."""

    def script() -> Script[Any]:
        begun()
        result = yield from make()
        yield Fetch(COMMIT)
        return result

    return script


class Side:
    """One side of a duel: a driver with a single connection, stopped before each of its statements."""

    def __init__(self, name: str, driver: PostgresDriver, pid: int) -> None:
        self.name, self.driver, self.pid = name, driver, pid
        self.at = ""
        self.blocked = False
        self.transactions = 0
        self.results: list[Any] = []
        self.task: asyncio.Task[None] | None = None
        self._arrived, self._go = asyncio.Event(), asyncio.Event()
        driver.before = self._stop

    async def _stop(self, op: Op) -> None:
        self.at = op_name(op)
        self._arrived.set()
        await self._go.wait()
        self._go.clear()

    def start(self, moves: Sequence[ScriptFactory[Any]]) -> None:
        self.blocked, self.results = False, []
        self._arrived.clear()
        self._go.clear()
        self.task = asyncio.create_task(self._live(moves))

    async def _live(self, moves: Sequence[ScriptFactory[Any]]) -> None:
        for make in moves:
            try:
                self.results.append(await self.driver.write(stopping(make, self._begun)))
            except Exception as error:  # the check judges it
                self.results.append(error)
            self._begun()

    def _begun(self) -> None:
        self.transactions += 1

    @property
    def done(self) -> bool:
        return self.task is None or self.task.done()

    @property
    def stopped(self) -> bool:
        return self._arrived.is_set() and not self.done

    def release(self) -> None:
        self._arrived.clear()
        self._go.set()

    async def arrives(self, within: float | None) -> bool:
        """Wait until the side stands before its next statement or is done."""
        assert self.task is not None
        arrived = asyncio.ensure_future(self._arrived.wait())
        try:
            await asyncio.wait({arrived, self.task}, timeout=within, return_when=asyncio.FIRST_COMPLETED)
        finally:
            arrived.cancel()
        return self.stopped or self.done

    async def end(self) -> None:
        if self.task is not None and not self.task.done():
            self.task.cancel()
            with suppress(asyncio.CancelledError):
                await self.task


class Duel:
    """Two sides and an onlooker."""

    def __init__(self, left: Side, right: Side, onlooker: asyncpg.Connection) -> None:
        self.sides = (left, right)
        self.onlooker = onlooker

    @classmethod
    async def open(cls, url: str, env: Env) -> "Duel":
        onlooker = await asyncpg.connect(url, server_settings={"synchronous_commit": "off"})
        return cls(await _side(LEFT, url, env), await _side(RIGHT, url, env), onlooker)

    async def close(self) -> None:
        for side in self.sides:
            await side.end()
            await side.driver.close()
        await self.onlooker.close()

    async def run(
        self,
        moves: dict[str, Sequence[ScriptFactory[Any]]],
        choose: Callable[[int], str],
    ) -> Ran:
        """Run both sides to their ends; `choose` returns the side to go on whenever both can."""
        before = self.retries
        steps: list[str] = []
        order: list[str] = []
        waited: set[str] = set()
        for side in self.sides:
            side.start(moves[side.name])
        for side in self.sides:
            await side.arrives(None)
        while not all(side.done for side in self.sides):
            ready = [side for side in self.sides if side.stopped]
            if len(ready) == 2:
                order.append(choose(len(order)))
                ready = [side for side in ready if side.name == order[-1]]
            if ready:
                steps.append(f"{ready[0].name}:{ready[0].at}")
                await self._step(ready[0])
                waited |= {side.name for side in self.sides if side.blocked}
            else:
                await self._unblock()
        results = {side.name: side.results for side in self.sides}
        return Ran(tuple(order), steps, results, frozenset(waited), self.retries - before)

    @property
    def retries(self) -> int:
        return sum(side.driver.retries for side in self.sides)

    async def _step(self, side: Side) -> None:
        """Let one side run one statement; its commit may release the other side."""
        other = self.sides[1] if side is self.sides[0] else self.sides[0]
        transactions = side.transactions
        side.release()
        await self._settle(side, other)
        if other.blocked and (side.done or side.transactions != transactions):
            await self._settle(other, side)

    async def _settle(self, side: Side, other: Side) -> None:
        """Wait until the statement has ended, or is known to wait for the other side."""
        while not await side.arrives(LOOK):
            if await self._waits(side, other):
                side.blocked = True
                return
        side.blocked = False

    async def _waits(self, side: Side, other: Side) -> bool:
        return bool(await self.onlooker.fetchval("SELECT $2 = ANY(pg_blocking_pids($1))", side.pid, other.pid))

    async def _unblock(self) -> None:
        """Wait for the server to end a deadlock, in which neither side can go on."""
        waiting = [side for side in self.sides if not side.done]
        tasks = [asyncio.ensure_future(side.arrives(None)) for side in waiting]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        for side in waiting:
            side.blocked = not (side.stopped or side.done)


async def open_driver(url: str, env: Env) -> PostgresDriver:
    """Open a driver that does not take a slow answer for silence: on a busy machine a connection may take seconds."""
    driver = await PostgresDriver.open(url, env, Connections(hot=1, cold=1))
    await driver._pulse.close()
    return driver


async def _side(name: str, url: str, env: Env) -> Side:
    driver = await open_driver(url, env)
    for setting in SETTINGS:
        await driver.write(one(Statement("setting", setting)))
    pid = (await driver.write(one(Statement("pid", "SELECT pg_backend_pid()"))))[0][0]
    return Side(name, driver, pid)


class Explorer:
    """A source of orders, each returned once: all of them, or a sample by its seed."""

    def __init__(self, seed: int = 1) -> None:
        self._rng = Random(seed)
        self._frontier: list[Order] = [()]

    def next(self) -> Order | None:
        """Return the beginning of an order not run yet; the rest is left to `choice`."""
        if not self._frontier:
            return None
        at = self._rng.randrange(len(self._frontier))
        self._frontier[at], self._frontier[-1] = self._frontier[-1], self._frontier[at]
        return self._frontier.pop()

    def chooser(self, prefix: Order) -> Callable[[int], str]:
        """Follow the prefix; after it prefer long runs of one side, because most races are between a read
        and a write.
        """
        last = [self._rng.choice((LEFT, RIGHT))]

        def choose(at: int) -> str:
            if at < len(prefix):
                last[0] = prefix[at]
            elif self._rng.random() < CHANGE:
                last[0] = RIGHT if last[0] == LEFT else LEFT
            return last[0]

        return choose

    def visited(self, prefix: Order, order: Order) -> None:
        """Record that every choice after the prefix has an alternative."""
        for at in range(len(prefix), len(order)):
            other = RIGHT if order[at] == LEFT else LEFT
            self._frontier.append((*order[:at], other))

    @property
    def exhausted(self) -> bool:
        return not self._frontier
