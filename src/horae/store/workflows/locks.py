"""The lock of a workflow: the row of its root, the outermost workflow that contains it.

A transaction that advances any workflow of such a tree holds this lock. It is taken after the locks of sessions and
before the locks of keys (limits and sequences). Several roots are locked in the order of their ids. A statement that
had to wait for the lock still sees the snapshot from before its wait, so it reads only columns that never change.
Columns that change are read by a later statement.
"""

from collections.abc import Collection
from uuid import UUID

from msgspec import Struct

from horae.model.base.ids import index_of, parcel_of
from horae.store.base.shelves import ITEM
from horae.store.script import Among, ForEach, Script, Statement

_LOCK = "FOR NO KEY UPDATE OF r"
_CHILDREN = (
    "SELECT p.id, p.extras, f.execution, f.digest, f.job, f.version, f.root FROM given"
    " JOIN parcels p ON p.id = given.parcel JOIN flows f ON f.execution = p.parent"
)
_WORKFLOWS = "SELECT f.execution, f.root FROM given JOIN flows f ON f.parcel = given.parcel AND f.item = given.item"
_ROOT = "JOIN flows r ON r.execution = f.root"
# A single root is locked by the statement that finds it. Several are found first and then locked in order, because
# PostgreSQL would walk through all workflows to order the rows of a join.
OF_CHILD = Statement("lock_workflow_of_child", f"{_CHILDREN} {_ROOT} {_LOCK}")
OF_CHILDREN = Statement("workflows_of_children", _CHILDREN, at_once=True)
OF_WORKFLOW = Statement("lock_workflow", f"{_WORKFLOWS} {_ROOT} {_LOCK}")
OF_WORKFLOWS = Statement("roots_of", _WORKFLOWS)
ROOTS = Statement(
    "lock_roots", f"SELECT r.execution FROM flows r WHERE r.execution = ANY($1) ORDER BY r.execution {_LOCK}"
)


MOST_CACHED = 10_000


class ChildParcel(Struct, frozen=True):
    """A parcel of children, and the workflow to which they belong."""

    parcel: UUID
    extras: bytes | None
    workflow: UUID
    digest: str
    job: UUID
    version: int
    root: UUID


class ChildCache:
    """Parcels of children that this server created lately, each with its workflow.

    Entries never become outdated, because no field of `Child` changes. Parcels of transactions that were rolled back
    stay in the cache; this is harmless, because nobody looks them up.
    """

    def __init__(self) -> None:
        self._known: dict[UUID, ChildParcel] = {}

    def get(self, parcel: UUID) -> ChildParcel | None:
        return self._known.get(parcel)

    def add(self, child: ChildParcel) -> None:
        self._known[child.parcel] = child
        if len(self._known) > MOST_CACHED:
            del self._known[next(iter(self._known))]


def lock_workflows_of_steps(
    parcels: Collection[UUID], cache: ChildCache | None = None
) -> Script[dict[UUID, ChildParcel]]:
    """Lock the workflows to which these parcels belong, and return the workflow of each parcel.

    Parcels that are no children are left out. Workflows in the cache are locked without a search.
    """
    known = (
        {parcel: child for parcel in parcels if (child := cache.get(parcel)) is not None} if cache is not None else {}
    )
    given = [(parcel,) for parcel in sorted(parcels) if parcel not in known]
    alone = len(given) == 1 and not known
    rows = (yield ForEach(OF_CHILD if alone else OF_CHILDREN, (("parcel", "uuid"),), given)) if given else []
    found = known | {row[0]: ChildParcel(*row) for row in rows}
    if not alone:
        yield Among(ROOTS, sorted({child.root for child in found.values()}))
    return found


def lock(executions: Collection[UUID]) -> Script[set[UUID]]:
    """Lock workflows, and return those of the executions that are workflows and have left the queue."""
    given = sorted((parcel_of(execution), index_of(execution)) for execution in executions)
    rows = yield ForEach(OF_WORKFLOW if len(given) == 1 else OF_WORKFLOWS, ITEM, given)
    if len(given) > 1:
        yield Among(ROOTS, sorted({row[1] for row in rows}))
    return {row[0] for row in rows}
