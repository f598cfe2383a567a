"""Selection of executions that have not ended."""

from collections.abc import Collection
from uuid import UUID

from horae.model.base.ids import index_of, parcel_of
from horae.store.script import Among, Script, Statement
from horae.store.tables import LIVE_SHELVES

# A single statement over all shelves: separate ones could miss a slice that moves from one shelf to another meanwhile.
LIVE_PARTS = Statement(
    "live_parts",
    " UNION ALL ".join(
        f"SELECT s.parcel, s.lo, s.hi FROM {shelf} s WHERE s.parcel = ANY($1)" for shelf in LIVE_SHELVES
    ),
)


def live_among(executions: Collection[UUID]) -> Script[set[UUID]]:
    """Return the given executions that have not ended; each of their parcels is looked up once."""
    parcels = dict.fromkeys(parcel_of(execution) for execution in executions)
    found: dict[UUID, list[tuple[int, int]]] = {}
    for parcel, lo, hi in (yield Among(LIVE_PARTS, list(parcels))):
        found.setdefault(parcel, []).append((lo, hi))
    if not found:
        return set()
    return {
        execution
        for execution in executions
        if any(lo <= index_of(execution) < hi for lo, hi in found.get(parcel_of(execution), ()))
    }
