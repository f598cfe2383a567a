"""Day partitions of the ledger, by the last fire of a row: created in advance, and dropped after their retention.

If a fire was decided long after its instant, as in a backfill, its retention counts from the decision. When its day is
dropped, such a row moves to the DEFAULT partition. The DEFAULT partition also has the rows for which no day partition
exists. Its expired rows are deleted one by one.
"""

from collections.abc import Mapping
from functools import partial

import asyncpg

from horae.env import SECOND, Clock, Instant
from horae.store.driver import run_async
from horae.store.expiry.fire_expiry import LATE_BY
from horae.store.postgres.connect import Connector
from horae.store.postgres.partitions import AHEAD, ONE_AT_A_TIME, day_at, instant_of_suffix, patiently
from horae.store.postgres.statements import execute
from horae.store.script import Statement
from horae.store.triggers.ledger import forget_before

DAY: Instant = 86_400 * SECOND
DAYS = Statement(
    "fire_days",
    """
SELECT c.relname, i.inhparent IS NOT NULL FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relname ~ '^fires_d[0-9]{8}$'
ORDER BY c.relname""",
)


class FireDays:
    """Creates and drops the ledger's day partitions.

    It caches the names of existing partitions, because `ensure` is called every few seconds.
    """

    def __init__(self, connector: Connector, clock: Clock) -> None:
        self._connector, self._clock = connector, clock
        self._made: set[str] = set()

    async def ensure(self, now: Instant) -> None:
        """Create the missing partitions of today and the next seven days."""
        starts = [now - now % DAY + ahead * DAY for ahead in range(AHEAD + 1)]
        names = {_table(start) for start in starts}
        if names <= self._made:
            return
        async with self._connector.patient() as connection:
            there = await _days(connection)
            for start in starts:
                if not there.get(_table(start)):
                    await patiently(connection, self._clock, partial(_make, connection, start))
        self._made = names

    async def expire(self, days: Mapping[str, bool], before: Instant) -> bool:
        """Drop the oldest day whose fires are all older than `before` by a day; return False if there is no such day.

        `days` maps the name of each existing day table to whether it is attached as a partition.
        """
        old = [name for name, attached in days.items() if not attached or _start(name) + DAY <= before - LATE_BY]
        if not old:
            return False
        async with self._connector.patient() as connection:
            await patiently(connection, self._clock, partial(_detach, connection, old[0], before))
            await connection.execute(f"DROP TABLE IF EXISTS {old[0]}")
        return True


def _table(start: Instant) -> str:
    return day_at(start).table("fires")


def _start(name: str) -> Instant:
    return instant_of_suffix(name[-9:])


async def _days(connection: asyncpg.Connection) -> dict[str, bool]:
    return dict(await connection.fetch(DAYS.text))


async def _make(connection: asyncpg.Connection, start: Instant) -> None:
    """Create a day's table, move its rows out of DEFAULT, and attach it."""
    await connection.execute(ONE_AT_A_TIME)
    name = _table(start)
    if name in await _days(connection):
        return
    within = f"last >= {start} AND last < {start + DAY}"
    await connection.execute(f"""
        LOCK TABLE fires_default IN ACCESS EXCLUSIVE MODE;
        CREATE TABLE {name} (LIKE fires INCLUDING ALL);
        INSERT INTO {name} SELECT * FROM fires_default WHERE {within};
        DELETE FROM fires_default WHERE {within};
        ALTER TABLE fires ATTACH PARTITION {name} FOR VALUES FROM ({start}) TO ({start + DAY})""")


async def _detach(connection: asyncpg.Connection, name: str, before: Instant) -> None:
    """Detach a day, and copy its rows that were decided late and must stay to the DEFAULT partition.

    The instant from which on the ledger is complete is recorded first.
    """
    await connection.execute(ONE_AT_A_TIME)
    if not (await _days(connection)).get(name):
        return
    await connection.execute("LOCK TABLE fires IN ACCESS EXCLUSIVE MODE")
    if await connection.fetchval(f"SELECT EXISTS (SELECT 1 FROM {name})"):
        await run_async(forget_before(_start(name) + DAY), partial(execute, connection))
    # The condition is that of the index of late decisions, so that this needs no scan of all rows under the lock.
    await connection.execute(f"""
        ALTER TABLE fires DETACH PARTITION {name};
        INSERT INTO fires SELECT * FROM {name} WHERE decided_at > last + {LATE_BY} AND decided_at >= {before}""")
