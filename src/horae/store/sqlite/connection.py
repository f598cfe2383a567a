"""One SQLite connection that executes ops."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import UUID, SafeUUID

from horae.store.driver import op_name
from horae.store.script import Fetch, ForEach, Insert, Lock, Op, Provided, Row, Rows, Together
from horae.store.sqlite import translate
from horae.store.sqlite.library import sqlite3

# SQLite knows no declared type for columns that are expressions or come from `given`. Ids among them are recognised by
# these names of columns.
_ID_NAMES = frozenset(
    [
        "id",
        "parcel",
        "job",
        "session",
        "execution",
        "parent",
        "trigger_id",
        "last_execution",
        "dependent",
        "server",
        "holder",
    ]
)
MOST_AT_ONCE = 64  # the most given rows that one statement reads for
_new, _set = object.__new__, object.__setattr__
_NOTHING: dict[None, None] = {}


@lru_cache(4096)
def to_uuid(value: bytes) -> UUID:
    """Do the same as UUID(bytes=value), but faster.

    Results are cached, because the ids of jobs, sessions and parcels are read repeatedly.
    """
    made = _new(UUID)
    _set(made, "int", int.from_bytes(value, "big"))
    _set(made, "is_safe", SafeUUID.unknown)
    return made


sqlite3.register_converter("UUID", to_uuid)
sqlite3.register_converter("BOOLEAN", lambda value: value != b"0")
# For each value to bind, the module `sqlite3` looks for an adapter, and if there is none, for `__adapt__` and
# `__conform__`. That search costs 1.8 us, and its cost was a third of the cost of a fire. So these types get adapters
# that return their argument and are the cheapest ones possible.
sqlite3.register_adapter(bytes, bytes.__bytes__)
sqlite3.register_adapter(bool, int)
sqlite3.register_adapter(type(None), _NOTHING.get)


def connect(path: Path | None) -> "sqlite3.Connection":
    """Open a file, or a new database in memory. Transactions are begun explicitly."""
    return sqlite3.connect(
        ":memory:" if path is None else str(path),
        timeout=5,
        isolation_level=None,
        detect_types=sqlite3.PARSE_DECLTYPES,
        check_same_thread=False,
        cached_statements=1024,
    )


class Connection:
    """Executes ops on a raw connection; each statement is translated once and cached."""

    def __init__(self, raw: "sqlite3.Connection", statements: Counter[str]) -> None:
        self.raw = raw
        self.statements = statements
        self._ids: dict[str, tuple[int, ...]] = {}  # for each text, the positions of result columns that are ids

    def execute(self, op: Op) -> Rows:
        """Run one op and return its rows."""
        if isinstance(op, Fetch):
            self.statements[op.statement.name] += 1
            return self._rows(translate.translate(op.statement.on_sqlite), _bound(op.params))
        if isinstance(op, Lock):
            return []
        if isinstance(op, Together):
            for change in op.acting:
                self.execute(change)
            return []
        if isinstance(op, Provided):
            return self._provided(op)
        self.statements[op_name(op)] += 1
        if isinstance(op, ForEach):
            if op.statement.at_once and len(op.rows) > 1 and not op.params:
                return self._at_once(op)
            plan = translate.for_each(op.statement.on_sqlite, op.columns)
            return self._many(plan, op.rows, tuple(_bound(op.params)))
        if isinstance(op, Insert):
            return self._many(translate.insert(op.table, op.columns, op.conflict, op.returning), op.rows, ())
        if not op.ids:
            return []
        text, size = translate.among(op.statement.on_sqlite, len(op.ids))
        padding = [op.ids[-1]] * (size - len(op.ids))
        return self._rows(text, _bound([*op.ids, *padding, *op.params]))

    def _provided(self, op: Provided) -> Rows:
        for condition in op.conditions:
            if len(self.execute(condition)) < len(condition.rows):
                return [(False,)]
        for change in op.changes:
            self.execute(change)
        return [(True,)]

    def _at_once(self, op: ForEach) -> Rows:
        """Read for many given rows by few statements.

        Each statement reads for a power of two of given rows, so that only few texts must be prepared.
        """
        found: Rows = []
        at, count = 0, len(op.rows)
        while at < count:
            size = min(MOST_AT_ONCE, 1 << (count - at).bit_length() - 1)
            values = [value for row in op.rows[at : at + size] for value in _bound(row)]
            found += self._rows(translate.for_many(op.statement.on_sqlite, op.columns, size), values)
            at += size
        return found

    def begin(self) -> None:
        self.raw.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.raw.execute("COMMIT")

    def rollback(self) -> None:
        if self.raw.in_transaction:
            self.raw.execute("ROLLBACK")

    def _rows(self, text: str, params: Sequence[Any]) -> Rows:
        cursor = self.raw.execute(text, params)
        return self._with_ids(text, cursor, cursor.fetchall())

    def _many(
        self, plan: translate.TranslatedStatement, rows: Sequence[Sequence[Any]], params: tuple[Any, ...]
    ) -> Rows:
        bound = _bound_rows(rows, plan, params)
        if not plan.returns:
            self.raw.executemany(plan.text, bound)
            return []
        found: Rows = []
        cursor = None
        for row in bound:
            cursor = self.raw.execute(plan.text, row)
            found += cursor.fetchall()
        return self._with_ids(plan.text, cursor, found)

    def _with_ids(self, text: str, cursor: "sqlite3.Cursor | None", rows: Rows) -> Rows:
        """Convert ids in rows to UUIDs.

        Columns that SQLite converts itself, by their declared type, are skipped from then on.
        """
        if not rows or cursor is None:
            return rows
        places = self._ids.get(text)
        if places is None:
            places = tuple(place for place, about in enumerate(cursor.description) if about[0] in _ID_NAMES)
            self._ids[text] = places
        if not places:
            return rows
        first = rows[0]
        if any(type(first[place]) is UUID for place in places):
            places = self._ids[text] = tuple(place for place in places if type(first[place]) is not UUID)
        return [_ids_made(row, places) for row in rows] if places else rows


def _ids_made(row: Row, places: tuple[int, ...]) -> Row:
    values = list(row)
    for place in places:
        if type(values[place]) is bytes:
            values[place] = to_uuid(values[place])
    return tuple(values)


def _bound(params: Iterable[Any]) -> list[Any]:
    return [value.bytes if isinstance(value, UUID) else value for value in params]


def _bound_rows(
    rows: Sequence[Sequence[Any]], plan: translate.TranslatedStatement, params: tuple[Any, ...]
) -> Iterator[Sequence[Any]]:
    uuids, count = plan.uuids, plan.count
    for row in rows:
        values = [*row, *params]
        for place in uuids:
            value = values[place]
            if value is not None:
                values[place] = value.int.to_bytes(16)  # the same as `value.bytes`, without the call of a property
        yield values if len(values) == count else values[:count]
