"""Forgetting old parcels by deleting them: all of them on SQLite, on PostgreSQL what its DEFAULT partitions hold.

Where namespaces keep executions for other times than all others do, a walk looks at parcels in turn, in whatever
partition. A parcel goes as a whole, when all that ended in it is kept long enough: so each item that has a parcel has
its place.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from uuid import UUID

from horae.env import Instant
from horae.model.base.ids import first_id_at
from horae.model.tenancy.namespace import Longer, Retention
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


def needed(dialect: str) -> str:
    """The condition that a live workflow needs a parcel: its parent, or a rerun that took over some of its items."""
    taken = f"SELECT 1 FROM flow_parcels c WHERE c.taken AND c.child = p.id AND {live('c.parcel')}"
    return f"((p.parent IS NOT NULL AND {live(PARENT_PARCEL[dialect])}) OR EXISTS ({taken}))"


def _old(dialect: str) -> Statement:
    suffix = _SUFFIX[dialect]
    return Statement(
        "old_parcels",
        f"SELECT p.id FROM parcels{suffix} p WHERE p.id < $1 AND NOT {live('p.id')}"
        f" AND NOT {needed(dialect)} AND NOT EXISTS"
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


START = UUID(int=0)
Over = tuple[UUID, Instant]  # a parcel, and when the last of it ended
_PAGE_END = Statement(
    "expiry_page_end", "SELECT id FROM parcels WHERE id > $1 AND id < $2 ORDER BY id LIMIT 1 OFFSET $3"
)
_ENDED = Statement(
    "expiry_page",
    "SELECT parcel, namespace, state, max(completed_at) FROM history WHERE parcel > $1 AND parcel <= $2"
    " GROUP BY parcel, namespace, state ORDER BY parcel",
)
# Once more in one snapshot: what ended since it was looked at, or has not, keeps its parcel.
_FREE = {
    dialect: Statement(
        "parcels_nobody_needs",
        f"SELECT p.id FROM given JOIN parcels p ON p.id = given.id WHERE NOT {live('p.id')}"
        f" AND NOT {needed(dialect)}"
        " AND NOT EXISTS (SELECT 1 FROM history h WHERE h.parcel = p.id AND h.completed_at > given.newest)",
    )
    for dialect in _SUFFIX
}
FORGET = [
    Statement(f"forget_{name}", f"DELETE FROM {name} USING given WHERE {name}.{key} = given.id")
    for name, key in [("parcels", "id"), *((name, "parcel") for name in (*PARTITIONED[1:], *BESIDE))]
]


def walk(
    dialect: str, after: UUID, before: Instant, retention: Retention, now: Instant, batch: int = 1000
) -> ScriptFactory[tuple[UUID | None, int]]:
    """Look at the parcels that follow an id and were made before an instant, and forget those that are kept long
    enough; where to go on, None after the last, and how many went.
    """

    def script() -> Script[tuple[UUID | None, int]]:
        end, over = yield from look(dialect, after, before, retention, now, batch)
        yield from forget([parcel for parcel, _ in over])
        return end, len(over)

    return script


def look(
    dialect: str, after: UUID, before: Instant, retention: Retention, now: Instant, batch: int
) -> Script[tuple[UUID | None, list[Over]]]:
    """Of the parcels that follow an id, those that are kept long enough and nobody needs; and where to go on."""
    last = first_id_at(before)
    ends = yield Fetch(_PAGE_END, (after, last, batch - 1))
    end = ends[0][0] if ends else None
    rows = yield Fetch(_ENDED, (after, end or last))
    over = []
    for parcel, group in groupby(rows, key=lambda row: row[0]):
        ended = [row[1:] for row in group]
        if parcel < last and retention.is_over(ended, now):
            over.append((parcel, max(at for _, _, at in ended)))
    return end, (yield from free(dialect, over))


def free(dialect: str, over: Sequence[Over]) -> Script[list[Over]]:
    """Of these parcels, those of which nothing lives and nothing ended since."""
    if not over:
        return []
    found = {id for (id,) in (yield ForEach(_FREE[dialect], (("id", "uuid"), ("newest", "bigint")), over))}
    return [(parcel, newest) for parcel, newest in over if parcel in found]


def forget(parcels: Sequence[UUID]) -> Script[None]:
    """Forget these parcels and all that goes with them."""
    if parcels:
        for statement in FORGET:
            yield ForEach(statement, (("id", "uuid"),), [(parcel,) for parcel in parcels])


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


def surely(before: Instant, longer: Sequence[Longer]) -> Instant:
    """Before when everything goes that ended, whoever keeps it for how long."""
    return min([before, *(since for _, _, since in longer)])


def runs(ids: Sequence[UUID], chosen: frozenset[UUID]) -> Iterator[tuple[UUID, UUID]]:
    """The first and last of every unbroken run of chosen ids in a sorted list."""
    for wanted, run in groupby(ids, chosen.__contains__):
        if wanted:
            members = list(run)
            yield members[0], members[-1]
