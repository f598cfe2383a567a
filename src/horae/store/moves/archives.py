"""The archive: what is put there is forgotten in the same transaction that names its file."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.namespace import Outcome
from horae.store.expiry import Over, forget, free
from horae.store.moves.artifacts import NOT_LITTER
from horae.store.script import ColumnType, Fetch, ForEach, Insert, Script, Statement

_COLUMNS: tuple[tuple[str, ColumnType], ...] = (
    ("id", "uuid"), ("namespace", "int"), ("first_at", "bigint"), ("last_at", "bigint"), ("executions", "int"),
    ("bytes", "bigint"), ("location", "text"),
)  # fmt: skip
_NAMES = ", ".join(name for name, _ in _COLUMNS)
_LITTER: tuple[tuple[str, ColumnType], ...] = (("location", "text"), ("at", "bigint"))
ITEMS = Statement(
    "items_to_archive",
    "SELECT h.parcel, h.lo, h.hi, h.state FROM given JOIN history h ON h.parcel = given.id ORDER BY h.parcel, h.lo",
)
BEFORE = Statement(
    "archives_before",
    f"SELECT {_NAMES} FROM archives WHERE namespace = $1 AND id <= $2 ORDER BY id DESC LIMIT $3",
)
SAVE = Statement("move_archive", "UPDATE archives SET location = $2, bytes = $3 WHERE id = $1")
DROP = Statement("drop_archive", "DELETE FROM archives WHERE id = $1")
LAST = UUID(int=2**128 - 1)


class Archive(Struct, frozen=True, kw_only=True):
    """One file: executions of a namespace, and where they lie."""

    id: UUID
    namespace: int
    first_at: Instant
    last_at: Instant
    executions: int
    bytes: int
    location: str


Item = tuple[UUID, int, int, Outcome]  # a parcel, and from where to where its items ended so


def items(parcels: Sequence[UUID]) -> Script[list[Item]]:
    """What these parcels came to."""
    rows = yield ForEach(ITEMS, (("id", "uuid"),), [(parcel,) for parcel in parcels])
    return [(parcel, lo, hi, state) for parcel, lo, hi, state in rows]


def put(dialect: str, archive: Archive | None, over: Sequence[Over]) -> Script[bool]:
    """Name a file, if there is one, and forget what is in it; or nothing at all, if something of it changed since."""
    if len((yield from free(dialect, over))) < len(over):
        return False
    if archive is not None:
        a = archive
        row = (a.id, a.namespace, a.first_at, a.last_at, a.executions, a.bytes, a.location)
        yield Insert("archives", _COLUMNS, [row])
        yield Fetch(NOT_LITTER, (archive.location,))
    yield from forget([parcel for parcel, _ in over])
    return True


def before(namespace: int, last: UUID, count: int) -> Script[list[Archive]]:
    """Files of a namespace from one on, the newest first."""
    rows = yield Fetch(BEFORE, (namespace, last, count))
    return [
        Archive(
            id=row[0], namespace=row[1], first_at=row[2], last_at=row[3], executions=row[4], bytes=row[5],
            location=row[6],
        )
        for row in rows
    ]  # fmt: skip


def move(archive: Archive, location: str, size: int, now: Instant) -> Script[None]:
    """Let a file lie elsewhere; what lay where it was is litter."""
    yield Fetch(SAVE, (archive.id, location, size))
    yield Fetch(NOT_LITTER, (location,))
    yield Insert("litter", _LITTER, [(archive.location, now)], conflict="ON CONFLICT DO NOTHING")


def drop(archives: Sequence[Archive], now: Instant) -> Script[None]:
    """Forget files; what lies there is litter."""
    for archive in archives:
        yield Fetch(DROP, (archive.id,))
    yield Insert("litter", _LITTER, [(a.location, now) for a in archives], conflict="ON CONFLICT DO NOTHING")
