"""The lock of a workflow: the row of the root of its tree. Whoever advances any part of the tree holds it.

It comes after sessions and before the keys of limits; several are taken in the order of their ids. What is read with
the lock never changes; what does is read in a statement of its own, because one that waited has its old snapshot.
"""

from collections.abc import Collection
from uuid import UUID

from msgspec import Struct

from horae.model.ids import index_of, parcel_of
from horae.store.moves.shelves import ITEM
from horae.store.script import ForEach, Script, Statement

OF_CHILDREN = Statement(
    "lock_flows_of_children",
    "SELECT p.id, p.extras, f.execution, f.digest, f.job, f.version FROM given JOIN parcels p ON p.id = given.parcel"
    " JOIN flows f ON f.execution = p.parent JOIN flows r ON r.execution = f.root"
    " ORDER BY r.execution FOR NO KEY UPDATE OF r",
)
OF_FLOWS = Statement(
    "lock_flows",
    "SELECT f.execution FROM given JOIN flows f ON f.parcel = given.parcel AND f.item = given.item"
    " JOIN flows r ON r.execution = f.root ORDER BY r.execution FOR NO KEY UPDATE OF r",
)


class Child(Struct, frozen=True):
    """A parcel of children, and the workflow that they belong to."""

    parcel: UUID
    extras: bytes | None
    flow: UUID
    digest: str
    job: UUID
    version: int


def lock_of_children(parcels: Collection[UUID]) -> Script[dict[UUID, Child]]:
    """Lock the workflows whose steps these parcels are, by parcel."""
    rows = yield ForEach(OF_CHILDREN, (("parcel", "uuid"),), [(id,) for id in sorted(parcels)])
    return {row[0]: Child(*row) for row in rows}


def lock(executions: Collection[UUID]) -> Script[set[UUID]]:
    """Lock workflows; those that there are."""
    given = sorted((parcel_of(id), index_of(id)) for id in executions)
    return {row[0] for row in (yield ForEach(OF_FLOWS, ITEM, given))}
