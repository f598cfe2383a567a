"""Forgetting old parcels by deleting them: all of them on SQLite, on PostgreSQL what its DEFAULT partitions hold."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from uuid import UUID

from horae.env import Instant
from horae.model.ids import first_id_at
from horae.store.script import ColumnType, Fetch, ForEach, Script, ScriptFactory, Statement
from horae.store.tables import BESIDE, PARTITIONED, SHELVES

# The parcel of a parent execution: its id with the low 16 bits cleared.
PARENT_PARCEL = {
    "sqlite": "CAST(substr(p.parent, 1, 14) || x'0000' AS BLOB)",
    "postgresql": "(left(p.parent::text, 32) || '0000')::uuid",
}
_SUFFIX = {"sqlite": "", "postgresql": "_default"}
_RANGE: tuple[tuple[str, ColumnType], ...] = (("first", "uuid"), ("last", "uuid"))


def live(parcel: str) -> str:
    """The condition that a parcel still has a slice on a shelf."""
    return "(" + " OR ".join(f"EXISTS (SELECT 1 FROM {s} WHERE {s}.parcel = {parcel})" for s in SHELVES) + ")"


def _old(dialect: str) -> Statement:
    suffix = _SUFFIX[dialect]
    return Statement(
        "old_parcels",
        f"SELECT p.id FROM parcels{suffix} p WHERE p.id < $1 AND NOT {live('p.id')}"
        f" AND (p.parent IS NULL OR NOT {live(PARENT_PARCEL[dialect])}) AND NOT EXISTS"
        f" (SELECT 1 FROM history{suffix} h WHERE h.parcel = p.id AND h.completed_at >= $2) ORDER BY p.id LIMIT $3",
    )


def _deletes(dialect: str) -> list[Statement]:
    keys = {"parcels": "id"}
    tables = [(name + _SUFFIX[dialect], keys.get(name, "parcel")) for name in PARTITIONED]
    return [
        Statement(f"expire_{t}", f"DELETE FROM {t} USING given WHERE {t}.{k} >= given.first AND {t}.{k} <= given.last")
        for t, k in [*tables, *((name, "parcel") for name in BESIDE)]
    ]


_OLD = {dialect: _old(dialect) for dialect in _SUFFIX}
_DELETES = {dialect: _deletes(dialect) for dialect in _SUFFIX}
_BETWEEN = {
    dialect: Statement("parcels_between", f"SELECT id FROM parcels{suffix} WHERE id >= $1 AND id <= $2 ORDER BY id")
    for dialect, suffix in _SUFFIX.items()
}


def expire(dialect: str, before: Instant, batch: int) -> ScriptFactory[int]:
    """Delete up to `batch` parcels made before an instant, with all that ended before it and nothing live needs."""

    def script() -> Script[int]:
        old = [id for (id,) in (yield Fetch(_OLD[dialect], (first_id_at(before), before, batch)))]
        if not old:
            return 0
        between = yield Fetch(_BETWEEN[dialect], (old[0], old[-1]))
        ranges = list(runs([id for (id,) in between], frozenset(old)))
        for statement in _DELETES[dialect]:
            yield ForEach(statement, _RANGE, ranges)
        return len(old)

    return script


def runs(ids: Sequence[UUID], chosen: frozenset[UUID]) -> Iterator[tuple[UUID, UUID]]:
    """The first and last of every unbroken run of chosen ids in a sorted list."""
    for wanted, run in groupby(ids, chosen.__contains__):
        if wanted:
            members = list(run)
            yield members[0], members[-1]
