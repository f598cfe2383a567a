"""PostgreSQL's driver: runs scripts in transactions, with as few round trips as asyncpg allows."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import asyncpg

from horae.env import Env, Instant
from horae.errors import Busy, Conflict, StoreUnavailable
from horae.model.base.topic import Topic
from horae.model.tenancy.namespace import Longer
from horae.store import epochs, seed
from horae.store.driver import REPEATS, Before, Read, alone, one, op_names, run_async
from horae.store.expiry import expiry, fire_expiry
from horae.store.open import DEFAULT, Connections
from horae.store.postgres import migrate
from horae.store.postgres.connect import CONNECT, MOVED, Connector
from horae.store.postgres.faults import BROKEN, RACES, opening_error, reraise, translated, url_error
from horae.store.postgres.fire_partitions import DAYS, FireDays
from horae.store.postgres.listener import Listener
from horae.store.postgres.partitions import TABLES, Partitions
from horae.store.postgres.place import DatabasePlace, locate
from horae.store.postgres.pool import Pool
from horae.store.postgres.pulse import Pulse
from horae.store.postgres.statements import execute
from horae.store.script import Again, Op, Provided, Rows, ScriptFactory

T = TypeVar("T")
_LOST = "The operation conflicted with other transactions too many times."


class PostgresDriver:
    """Runs scripts on PostgreSQL and survives its restarts."""

    dialect = "postgresql"
    is_shared = True
    path: Path | None = None

    def __init__(self, url: str, env: Env, connections: Connections = DEFAULT) -> None:
        self.url = url
        self.before: Before | None = None
        self.retries = 0
        self.statements: Counter[str] = Counter()
        self.epoch_met: Topic[None] = Topic("epoch_met")
        self._env = env
        self._epoch = 0  # the last epoch that was seen, so that each new epoch is reported only once
        self._connector = connector = Connector(url, self._on_place, connections)
        self._hot = Pool(connector.hot, connections.hot)
        self._cold = Pool(connector.cold, connections.cold)
        self._partitions = Partitions(connector, env.clock)
        self._fire_days = FireDays(connector, env.clock)
        self._listener = Listener(connector.listening, env)
        self._pulse = Pulse(connector.probe, (self._hot, self._cold), env.clock, connector.is_left)

    @classmethod
    async def open(cls, url: str, env: Env, connections: Connections = DEFAULT) -> "PostgresDriver":
        """Connect. Raises StoreUnavailable when PostgreSQL does not answer, BadInput when it refuses the connection."""
        driver = cls(url, env, connections)
        try:
            await driver.ping()
            driver._pulse.start()
        except StoreUnavailable as error:
            raise opening_error(url, error) from error
        except ValueError as error:  # asyncpg raises it for a URL that it cannot parse
            raise url_error(url) from error
        return driver

    async def write(self, make: ScriptFactory[T], *, hot: bool = True) -> T:
        pool = self._hot if hot else self._cold
        for _ in range(REPEATS):
            try:
                return await self._transact(pool, make, "BEGIN")
            except RACES:
                self.retries += 1
            except Again:
                continue
        raise Busy(_LOST)

    async def write_between(self, make: ScriptFactory[T]) -> T:
        return await self.write(make)

    async def change(self, op: Provided) -> bool:
        if self._connector.is_shared:
            return await self.write(alone(op))
        for _ in range(REPEATS):
            connection = await self._hot.take()
            try:
                return await run_async(alone(op)(), self._executing(connection))
            except RACES:
                self.retries += 1
            except BaseException as error:
                await _abandon(connection, error)
                reraise(error, committing=True)
            finally:
                self._hot.give_back(connection)
        raise Busy(_LOST)

    async def rewrite(self, make: ScriptFactory[T]) -> T:
        with translated():
            async with self._connector.patient() as connection, connection.transaction():
                return await run_async(make(), self._executing(connection))

    async def read(self, make: ScriptFactory[T], *, snapshot: bool = False, hot: bool = False) -> T:
        pool = self._hot if hot else self._cold
        if snapshot:
            return await self._transact(pool, make, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if self._connector.is_shared:  # so that a statement is prepared and run on the same connection to PostgreSQL
            return await self._transact(pool, make, "BEGIN")
        for tries_left in reversed(range(pool.size + 1)):
            connection = await pool.take()
            try:
                return await run_async(make(), self._executing(connection))
            except BaseException as error:
                if not isinstance(error, BROKEN) or not tries_left:
                    reraise(error)
                # The connection may have broken while idle. A read can be repeated on another one.
                connection.terminate()
            finally:
                pool.give_back(connection)
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Read]:
        async with self._connector.patient() as connection:

            async def read(make: ScriptFactory[T]) -> T:
                with translated():
                    return await run_async(make(), partial(execute, connection))

            await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield read

    async def _transact(self, pool: Pool, make: ScriptFactory[T], begin: str) -> T:
        connection = await self._begun(pool, begin)
        committing = False
        try:
            result = await run_async(make(), self._executing(connection))
            committing = True
            await commit(connection)
            return result
        except BaseException as error:
            await _abandon(connection, error)
            reraise(error, committing)
        finally:
            pool.give_back(connection)

    async def _begun(self, pool: Pool, begin: str) -> asyncpg.Connection:
        """Return a connection on which a transaction was begun; skip connections that broke while idle."""
        while True:
            connection = await pool.take()
            try:
                await connection.execute(self._connector.begin(begin, hot=pool is self._hot), timeout=CONNECT)
                return connection
            except BaseException as error:
                connection.terminate()
                pool.give_back(connection)
                if not isinstance(error, (*BROKEN, *MOVED)):
                    reraise(error)

    def _executing(self, connection: asyncpg.Connection) -> Callable[[Op], Awaitable[Rows]]:
        before, statements = self.before, self.statements

        async def counted(op: Op) -> Rows:
            statements.update(op_names(op))
            return await execute(connection, op)

        async def stopping(op: Op) -> Rows:
            assert before is not None
            await before(op)
            return await counted(op)

        return counted if before is None else stopping

    async def notify(self, payload: str) -> None:
        await self.read(lambda: seed.notify(payload))

    async def listen(self, callback: Callable[[str], None]) -> None:
        await self._listener.add(callback)

    async def server_time(self) -> Instant:
        return await self.read(seed.clock)

    async def migrate(self) -> None:
        if await self.read(seed.needs_migration):
            await migrate.upgrade(self._connector.plain)
            await self.write(seed.first_rows(self._env))
        with translated():
            async with self._connector.patient() as connection:
                await self._on_place(connection, await locate(connection, CONNECT))
        await self.ensure_partitions(await self.server_time())

    async def _on_place(self, connection: asyncpg.Connection, place: DatabasePlace) -> None:
        async with connection.transaction():
            script = epochs.check_place(
                place.timeline, f"{place.system} {place.database}", self._env.new_id, self._env.now(), self._epoch
            )
            epoch = await run_async(script, partial(execute, connection))
        if epoch != self._epoch:
            self._epoch = epoch
            self.epoch_met(None)

    async def ensure_partitions(self, now: Instant) -> None:
        with translated():
            await self._partitions.ensure(now)
            await self._fire_days.ensure(now)

    async def expire(self, before: Instant, batch: int = 1000, longer: Sequence[Longer] = ()) -> int:
        tables: dict[str, bool] = dict(await self.read(one(TABLES)))
        with translated():
            gone = await self._partitions.expire(tables, before, longer)
        sure = expiry.earliest_cutoff(before, longer)
        return gone or await self.write(expiry.expire(sure, batch), hot=False)

    async def expire_fires(self, low: Instant, before: Instant, batch: int = 1000) -> int:
        days: dict[str, bool] = dict(await self.read(one(DAYS)))
        with translated():
            if await self._fire_days.expire(days, before):
                return 1
        return await self.write(fire_expiry.expire_fires(low, before, batch), hot=False)

    async def ping(self) -> None:
        await self.read(seed.ping)

    async def check_room(self) -> None:
        try:
            await self.read(seed.room, snapshot=True)
        except StoreUnavailable as error:
            # ConfigurationLimitExceededError is about the size limit of temporary files, not about the disk.
            if not isinstance(error.__cause__, asyncpg.ConfigurationLimitExceededError):
                raise

    async def copy_file(self, path: Path) -> None:
        raise Conflict(
            "This server's store is PostgreSQL, which cannot be backed up through a server.",
            "Use `horae db backup FILE --store URL`, or PostgreSQL's own tools.",
        )

    def tell_owner(self, owner: str) -> None:
        """Do nothing: no process owns a PostgreSQL store."""

    async def close(self) -> None:
        await self._pulse.close()
        await self._listener.close()
        await self._hot.close()
        await self._cold.close()


async def commit(connection: asyncpg.Connection) -> None:
    """Commit. Raise if PostgreSQL rolled back instead: it answers COMMIT in a failed transaction without an error."""
    if await connection.execute("COMMIT") != "COMMIT":
        raise RuntimeError("PostgreSQL rolled back a transaction instead of committing it")


async def _abandon(connection: asyncpg.Connection, error: BaseException) -> None:
    """Roll back. A broken connection is terminated instead, because a rollback would wait in vain for an answer."""
    if isinstance(error, BROKEN):
        connection.terminate()
        return
    try:
        if not connection.is_closed() and connection.is_in_transaction():
            await connection.execute("ROLLBACK", timeout=5)
    except BaseException:
        connection.terminate()
