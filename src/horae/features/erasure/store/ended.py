"""Forgetting all executions of a namespace that have ended, with everything that lies beside them.

As when their time is over, a parcel goes as a whole, and not before those that it was a child of have ended. What its
executions left behind as files becomes litter, as old as can be: the next look clears it away.
"""

from uuid import UUID

from msgspec import Struct

from horae.store.expiry.expiry import FORGET, unneeded
from horae.store.script import ColumnType, Fetch, ForEach, Insert, Script, ScriptFactory, Statement

_PAGE = (
    "SELECT h.parcel FROM history h WHERE h.namespace = $1 AND h.parcel > $2 AND h.parcel < $3{own}"
    " ORDER BY h.parcel LIMIT $4"
)
# All but the first namespace have an index of their own.
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
    """What one batch erased, and where the next begins; None at the end."""

    executions: int
    files: int
    next: UUID | None


def erase_ended(namespace: int, after: UUID, before: UUID, limit: int) -> ScriptFactory[ErasedBatch]:
    """Forget what has ended of a namespace between two parcels, so many slices at most."""

    def script() -> Script[ErasedBatch]:
        page = OF_FIRST if namespace == 1 else OF_TENANT
        rows = yield Fetch(page, (namespace, after, before, limit))
        following = rows[-1][0] if len(rows) == limit else None
        free = yield ForEach(FREE, _ID, sorted(set(rows)))
        if not free:
            return ErasedBatch(0, 0, following)
        gone = [(id,) for id, _ in free]
        files = yield ForEach(FILES, _ID, gone)
        if files:
            litter = [(location, 0) for (location,) in files]
            yield Insert("litter", _LITTER, litter, conflict="ON CONFLICT DO NOTHING")
            yield ForEach(NO_FILES, _ID, gone)
        for statement in FORGET:
            yield ForEach(statement, _ID, gone)
        return ErasedBatch(sum(n for _, n in free), len(files), following)

    return script
