"""Artifacts: the names of files that executions leave behind, and the locations of their contents.

Before an upload begins, the location of its content is recorded in the table `litter`, which lists the contents to
delete. This record is removed when an artifact refers to the content. So the content of a failed upload is deleted
later.
"""

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

from horae.env import SECOND, Instant
from horae.model.admission.keys import CHILD
from horae.model.executions.output.artifact import MOST_ARTIFACTS, RESULT, Artifact
from horae.store.base import shelves
from horae.store.executions.durable.steps import is_held
from horae.store.fleet.exchange import lock_sessions
from horae.store.script import ColumnType, Fetch, ForEach, Insert, Row, Script, Statement
from horae.store.tenancy.holdings import Holdings

_COLUMNS = "a.name, a.attempt, a.size, a.type, a.sha256, a.location, a.at"
COUNT = Statement(
    "count_artifacts", "SELECT count(*) FROM artifacts WHERE parcel = $1 AND item = $2 AND name <> $3"
)  # fmt: skip
LOCATION = Statement(
    "artifact_location", "SELECT location FROM artifacts WHERE parcel = $1 AND item = $2 AND name = $3"
)
PUT = Statement(
    "keep_artifact",
    "INSERT INTO artifacts (parcel, item, name, attempt, size, type, sha256, location, at)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (parcel, item, name) DO UPDATE SET"
    " attempt = excluded.attempt, size = excluded.size, type = excluded.type, sha256 = excluded.sha256,"
    " location = excluded.location, at = excluded.at",
)
LIST = Statement(
    "artifacts_of",
    f"SELECT {_COLUMNS} FROM artifacts a WHERE a.parcel = $1 AND a.item = $2 AND a.name > $3 ORDER BY a.name LIMIT $4",
)
BY_NAME = Statement(
    "artifact_of", f"SELECT {_COLUMNS} FROM artifacts a WHERE a.parcel = $1 AND a.item = $2 AND a.name = $3"
)
FLAGS = Statement("flags_of_item", "SELECT flags FROM running WHERE parcel = $1 AND lo <= $2 AND hi > $2")
DELETE_COPY = Statement("no_copy", "DELETE FROM blobs WHERE parcel = $1 AND item = $2")
# The row is missing, or as old as those to delete, if the content was or may be deleted already.
UNMARK_LITTER = Statement("not_litter", "DELETE FROM litter WHERE location = $1 AND at > $2 RETURNING 1")
LITTER = Statement(
    "litter",
    "SELECT at, location FROM litter WHERE at <= $1 AND (at, location) > ($3, $4) ORDER BY at, location LIMIT $2",
)
CLEARED = Statement("cleared", "DELETE FROM litter USING given WHERE litter.location = given.location")
# A page of artifacts in the order of their parcels, and for each whether its parcel still exists.
PAGE = Statement(
    "some_artifacts",
    "SELECT a.parcel, a.item, a.name, a.location, EXISTS (SELECT 1 FROM parcels p WHERE p.id = a.parcel)"
    " FROM artifacts a WHERE (a.parcel, a.item, a.name) > ($1, $2, $3) ORDER BY a.parcel, a.item, a.name LIMIT $4",
)
FORGET = Statement(
    "forget_artifacts",
    "DELETE FROM artifacts USING given WHERE artifacts.parcel = given.parcel AND artifacts.item = given.item"
    " AND artifacts.name = given.name",
)
_LITTER: tuple[tuple[str, ColumnType], ...] = (("location", "text"), ("at", "bigint"))
_NAMED: tuple[tuple[str, ColumnType], ...] = (("parcel", "uuid"), ("item", "int"), ("name", "text"))

Place = tuple[UUID, int, str]
START: Place = (UUID(int=0), -1, "")
LitterPlace = tuple[Instant, str]  # the instant of a record, and its location
OLDEST: LitterPlace = (-1, "")
LONGEST_UPLOAD = 6 * 3600 * SECOND  # longer uploads are refused, so that no content is deleted during its upload
Verdict = Literal["stored", "not held", "too many", "too late"]
HOLDINGS = Holdings(
    kept={"artifacts": "deleted after their executions", "litter": "locations of contents that will be deleted"}
)


def record_location(location: str, now: Instant) -> Script[None]:
    """Record a location in `litter`, so that its content is deleted if no artifact refers to it later."""
    yield Insert("litter", _LITTER, [(location, now)])


def store_artifact(
    session: UUID, parcel: UUID, item: int, artifact: Artifact, now: Instant, content: bytes | None = None
) -> Script[Verdict]:
    """Store an artifact. An earlier one with the same name is replaced, and the location of its content becomes litter.

    Nothing is stored if the session does not hold the item, if the execution has too many artifacts, or if the upload
    took so long that its content may be deleted already. If the execution is a step of a workflow and the artifact is
    its result, `content` is also stored in the database, because expressions of the workflow read the result inside a
    transaction.
    """
    yield from lock_sessions([session])
    if not (yield from is_held(session, parcel, item, artifact.attempt)):
        return "not held"
    rows = yield Fetch(COUNT, (parcel, item, artifact.name))
    if rows[0][0] >= MOST_ARTIFACTS:
        return "too many"
    if not (yield Fetch(UNMARK_LITTER, (artifact.location, now - LONGEST_UPLOAD))):
        return "too late"
    old = yield Fetch(LOCATION, (parcel, item, artifact.name))
    a = artifact
    yield Fetch(PUT, (parcel, item, a.name, a.attempt, a.size, a.type, a.sha256, a.location, a.at))
    if a.name == RESULT:
        yield from _copy(parcel, item, content)
    if old:
        yield Insert("litter", _LITTER, [(old[0][0], now)], conflict="ON CONFLICT DO NOTHING")
    return "stored"


def _copy(parcel: UUID, item: int, content: bytes | None) -> Script[None]:
    """If the execution is a step, store a copy of its result, or delete the copy of an earlier attempt's result."""
    rows = yield Fetch(FLAGS, (parcel, item))
    if not rows or not rows[0][0] & CHILD:
        return
    if content is None:
        yield Fetch(DELETE_COPY, (parcel, item))
        return
    yield shelves.put_blobs([(parcel, item, content)])


def artifacts_of(parcel: UUID, item: int, after: str, limit: int) -> Script[list[Artifact]]:
    """Return the artifacts of an execution in the order of their names, after a name."""
    return [_artifact(row) for row in (yield Fetch(LIST, (parcel, item, after, limit)))]


def artifact_of(parcel: UUID, item: int, name: str) -> Script[Artifact | None]:
    """Return the artifact with a name, or None."""
    rows = yield Fetch(BY_NAME, (parcel, item, name))
    return _artifact(rows[0]) if rows else None


def _artifact(row: Row) -> Artifact:
    return Artifact(
        name=row[0], attempt=row[1], size=row[2], type=row[3], sha256=row[4], location=row[5], at=row[6]
    )  # fmt: skip


def litter(before: Instant, limit: int, after: LitterPlace = OLDEST) -> Script[list[LitterPlace]]:
    """Return up to `limit` locations of contents to delete that were recorded before an instant, oldest first."""
    return [(at, location) for at, location in (yield Fetch(LITTER, (before, limit, *after)))]


def forget_deleted_locations(locations: Sequence[str]) -> Script[None]:
    """Delete the records of locations whose contents were deleted."""
    yield ForEach(CLEARED, _LITTER[:1], [(location,) for location in locations])


def delete_orphaned_page(after: Place, limit: int, now: Instant) -> Script[Place]:
    """Check a page of artifacts, and delete those of deleted executions; their locations become litter.

    Return the place from which the next call continues; after the last page this is `START` again.
    """
    rows = yield Fetch(PAGE, (*after, limit))
    gone = [row for row in rows if not row[4]]
    if gone:
        yield ForEach(FORGET, _NAMED, [(row[0], row[1], row[2]) for row in gone])
        places = [(row[3], now) for row in gone]
        yield Insert("litter", _LITTER, places, conflict="ON CONFLICT DO NOTHING")
    return (rows[-1][0], rows[-1][1], rows[-1][2]) if len(rows) == limit else START
