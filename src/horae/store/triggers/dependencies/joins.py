"""Rows of joins, and of the parts that upstreams have added to them. Callers that change them hold the locks of the
dependents.
"""

from collections.abc import Collection, Iterable, Sequence
from uuid import UUID

from horae.env import Instant
from horae.model.triggers.dependency import NO_INTERVAL, Join, JoinPart
from horae.store.base.shelves import Columns
from horae.store.script import Fetch, ForEach, Insert, Row, Script, Statement
from horae.store.triggers.dependencies.dependents import lock

_JOIN = "j.dependent, j.step, j.interval_start, j.interval_end, j.state, j.execution, j.deadline, j.wake_at"
_KEYS: Columns = (("dependent", "uuid"), ("step", "text"), ("interval_start", "bigint"))
_MATCH = "dependent = given.dependent AND {0}step = given.step AND {0}interval_start = given.interval_start"
KEYED = Statement("joins_by_key", f"SELECT {_JOIN} FROM given JOIN joins j ON j.{_MATCH.format('j.')}")
PARTS = Statement(
    "join_parts",
    "SELECT p.dependent, p.step, p.interval_start, p.upstream, p.met, p.state, p.execution FROM given"
    f" JOIN join_parts p ON p.{_MATCH.format('p.')}",
)
# The job's own join of an interval, and the joins of single executions that wait for the same interval.
OF_INTERVAL = Statement(
    "joins_of_interval",
    f"SELECT {_JOIN} FROM given JOIN joins j ON j.dependent = given.dependent"
    " AND j.interval_start = given.interval_start WHERE j.state IN ('open', 'skipped')",
)
OPEN = Statement(
    "open_joins", "SELECT DISTINCT j.dependent FROM given JOIN joins j ON j.dependent = given.dependent"
    " WHERE j.state = 'open'",
)  # fmt: skip
# Joins without an interval come first (their start is -1), then the oldest intervals.
LACKING = Statement(
    "joins_lacking",
    f"SELECT {_JOIN} FROM joins j WHERE j.dependent = $1 AND j.state = 'open' AND j.interval_start <= $3"
    " AND NOT EXISTS (SELECT 1 FROM join_parts p WHERE p.dependent = j.dependent AND p.step = j.step"
    " AND p.interval_start = j.interval_start AND p.upstream = $2) ORDER BY j.interval_start, j.step LIMIT $4",
)
OPEN_OF = Statement(
    "open_joins_of",
    f"SELECT {_JOIN} FROM joins j WHERE j.dependent = $1 AND j.state = 'open' ORDER BY j.interval_start",
)
DUE = Statement("due_joins", f"SELECT {_JOIN} FROM joins j WHERE j.wake_at <= $1 ORDER BY j.wake_at LIMIT $2")
NEXT = Statement("next_join", "SELECT min(wake_at) FROM joins WHERE wake_at IS NOT NULL")
SET = Statement(
    "set_joins",
    "UPDATE joins SET state = given.state, execution = given.execution, deadline = given.deadline,"
    f" wake_at = given.wake_at FROM given WHERE joins.{_MATCH.format('joins.')}",
)
OLD = Statement(
    "old_joins",
    "SELECT j.dependent, j.step, j.interval_start FROM joins j WHERE j.made_at < $1 AND j.wake_at IS NULL"
    " ORDER BY j.made_at LIMIT $2",
)
FORGET = Statement(
    "forget_joins",
    "DELETE FROM joins WHERE (dependent, step, interval_start) IN (SELECT dependent, step, interval_start FROM given)",
)
FORGET_PARTS = Statement(
    "forget_join_parts",
    "DELETE FROM join_parts WHERE (dependent, step, interval_start) IN"
    " (SELECT dependent, step, interval_start FROM given)",
)
COLUMNS: Columns = (
    *_KEYS, ("interval_end", "bigint"), ("state", "text"), ("execution", "uuid"), ("deadline", "bigint"),
    ("wake_at", "bigint"),
)  # fmt: skip
PART_COLUMNS: Columns = (
    *_KEYS, ("upstream", "uuid"), ("met", "bool"), ("state", "text"), ("execution", "uuid"), ("at", "bigint"),
)  # fmt: skip
EVER = 1 << 62

Key = tuple[UUID, str, Instant]
Parts = dict[UUID, JoinPart]


def _join(row: Row) -> Join:
    return Join(
        dependent=row[0], step=row[1], start=row[2], end=row[3], state=row[4], execution=row[5], deadline=row[6],
        wake_at=row[7],
    )  # fmt: skip


def put(joins: Sequence[Join], now: Instant) -> Script[set[Key]]:
    """Insert joins that do not exist yet, and return the keys of the new ones."""
    if not joins:
        return set()
    rows = [(j.dependent, j.step, j.start, j.end, j.state, j.execution, j.deadline, j.wake_at, now) for j in joins]
    made = yield Insert(
        "joins", (*COLUMNS, ("made_at", "bigint")), rows, conflict="ON CONFLICT DO NOTHING",
        returning="dependent, step, interval_start",
    )  # fmt: skip
    return {(row[0], row[1], row[2]) for row in made}


def add_parts(parts: Iterable[tuple[Key, JoinPart]], now: Instant) -> Script[None]:
    """Add or replace the parts of upstreams.

    A part that met its condition is never replaced, whatever the state in which the same upstream ends later.
    """
    rows = [(*key, p.upstream, p.met, p.state, p.execution, now) for key, p in parts]
    if rows:
        update = "met = excluded.met, state = excluded.state, execution = excluded.execution, at = excluded.at"
        yield Insert(
            "join_parts", PART_COLUMNS, rows,
            conflict="ON CONFLICT (dependent, step, interval_start, upstream)"
            f" DO UPDATE SET {update} WHERE NOT join_parts.met",  # guard: join-met-stays
        )  # fmt: skip


def read(keys: Collection[Key]) -> Script[list[tuple[Join, Parts]]]:
    """Return joins with their parts, in the order of their keys."""
    if not keys:
        return []
    given = sorted(keys)
    rows = yield ForEach(KEYED, _KEYS, given)
    parts: dict[Key, Parts] = {}
    for dependent, step, start, upstream, met, state, execution in (yield ForEach(PARTS, _KEYS, given)):
        brought = JoinPart(upstream=upstream, met=bool(met), state=state, execution=execution)
        parts.setdefault((dependent, step, start), {})[upstream] = brought
    found = sorted((_join(row) for row in rows), key=lambda join: join.key)
    return [(join, parts.get(join.key, {})) for join in found]


def of_intervals(pairs: Collection[tuple[UUID, Instant]]) -> Script[list[Join]]:
    """Return the open and skipped joins of dependents by the starts of their intervals: (dependent, start)."""
    if not pairs:
        return []
    rows = yield ForEach(OF_INTERVAL, (("dependent", "uuid"), ("interval_start", "bigint")), sorted(pairs))
    return [_join(row) for row in rows]


def with_open(dependents: Collection[UUID]) -> Script[set[UUID]]:
    """Return the dependents that have an open join."""
    if not dependents:
        return set()
    rows = yield ForEach(OPEN, (("dependent", "uuid"),), [(job,) for job in sorted(dependents)])
    return {row[0] for row in rows}


def lacking(dependent: UUID, upstream: UUID, limit: int, *, intervals: bool) -> Script[list[Join]]:
    """Return open joins that have no part of an upstream; without `intervals`, only joins without a data interval."""
    rows = yield Fetch(LACKING, (dependent, upstream, EVER if intervals else NO_INTERVAL, limit))
    return [_join(row) for row in rows]


def open_of(dependent: UUID) -> Script[list[Join]]:
    """Return all open joins of a dependent."""
    rows = yield Fetch(OPEN_OF, (dependent,))
    return [_join(row) for row in rows]


def due(now: Instant, limit: int) -> Script[list[Join]]:
    """Return joins that are due for a check, without a lock."""
    rows = yield Fetch(DUE, (now, limit))
    return [_join(row) for row in rows]


def next_due() -> Script[Instant | None]:
    """Return the time at which the next join is due for a check; None if there is none."""
    rows = yield Fetch(NEXT)
    value: Instant | None = rows[0][0]
    return value


def forget(before: Instant, most: int) -> Script[int]:
    """Delete at most `most` joins that were created before an instant and need no check; return their number."""
    rows = yield Fetch(OLD, (before, most))
    if rows:
        yield from lock({row[0] for row in rows})  # no transaction adds parts meanwhile
        keys = sorted((row[0], row[1], row[2]) for row in rows)
        yield ForEach(FORGET, _KEYS, keys)
        yield ForEach(FORGET_PARTS, _KEYS, keys)
    return len(rows)


def save(joins: Iterable[Join]) -> Script[None]:
    """Write the changed columns of joins."""
    rows = [(*j.key, j.end, j.state, j.execution, j.deadline, j.wake_at) for j in joins]
    if rows:
        yield ForEach(SET, COLUMNS, rows)
