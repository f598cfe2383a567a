"""Day partitions of `parcels`, `history`, `attempts` and `logs`, by the range of parcel ids that a day has.

The four partitions of a day are created in advance together, and dropped together when the day has expired. Rows
that are needed for longer move to the DEFAULT partitions first. These also have the rows without a day partition. A
day stays if namespaces retain too many of its parcels for longer: then its expired parcels are deleted in pages
(`store/expiry/expiry.py`).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar
from uuid import UUID

import asyncpg
from msgspec import Struct

from horae.env import SECOND, Clock, Instant
from horae.model.base.ids import first_id_at
from horae.model.tenancy.namespace import Longer
from horae.store.expiry.expiry import needed_condition
from horae.store.postgres.connect import Connector
from horae.store.script import Statement
from horae.store.tables import DELETED_WITH_PARCEL, LIVE_SHELVES, PARTITIONED

T = TypeVar("T")

AHEAD = 7  # days after today whose partitions are created
TRIES = 10  # attempts to get the locks of a change
# The most parcels that may move out of a day when it is dropped: the tables are locked meanwhile.
MAX_KEPT = 10_000
AGAIN: Instant = 3_600 * SECOND  # pause before a day with more such parcels is checked again

_DAY: Instant = 86_400 * SECOND
_KEY = {"parcels": "id"}
# Shorter than PostgreSQL's deadlock timeout of 1 s: in a deadlock, this transaction gives up and retries, so that no
# other transaction fails.
_PATIENCE = "SET LOCAL lock_timeout = '500ms'"
# An advisory lock until the end of the transaction, so that only one server changes partitions.
ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('horae partitions', 0))"
TABLES = Statement(
    "partitions",
    """
SELECT c.relname, i.inhparent IS NOT NULL FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
AND c.relname ~ '^(parcels|history|attempts|logs)_d[0-9]{8}$'
ORDER BY right(c.relname, 8), c.relname""",
)


class Day(Struct, frozen=True, order=True):
    """One UTC day: the suffix of its tables, such as `d20260131`, and the range of its ids, first <= id < end."""

    suffix: str
    first: UUID
    end: UUID

    def table(self, parent: str) -> str:
        return f"{parent}_{self.suffix}"


def day_at(at: Instant) -> Day:
    """Return the day of an instant."""
    start = at - at % _DAY
    date = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=start)
    return Day(date.strftime("d%Y%m%d"), first_id_at(start), first_id_at(start + _DAY))


class Partitions:
    """Creates and drops the day partitions of parcels and their dependent rows.

    It caches findings about days, because it is called every few seconds.
    """

    def __init__(self, connector: Connector, clock: Clock) -> None:
        self._connector = connector
        self._clock = clock
        self._made: set[str] = set()  # days known to exist
        self._ends: dict[str, Instant] = {}  # the newest end of an execution that was found in each day; it only grows
        # days that could not be dropped because too many rows stay for longer, and the value of `before` at which to
        # check them again
        self._kept: dict[str, Instant] = {}

    async def ensure(self, now: Instant) -> None:
        """Create the missing partitions of today and the next `AHEAD` days."""
        days = [day_at(now + ahead * _DAY) for ahead in range(AHEAD + 1)]
        if all(day.suffix in self._made for day in days):
            return
        async with self._connector.patient() as connection:
            there = await _tables(connection)
            for day in days:
                if not all(day.table(parent) in there for parent in PARTITIONED):
                    await patiently(connection, self._clock, partial(_make, connection, day))
        self._made = {day.suffix for day in days}

    async def expire(self, tables: Mapping[str, bool], before: Instant, longer: Sequence[Longer] = ()) -> int:
        """Drop the oldest day whose ended executions all ended before the instant `before`, and earlier empty days.

        Return the number of parcels dropped. `tables` maps the name of each existing day table to whether it is
        attached as a partition. Rows that a rule in `longer` retains move to the DEFAULT partitions.
        """
        days = [
            day
            for day in days_before(tables, before)
            if self._ends.get(day.suffix, 0) < before and not (longer and self._kept.get(day.suffix, 0) > before)
        ]
        if not days and all(tables.values()):
            return 0
        async with self._connector.patient() as connection:
            await _drop_detached(connection)
            for day in days:
                if not await self._ended(connection, day, before):
                    continue
                if gone := await self._try_drop(connection, day, longer):
                    return gone
                self._kept[day.suffix] = before + AGAIN
        return 0

    async def _try_drop(self, connection: asyncpg.Connection, day: Day, longer: Sequence[Longer]) -> int:
        kept = await _kept_for_longer(connection, day, longer)
        return 0 if len(kept) > MAX_KEPT else await _drop_day(connection, self._clock, day, kept)

    async def _ended(self, connection: asyncpg.Connection, day: Day, before: Instant) -> bool:
        newest = await connection.fetchval(f"SELECT max(completed_at) FROM {day.table('history')}")
        self._ends[day.suffix] = newest or 0
        return newest is None or newest < before


def days_before(tables: Mapping[str, bool], before: Instant) -> list[Day]:
    """Return the attached days that ended before an instant, oldest first."""
    suffixes = {name[-9:] for name, attached in tables.items() if attached}
    days = [day_at(instant_of_suffix(suffix)) for suffix in sorted(suffixes)]
    return [day for day in days if day.end <= first_id_at(before)]


async def _tables(connection: asyncpg.Connection) -> dict[str, bool]:
    return dict(await connection.fetch(TABLES.text))


async def _make(connection: asyncpg.Connection, day: Day) -> None:
    """Create a day's tables, move their rows out of DEFAULT, and attach them."""
    await connection.execute(ONE_AT_A_TIME)
    there = await _tables(connection)
    for parent in PARTITIONED:
        name, key = day.table(parent), _KEY.get(parent, "parcel")
        if name in there:
            continue
        await connection.execute(f"""
            LOCK TABLE {parent}_default IN ACCESS EXCLUSIVE MODE;
            CREATE TABLE {name} (LIKE {parent} INCLUDING ALL);
            INSERT INTO {name} SELECT * FROM {parent}_default WHERE {key} >= '{day.first}' AND {key} < '{day.end}';
            DELETE FROM {parent}_default WHERE {key} >= '{day.first}' AND {key} < '{day.end}';
            ALTER TABLE {parent} ATTACH PARTITION {name} FOR VALUES FROM ('{day.first}') TO ('{day.end}')""")


async def _kept_for_longer(connection: asyncpg.Connection, day: Day, longer: Sequence[Longer]) -> list[UUID]:
    """Return parcels with an outcome that their namespace retains for longer, at most MAX_KEPT + 1."""
    if not longer:
        return []
    namespaces, outcomes, instants = (list(column) for column in zip(*longer, strict=True))
    found = await connection.fetch(
        f"SELECT DISTINCT h.parcel FROM unnest($1::int[], $2::text[], $3::bigint[]) AS k(namespace, state, since)"
        f" JOIN {day.table('history')} h ON h.namespace = k.namespace AND h.state = k.state"
        f" AND h.completed_at >= k.since LIMIT {MAX_KEPT + 1}",
        namespaces,
        outcomes,
        instants,
    )
    return [parcel for (parcel,) in found]


async def _drop_day(connection: asyncpg.Connection, clock: Clock, day: Day, longer: list[UUID]) -> int:
    """Drop a day's tables after moving the needed rows out of them; return the number of parcels dropped.

    The rows of dropped parcels in tables without partitions are deleted, too.
    """
    held: int = await connection.fetchval(f"SELECT count(*) FROM {day.table('parcels')}")
    retained = [*longer, *await _needed(connection, day)]
    kept = await patiently(connection, clock, partial(_detach, connection, day, retained))
    await _drop_detached(connection)
    for name in DELETED_WITH_PARCEL:
        await connection.execute(
            f"DELETE FROM {name} WHERE parcel >= $1 AND parcel < $2"
            f" AND NOT EXISTS (SELECT 1 FROM parcels p WHERE p.id = {name}.parcel)",
            day.first,
            day.end,
        )
    return held - kept


async def _needed(connection: asyncpg.Connection, day: Day) -> list[UUID]:
    """Return the parcels that a live workflow needs.

    No lock is needed, because an ended workflow never becomes live again.
    """
    found = await connection.fetch(f"SELECT p.id FROM {day.table('parcels')} p WHERE {needed_condition()}")
    return [parcel for (parcel,) in found]


async def _detach(connection: asyncpg.Connection, day: Day, retained: list[UUID]) -> int:
    """Detach a day's tables and insert the rows of parcels that stay into the partitioned tables again.

    Parcels with unfinished executions stay, and so do `retained` parcels. Return the number of parcels that stay.
    """
    await connection.execute(ONE_AT_A_TIME)
    if not (await _tables(connection)).get(day.table("parcels")):
        return 0
    await connection.execute(f"LOCK TABLE {', '.join(PARTITIONED)} IN ACCESS EXCLUSIVE MODE")
    needed = " UNION ".join(f"SELECT parcel FROM {shelf} WHERE parcel >= $2 AND parcel < $3" for shelf in LIVE_SHELVES)
    await connection.execute("CREATE TEMP TABLE survivors (parcel uuid PRIMARY KEY) ON COMMIT DROP")
    await connection.execute(
        f"INSERT INTO survivors {needed} UNION SELECT * FROM unnest($1::uuid[])", retained, day.first, day.end
    )
    for parent in PARTITIONED:
        name, key = day.table(parent), _KEY.get(parent, "parcel")
        await connection.execute(f"""
            ALTER TABLE {parent} DETACH PARTITION {name};
            INSERT INTO {parent} SELECT d.* FROM survivors s JOIN {name} d ON d.{key} = s.parcel""")
    kept: int = await connection.fetchval(
        f"SELECT count(*) FROM survivors s JOIN {day.table('parcels')} d ON d.id = s.parcel"
    )
    return kept


async def _drop_detached(connection: asyncpg.Connection) -> None:
    """Drop all detached tables, including those that a server could not drop because it was killed."""
    for name, attached in (await _tables(connection)).items():
        if not attached:
            await connection.execute(f"DROP TABLE IF EXISTS {name}")


async def patiently(connection: asyncpg.Connection, clock: Clock, work: Callable[[], Awaitable[T]]) -> T:
    """Run work that needs strong locks in one short transaction.

    If a lock is not available soon, roll back, so that others are not held up, and try again after a pause.
    """
    for tries_left in reversed(range(TRIES)):
        try:
            async with connection.transaction():
                await connection.execute(_PATIENCE)
                return await work()
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            if not tries_left:
                raise
            await clock.sleep(0.5)
    raise AssertionError("unreachable")


def instant_of_suffix(suffix: str) -> Instant:
    return int(datetime.strptime(suffix, "d%Y%m%d").replace(tzinfo=UTC).timestamp()) * SECOND
