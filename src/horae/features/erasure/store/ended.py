"""Deletion of all ended executions of a namespace, with all rows that belong to them.

As in the usual expiry, a parcel is deleted as a whole, and not before the workflows to which it belongs have ended. The
locations of its executions' files are recorded in the table `litter` (contents to delete) with the instant 0, so that
the next sweep deletes the files.
"""

from uuid import UUID

from msgspec import Struct

from horae.store.expiry.expiry import FORGET, unneeded
from horae.store.script import ColumnType, Fetch, ForEach, Insert, Script, ScriptFactory, Statement

_PAGE = (
    "SELECT h.parcel FROM history h WHERE h.namespace = $1 AND h.parcel > $2 AND h.parcel < $3{own}"
    " ORDER BY h.parcel LIMIT $4"
)
# The index `history_tenant` has all namespaces except the first, and serves queries that state its condition.
OF_FIRST = Statement("ended_parcels_of_first", _PAGE.format(own=""))
OF_TENANT = Statement("ended_parcels_of_tenant", _PAGE.format(own=" AND h.namespace <> 1"))
FREE = unneeded("parcels_to_erase", "SELECT p.id, p.n FROM given JOIN parcels p ON p.id = given.id WHERE {unneeded}")
FILES = Statement(
    "files_of_parcels", "SELECT a.location FROM given JOIN artifacts a ON a.parcel = given.id", at_once=True
)
NO_FILES = Statement("no_files_of_parcels", "DELETE FROM artifacts USING given WHERE artifacts.parcel = given.id")
_ID: tuple[tuple[str, ColumnType], ...] = (("id", "uuid"),)
_LITTER: tuple[tuple[str, ColumnType], ...] = (("location", "text"), ("at", "bigint"))


class ErasedBatch(Struct, frozen=True):
    """The result of one batch."""

    executions: int  # the number of deleted executions
    files: int  # the number of files that will be deleted
    next: UUID | None  # the parcel after which the next batch begins; None after the last batch


def erase_ended(namespace: int, after: UUID, before: UUID, limit: int) -> ScriptFactory[ErasedBatch]:
    """Return a script that deletes ended executions of a namespace in parcels between `after` and `before`.

    It reads up to `limit` slices of history.
    """

    def script() -> Script[ErasedBatch]:
        page = OF_FIRST if namespace == 1 else OF_TENANT
        rows = yield Fetch(page, (namespace, after, before, limit))
        following = rows[-1][0] if len(rows) == limit else None
        free = yield ForEach(FREE, _ID, sorted(set(rows)))
        if not free:
            return ErasedBatch(0, 0, following)
        gone = [(parcel,) for parcel, _ in free]
        files = yield ForEach(FILES, _ID, gone)
        if files:
            litter = [(location, 0) for (location,) in files]
            yield Insert("litter", _LITTER, litter, conflict="ON CONFLICT DO NOTHING")
            yield ForEach(NO_FILES, _ID, gone)
        for statement in FORGET:
            yield ForEach(statement, _ID, gone)
        return ErasedBatch(sum(n for _, n in free), len(files), following)

    return script
