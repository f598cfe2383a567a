"""The files of the archive. One transaction adds the row of a file and deletes the executions that the file has."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.tenancy.namespace import Outcome
from horae.store.expiry.expiry import EndedParcel, forget, unneeded_among
from horae.store.script import ColumnType, Fetch, ForEach, Insert, Row, Script, Statement
from horae.store.tenancy.holdings import Holdings, drops

_COLUMNS: tuple[tuple[str, ColumnType], ...] = (
    ("id", "uuid"), ("namespace", "int"), ("first_at", "bigint"), ("last_at", "bigint"), ("executions", "int"),
    ("outcomes", "int"), ("jobs", "int"), ("bytes", "bigint"), ("location", "text"),
)  # fmt: skip
_OF_JOBS: tuple[tuple[str, ColumnType], ...] = (
    ("archive", "uuid"), ("job", "uuid"), ("namespace", "int"), ("name", "text"), ("outcomes", "int"),
)  # fmt: skip
MOST_JOBS = 500  # for a file with more jobs, no jobs are recorded
BITS: Mapping[Outcome, int] = {"success": 1, "failed": 2, "cancelled": 4, "skipped": 8}
ANY = sum(BITS.values())
_NAMES = ", ".join(name for name, _ in _COLUMNS)
_LITTER: tuple[tuple[str, ColumnType], ...] = (("location", "text"), ("at", "bigint"))
_COMING: tuple[tuple[str, ColumnType], ...] = (*_LITTER, ("archive", "int"))
ITEMS = Statement(
    "items_to_archive",
    "SELECT h.parcel, h.lo, h.hi, h.state FROM given JOIN history h ON h.parcel = given.id ORDER BY h.parcel, h.lo",
)
_BEFORE = (
    f"SELECT {_NAMES} FROM archives a WHERE a.namespace = $1 AND a.id <= $2 AND a.outcomes & $3 <> 0"
    " AND a.last_at >= $4 AND a.first_at <= $5"
)
BEFORE = Statement("archives_before", f"{_BEFORE} ORDER BY a.id DESC LIMIT $6")
BEFORE_OF_JOB = Statement(
    "archives_of_job_before",
    f"{_BEFORE} AND (a.jobs > {MOST_JOBS} OR EXISTS (SELECT 1 FROM archive_jobs j WHERE j.archive = a.id"
    " AND j.namespace = a.namespace AND j.outcomes & $3 <> 0 AND (j.name = $7 OR j.job = $8)))"
    " ORDER BY a.id DESC LIMIT $6",
)
OLDER = Statement(
    "archives_of_before", f"SELECT {_NAMES} FROM archives a WHERE a.namespace = $1 AND a.last_at < $2 LIMIT $3"
)
ONE = Statement("archive_of_id", f"SELECT {_NAMES} FROM archives a WHERE a.id = $1")
# This statement only locks. If it waits for a lock, its snapshot is older than the changes that it waited for, so that
# the rows must be read by the next statement.
LOCK = Statement(
    "lock_parcels_to_archive",
    "SELECT p.id FROM given JOIN parcels p ON p.id = given.id ORDER BY p.id FOR UPDATE OF p",
    at_once=True,
)
# The row is missing if the file was already deleted as litter. Its column `archive` is NULL if data of the namespace
# was erased since the file was announced.
IS_SOUND = Statement("archive_is_sound", "DELETE FROM litter WHERE location = $1 AND archive = $2 RETURNING 1")
IS_ANNOUNCED = Statement("archive_is_there", "DELETE FROM litter WHERE location = $1 RETURNING 1")
SPOIL = Statement("spoil_archives", "UPDATE litter SET archive = NULL WHERE archive = $1")
IS_AT_LOCATION = Statement("archive_lies_there", "SELECT 1 FROM archives WHERE id = $1 AND location = $2 FOR UPDATE")
SAVE = Statement("move_archive", "UPDATE archives SET location = $2, bytes = $3 WHERE id = $1")
DROP = Statement("drop_archive", "DELETE FROM archives WHERE id = $1 RETURNING location")
DROP_JOBS = Statement("drop_archive_jobs", "DELETE FROM archive_jobs WHERE archive = $1")
LAST = UUID(int=2**128 - 1)
NOBODY = UUID(int=0)
LATEST: Instant = 2**62
HOLDINGS = Holdings(
    ends=(
        Statement(
            "archives_are_litter",
            "INSERT INTO litter (location, at) SELECT location, $2 FROM archives WHERE namespace = $1"
            " ON CONFLICT DO NOTHING",
        ),
    ),
    drops=drops("archives", "archive_jobs"),
)


class Archive(Struct, frozen=True, kw_only=True):
    """A file of the archive, which has executions of one namespace."""

    id: UUID
    namespace: int
    first_at: Instant  # the earliest submission of its executions
    last_at: Instant  # the latest submission of its executions
    executions: int  # the number of its executions
    outcomes: int  # the BITS of their outcomes
    jobs: int  # the number of their jobs
    bytes: int
    location: str


class ArchiveQuery(Struct, frozen=True, kw_only=True):
    """The conditions for files that may have matching executions."""

    outcomes: int = ANY  # the BITS of outcomes
    since: Instant = 0  # bounds on the submission of executions
    until: Instant = LATEST
    job: str | None = None  # the name or id of a job


Item = tuple[UUID, int, int, Outcome]  # a parcel, and a range of its items with the same outcome


def items(parcels: Sequence[UUID]) -> Script[list[Item]]:
    """Return the items of these parcels in history, in ranges with the same outcome."""
    rows = yield ForEach(ITEMS, (("id", "uuid"),), [(parcel,) for parcel in parcels])
    return [(parcel, lo, hi, state) for parcel, lo, hi, state in rows]


Jobs = Mapping[UUID, tuple[str, int]]  # for each job in a file: its name, and the BITS of its outcomes


def announce(namespace: int, location: str, now: Instant) -> Script[None]:
    """Record the location of a file as litter before its executions are read.

    So the file is deleted later if it never gets a row in the archive.
    """
    yield Insert("litter", _COMING, [(location, now, namespace)])


def exclude_announced(namespace: int) -> Script[None]:
    """Make sure that files announced before an erasure never get a row, because they may contain the erased data.

    Call this after the erasure, in a transaction of its own. Files announced later have no erased data. If the row of a
    file is being added at this time, this waits, and the file is then part of the archive.
    """
    yield Fetch(SPOIL, (namespace,))


def put(archive: Archive | None, jobs: Jobs, over: Sequence[EndedParcel]) -> Script[bool]:
    """Add the row of a file, if one is given, and delete the parcels `over`.

    Do nothing and return False if any parcel has changed since it was read, or if the file must not be added.
    """
    yield ForEach(LOCK, (("id", "uuid"),), [(parcel,) for parcel, _ in over])
    if len((yield from unneeded_among(over))) < len(over):
        return False
    if archive is not None:
        if not (yield Fetch(IS_SOUND, (archive.location, archive.namespace))):
            return False
        a = archive
        row = (a.id, a.namespace, a.first_at, a.last_at, a.executions, a.outcomes, a.jobs, a.bytes, a.location)
        yield Insert("archives", _COLUMNS, [row])
        if len(jobs) <= MOST_JOBS:
            rows = [(a.id, job, a.namespace, name, outcomes) for job, (name, outcomes) in sorted(jobs.items())]
            yield Insert("archive_jobs", _OF_JOBS, rows)
    yield from forget([parcel for parcel, _ in over])
    return True


def before(namespace: int, last: UUID, count: int, query: ArchiveQuery = ArchiveQuery()) -> Script[list[Archive]]:  # noqa: B008
    """Return files of a namespace that may have matching executions, newest first, beginning with the file `last`."""
    given = (namespace, last, query.outcomes, query.since, query.until, count)
    if query.job is None:
        rows = yield Fetch(BEFORE, given)
    else:
        rows = yield Fetch(BEFORE_OF_JOB, (*given, query.job, _id_in(query.job)))
    return [_archive(row) for row in rows]


def older(namespace: int, before: Instant, count: int) -> Script[list[Archive]]:
    """Return up to `count` files of a namespace whose executions were all submitted before an instant."""
    return [_archive(row) for row in (yield Fetch(OLDER, (namespace, before, count)))]


def one(archive_id: UUID) -> Script[Archive | None]:
    """Return the current row of a file, or None."""
    rows = yield Fetch(ONE, (archive_id,))
    return _archive(rows[0]) if rows else None


def _archive(row: Row) -> Archive:
    return Archive(
        id=row[0], namespace=row[1], first_at=row[2], last_at=row[3], executions=row[4], outcomes=row[5], jobs=row[6],
        bytes=row[7], location=row[8],
    )  # fmt: skip


def _id_in(text: str) -> UUID:
    """Return the id in a text; if it is not an id, return one that no job has."""
    try:
        return UUID(text)
    except ValueError:
        return NOBODY


def move(archive: Archive, location: str, size: int) -> Script[bool]:
    """Change the location and size of a file after it was rewritten.

    Its old location becomes litter with the instant 0, so that the old file is deleted next. Return False without any
    change if the archive has another location for it, or if the new file was deleted.
    """
    if not (yield Fetch(IS_AT_LOCATION, (archive.id, archive.location))):
        return False
    if not (yield Fetch(IS_ANNOUNCED, (location,))):
        return False
    yield Fetch(SAVE, (archive.id, location, size))
    yield Insert("litter", _LITTER, [(archive.location, 0)], conflict="ON CONFLICT DO NOTHING")
    return True


def drop(archives: Sequence[Archive]) -> Script[None]:
    """Delete the rows of files. Their current locations become litter with the instant 0, so they are deleted next."""
    litter: list[tuple[str, Instant]] = []
    for archive in archives:
        yield Fetch(DROP_JOBS, (archive.id,))
        litter += [(location, 0) for (location,) in (yield Fetch(DROP, (archive.id,)))]
    yield Insert("litter", _LITTER, litter, conflict="ON CONFLICT DO NOTHING")
