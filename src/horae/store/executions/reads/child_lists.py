"""Lists of the children of an execution, newest first.

Two statements read a page: the first finds the parcels by the index of parents, the second reads their slices.
"""

from functools import cache
from uuid import UUID

from horae.store.executions.reads.execution_lists import (
    MOST_WINDOWS,
    WINDOWS,
    Chosen,
    ExecutionFilter,
    ListedSlice,
    Place,
    listing,
    matching,
    slice_columns,
)
from horae.store.script import Among, Fetch, Script, Statement

PARCELS = 64  # parcels that are read at once
ALL = 1 << 30  # more items than a parcel has
OF_PARENT = Statement(
    "parcels_of_parent",
    "SELECT p.id, p.n FROM parcels p WHERE p.parent = $1 AND p.id >= $2 AND p.id <= $3 AND p.namespace = $4"
    f" ORDER BY p.id DESC LIMIT {PARCELS}",
)


@cache
def _slices(shelves: tuple[str, ...]) -> Statement:
    """Return the statement for the slices of given parcels before a place.

    It also bounds the parcels by the least and greatest of their ids, so that PostgreSQL reads few partitions.
    """
    each = " UNION ALL ".join(
        f"SELECT {slice_columns(shelf)} FROM {shelf}"
        " WHERE parcel = ANY($1) AND parcel >= $2 AND parcel <= $3 AND (parcel, lo) < ($3, $4)"
        for shelf in shelves
    )
    return Statement(f"children_{'_'.join(shelves)}", listing(f"({each})"))


def page(
    namespace: int, wanted: ExecutionFilter, before: Place, limit: int
) -> Script[tuple[list[Chosen], Place | None]]:
    """Return up to `limit` children of an execution before a place, newest first, and the place of the next page.

    The place is None at the end of the list.
    """
    chosen: list[Chosen] = []
    for _ in range(MOST_WINDOWS):
        last = before[0] if before[1] else UUID(int=before[0].int - 1)  # the last parcel with items before the place
        rows = yield Fetch(OF_PARENT, (wanted.parent, wanted.low, last, namespace))
        parcels = _some([(parcel, n) for parcel, n in rows])
        slices = (yield from _listed(parcels, wanted.shelves, before)) if parcels else []
        some, stopped = yield from matching(slices, wanted, before, limit - len(chosen))
        chosen += some
        if len(chosen) == limit:
            return chosen, (chosen[-1][0].parcel, chosen[-1][1])
        if stopped is not None:
            return chosen, stopped
        if len(parcels) == len(rows) < PARCELS:
            return chosen, None
        before = (parcels[-1], 0)
    return chosen, before


def _listed(parcels: list[UUID], shelves: tuple[str, ...], before: Place) -> Script[list[ListedSlice]]:
    first = before[1] if parcels[0] == before[0] else ALL
    rows = yield Among(_slices(shelves), parcels, (parcels[-1], parcels[0], first))
    return [ListedSlice(*row) for row in rows]


def _some(found: list[tuple[UUID, int]]) -> list[UUID]:
    """Return the first of these parcels (id, number of items), with at most one window of items.

    Items are counted instead of slices, because each item may have a slice of its own. At least one parcel is returned.
    """
    total = 0
    taken: list[UUID] = []
    for parcel, n in found:
        if taken and total + n > WINDOWS[-1]:
            break
        taken.append(parcel)
        total += n
    return taken
