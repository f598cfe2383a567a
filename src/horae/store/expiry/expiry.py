"""Deletion of old parcels. A parcel is deleted as a whole, once the retention of all its items is over.

`expire` deletes by age. On SQLite it deletes all old parcels. On PostgreSQL it deletes only the parcels in DEFAULT
partitions; `postgres/partitions.py` drops the daily partitions as a whole. If namespaces have retentions of their own,
`walk` also checks the parcels of all partitions, one page after another.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from msgspec import structs

from horae.env import Instant
from horae.model.base.ids import first_id_at
from horae.model.tenancy.namespace import Longer, Retention
from horae.store.script import ColumnType, Fetch, ForEach, Script, ScriptFactory, Statement
from horae.store.tables import DELETED_WITH_PARCEL, LIVE_SHELVES, PARTITIONED

# The parcel of the parent execution: the id of an execution is that of its parcel, with the index in the low 16 bits.
_PARENT_PARCEL = "(left(p.parent::text, 32) || '0000')::uuid"
_PARENT_PARCEL_SQLITE = "CAST(substr(p.parent, 1, 14) || x'0000' AS BLOB)"
_RANGE: tuple[tuple[str, ColumnType], ...] = (("first", "uuid"), ("last", "uuid"))


class Cutoffs(NamedTuple):
    """The cutoffs of a sweep: older executions and fires are deleted, unless a namespace has a retention of its own.

    `now` is for rows that have an expiry of their own.
    """

    executions: Instant
    fires: Instant
    now: Instant


Sweep = Callable[[Cutoffs], Script[bool]]  # deletes some old rows of a feature; returns whether there may be more


def live_condition(parcel: str) -> str:
    """Return the SQL condition that a parcel has an execution that has not ended."""
    return "(" + " OR ".join(f"EXISTS (SELECT 1 FROM {s} WHERE {s}.parcel = {parcel})" for s in LIVE_SHELVES) + ")"


def needed_condition(parent: str = _PARENT_PARCEL) -> str:
    """Return the SQL condition that a live workflow needs parcel `p`.

    That workflow is the parent of the parcel's executions, or a rerun that reuses results of some of them.
    """
    taken = f"SELECT 1 FROM flow_parcels c WHERE c.taken AND c.child = p.id AND {live_condition('c.parcel')}"
    return f"((p.parent IS NOT NULL AND {live_condition(parent)}) OR EXISTS ({taken}))"


def unneeded(name: str, text: str) -> Statement:
    """Return a statement on parcels `p`.

    `{unneeded}` in its text stands for the condition that `p` has no live execution and no live workflow needs it.
    """
    postgres, sqlite = (
        f"NOT {live_condition('p.id')} AND NOT {needed_condition(p)}" for p in (_PARENT_PARCEL, _PARENT_PARCEL_SQLITE)
    )
    return Statement(name, text.replace("{unneeded}", postgres), sqlite=text.replace("{unneeded}", sqlite))


def in_default(statement: Statement) -> Statement:
    """Add the SQLite text to a statement that names DEFAULT partitions, such as `parcels_default`.

    SQLite has no partitions, so its text names the whole tables.
    """
    return structs.replace(statement, sqlite=statement.on_sqlite.replace("_default", ""))


def _deletes() -> list[Statement]:
    keys = {"parcels": "id"}
    tables = [(name, f"{name}_default", keys.get(name, "parcel")) for name in PARTITIONED]
    return [
        in_default(
            Statement(
                f"expire_{name}",
                f"DELETE FROM {t} USING given WHERE {t}.{key} >= given.first AND {t}.{key} <= given.last",
            )
        )
        for name, t, key in [*tables, *((name, name, "parcel") for name in DELETED_WITH_PARCEL)]
    ]


_OLD = in_default(
    unneeded(
        "old_parcels",
        "SELECT p.id FROM parcels_default p WHERE p.id < $1 AND {unneeded} AND NOT EXISTS"
        " (SELECT 1 FROM history_default h WHERE h.parcel = p.id AND h.completed_at >= $2) ORDER BY p.id LIMIT $3",
    )
)
_DELETES = _deletes()
_BETWEEN = in_default(
    Statement("parcels_between", "SELECT id FROM parcels_default WHERE id >= $1 AND id <= $2 ORDER BY id")
)

FIRST_ID = UUID(int=0)
EndedParcel = tuple[UUID, Instant]  # a parcel, and the latest end of any of its items
_PAGE_END = Statement(
    "expiry_page_end", "SELECT id FROM parcels WHERE id > $1 AND id < $2 ORDER BY id LIMIT 1 OFFSET $3"
)
_ENDED = Statement(
    "expiry_page",
    "SELECT parcel, namespace, state, max(completed_at) FROM history WHERE parcel > $1 AND parcel <= $2"
    " GROUP BY parcel, namespace, state ORDER BY parcel",
)
# Checks all conditions again in one snapshot. A parcel stays if one of its items is live, if one has ended since the
# parcel was selected, or if a live workflow needs the parcel.
_FREE = unneeded(
    "parcels_nobody_needs",
    "SELECT p.id FROM given JOIN parcels p ON p.id = given.id WHERE {unneeded}"
    " AND NOT EXISTS (SELECT 1 FROM history h WHERE h.parcel = p.id AND h.completed_at > given.newest)",
)
FORGET = [
    Statement(f"forget_{name}", f"DELETE FROM {name} USING given WHERE {name}.{key} = given.id")
    for name, key in [("parcels", "id"), *((name, "parcel") for name in (*PARTITIONED[1:], *DELETED_WITH_PARCEL))]
]


def walk(
    after: UUID, before: Instant, retention: Retention, now: Instant, batch: int = 1000
) -> ScriptFactory[tuple[UUID | None, int]]:
    """Return a script that checks a page of parcels and deletes those whose retention is over.

    The page has up to `batch` parcels that follow the id `after` and were submitted before an instant. The script
    returns the id after which the next page begins, or None after the last page, and the number of deleted parcels.
    """

    def script() -> Script[tuple[UUID | None, int]]:
        end, over = yield from past_retention(after, before, retention, now, batch)
        yield from forget([parcel for parcel, _ in over])
        return end, len(over)

    return script


def past_retention(
    after: UUID, before: Instant, retention: Retention, now: Instant, batch: int
) -> Script[tuple[UUID | None, list[EndedParcel]]]:
    """Check a page of parcels, as `walk` does.

    Return the id after which the next page begins, or None after the last page. Also return the parcels whose retention
    is over, except those that have a live execution or that a live workflow needs.
    """
    last = first_id_at(before)
    ends = yield Fetch(_PAGE_END, (after, last, batch - 1))
    end = ends[0][0] if ends else None
    rows = yield Fetch(_ENDED, (after, end or last))
    over = []
    for parcel, group in groupby(rows, key=lambda row: row[0]):
        ended = [row[1:] for row in group]
        if parcel < last and retention.is_over(ended, now):
            over.append((parcel, max(at for _, _, at in ended)))
    return end, (yield from unneeded_among(over))


def unneeded_among(over: Sequence[EndedParcel]) -> Script[list[EndedParcel]]:
    """Return the parcels that have no live execution and that no live workflow needs.

    A parcel is also left out if one of its items has ended since the parcel was selected.
    """
    if not over:
        return []
    found = {parcel_id for (parcel_id,) in (yield ForEach(_FREE, (("id", "uuid"), ("newest", "bigint")), over))}
    return [(parcel, newest) for parcel, newest in over if parcel in found]


def forget(parcels: Sequence[UUID]) -> Script[None]:
    """Delete these parcels with their rows in all tables."""
    if parcels:
        for statement in FORGET:
            yield ForEach(statement, (("id", "uuid"),), [(parcel,) for parcel in parcels])


def expire(before: Instant, batch: int) -> ScriptFactory[int]:
    """Return a script that deletes up to `batch` parcels that were submitted and ended before an instant.

    Parcels that a live workflow needs stay. The script returns the number of deleted parcels.
    """

    def script() -> Script[int]:
        old = [parcel_id for (parcel_id,) in (yield Fetch(_OLD, (first_id_at(before), before, batch)))]
        if not old:
            return 0
        between = yield Fetch(_BETWEEN, (old[0], old[-1]))
        ranges = list(unbroken_ranges([parcel_id for (parcel_id,) in between], frozenset(old)))
        for statement in _DELETES:
            yield ForEach(statement, _RANGE, ranges)
        return len(old)

    return script


def earliest_cutoff(before: Instant, longer: Sequence[Longer]) -> Instant:
    """Return the earliest cutoff of all retentions: executions that ended before it are retained by no namespace."""
    return min([before, *(since for _, _, since in longer)])


def unbroken_ranges(ids: Sequence[UUID], chosen: frozenset[UUID]) -> Iterator[tuple[UUID, UUID]]:
    """Yield the first and the last id of each unbroken run of chosen ids in a sorted list."""
    for wanted, run in groupby(ids, chosen.__contains__):
        if wanted:
            members = list(run)
            yield members[0], members[-1]
