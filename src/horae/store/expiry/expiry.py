"""Forgetting old parcels by deleting them: all of them on SQLite, on PostgreSQL what its DEFAULT partitions hold.

Where namespaces keep executions for other times than all others do, a walk looks at parcels in turn, in whatever
partition. A parcel goes as a whole, when all that ended in it is kept long enough: so each item that has a parcel has
its place.
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
from horae.store.tables import BESIDE, PARTITIONED, SHELVES

# The parcel of a parent execution: its id with the low 16 bits cleared.
_PARENT_PARCEL = "(left(p.parent::text, 32) || '0000')::uuid"
_PARENT_PARCEL_SQLITE = "CAST(substr(p.parent, 1, 14) || x'0000' AS BLOB)"
_RANGE: tuple[tuple[str, ColumnType], ...] = (("first", "uuid"), ("last", "uuid"))


class Ages(NamedTuple):
    """What is older than these instants is forgotten, but for what is kept for a time of its own."""

    executions: Instant
    fires: Instant
    now: Instant


Sweep = Callable[[Ages], Script[bool]]  # forgets some rows of a feature; true when there may be more


def live(parcel: str) -> str:
    """The condition that a parcel still has a slice on a shelf."""
    return "(" + " OR ".join(f"EXISTS (SELECT 1 FROM {s} WHERE {s}.parcel = {parcel})" for s in SHELVES) + ")"


def needed(parent: str = _PARENT_PARCEL) -> str:
    """The condition that a live workflow needs a parcel: its parent, or a rerun that took over some of its items."""
    taken = f"SELECT 1 FROM flow_parcels c WHERE c.taken AND c.child = p.id AND {live('c.parcel')}"
    return f"((p.parent IS NOT NULL AND {live(parent)}) OR EXISTS ({taken}))"


def unneeded(name: str, text: str) -> Statement:
    """A statement on parcels `p`; its `{unneeded}` is the condition that nothing lives in one, nor needs it."""
    postgres, sqlite = (f"NOT {live('p.id')} AND NOT {needed(p)}" for p in (_PARENT_PARCEL, _PARENT_PARCEL_SQLITE))
    return Statement(name, text.replace("{unneeded}", postgres), sqlite=text.replace("{unneeded}", sqlite))


def in_default(statement: Statement) -> Statement:
    """A statement on the DEFAULT partitions of the tables that it names like `parcels_default`; SQLite has none."""
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
        for name, t, key in [*tables, *((name, name, "parcel") for name in BESIDE)]
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
_FREE = unneeded(
    "parcels_nobody_needs",
    "SELECT p.id FROM given JOIN parcels p ON p.id = given.id WHERE {unneeded}"
    " AND NOT EXISTS (SELECT 1 FROM history h WHERE h.parcel = p.id AND h.completed_at > given.newest)",
)
FORGET = [
    Statement(f"forget_{name}", f"DELETE FROM {name} USING given WHERE {name}.{key} = given.id")
    for name, key in [("parcels", "id"), *((name, "parcel") for name in (*PARTITIONED[1:], *BESIDE))]
]


def walk(
    after: UUID, before: Instant, retention: Retention, now: Instant, batch: int = 1000
) -> ScriptFactory[tuple[UUID | None, int]]:
    """Look at the parcels that follow an id and were made before an instant, and forget those that are kept long
    enough; where to go on, None after the last, and how many went.
    """

    def script() -> Script[tuple[UUID | None, int]]:
        end, over = yield from look(after, before, retention, now, batch)
        yield from forget([parcel for parcel, _ in over])
        return end, len(over)

    return script


def look(
    after: UUID, before: Instant, retention: Retention, now: Instant, batch: int
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
    return end, (yield from free(over))


def free(over: Sequence[Over]) -> Script[list[Over]]:
    """Of these parcels, those of which nothing lives and nothing ended since."""
    if not over:
        return []
    found = {id for (id,) in (yield ForEach(_FREE, (("id", "uuid"), ("newest", "bigint")), over))}
    return [(parcel, newest) for parcel, newest in over if parcel in found]


def forget(parcels: Sequence[UUID]) -> Script[None]:
    """Forget these parcels and all that goes with them."""
    if parcels:
        for statement in FORGET:
            yield ForEach(statement, (("id", "uuid"),), [(parcel,) for parcel in parcels])


def expire(before: Instant, batch: int) -> ScriptFactory[int]:
    """Delete up to `batch` parcels made before an instant, with all that ended before it and nothing live needs."""

    def script() -> Script[int]:
        old = [id for (id,) in (yield Fetch(_OLD, (first_id_at(before), before, batch)))]
        if not old:
            return 0
        between = yield Fetch(_BETWEEN, (old[0], old[-1]))
        ranges = list(runs([id for (id,) in between], frozenset(old)))
        for statement in _DELETES:
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
