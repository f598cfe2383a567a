"""When the steps of a workflow were first taken up, as against when they could have been."""

from collections.abc import Iterable
from uuid import UUID

from horae.env import Instant
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.executions.parcel import extras_of
from horae.model.executions.settle import timing_of
from horae.model.workflows.decisions.flow import StepRow
from horae.store.base.shelves import ITEM
from horae.store.executions.beginnings import BEGAN
from horae.store.script import Fetch, ForEach, Script, Statement
from horae.store.workflows.rows import Place

MOST_PARCELS = 1_000  # of a workflow among which the first runs of its loops are looked for
_LAST = "SELECT max(x.lo) FROM {shelf} x WHERE x.parcel = given.parcel AND x.lo <= given.item"
# Suspended executions and workflows are remembered by their first start; attempts before the last one by their own.
OF_CHILDREN = Statement(
    "starts_of_children",
    "SELECT given.parcel, given.item, coalesce((SELECT s.at FROM steps s WHERE s.parcel = given.parcel"
    f" AND s.item = given.item AND s.name = '{BEGAN}'), (SELECT f.began_at FROM flows f WHERE f.parcel = given.parcel"
    " AND f.item = given.item), (SELECT min(a.started_at) FROM attempts a WHERE a.parcel = given.parcel"
    " AND a.lo <= given.item AND a.hi > given.item), r.started_at, r.granted_at),"
    " h.lo, h.started_at, h.completed_at, h.timings FROM given"
    f" LEFT JOIN running r ON r.parcel = given.parcel AND r.lo = ({_LAST.format(shelf='running')})"
    " AND r.hi > given.item"
    f" LEFT JOIN history h ON h.parcel = given.parcel AND h.lo = ({_LAST.format(shelf='history')})"
    " AND h.hi > given.item",
)
OF_FANS = Statement(
    "starts_of_fans",
    "SELECT c.step, min(h.started_at) FROM flow_parcels c JOIN history h ON h.parcel = c.child"
    " WHERE c.parcel = $1 AND c.item = $2 AND NOT c.taken GROUP BY c.step"
    " UNION ALL SELECT c.step, min(coalesce(r.started_at, r.granted_at)) FROM flow_parcels c"
    " JOIN running r ON r.parcel = c.child WHERE c.parcel = $1 AND c.item = $2 AND NOT c.taken GROUP BY c.step",
)
FIRST_CHILDREN = Statement(
    "first_children", "SELECT p.id, p.n, p.extras FROM parcels p WHERE p.parent = $1 ORDER BY p.id LIMIT $2"
)


def starts_of(execution: UUID, place: Place, rows: Iterable[StepRow]) -> Script[dict[str, Instant | None]]:
    """Return when each step first began to run: None for a step that waits for a worker, or ended without one.

    Steps that need no worker, and those whose executions nothing is known of any more, are left out.
    """
    rows = [row for row in rows if row.execution is not None]
    children = {row.step: row.execution for row in rows if not row.total}
    if any(row.iteration for row in rows):
        children |= yield from _first_runs(execution, {row.step for row in rows if row.iteration})
    found: dict[str, Instant | None] = {}
    if any(row.total for row in rows):
        for step, at in (yield Fetch(OF_FANS, place)):
            starts = [one for one in (at, found.get(step)) if one is not None]
            found[step] = min(starts, default=None)
    asked = {(parcel_of(id), index_of(id)): step for step, id in children.items() if id is not None}
    if not asked:
        return found
    for parcel, item, first, lo, started_at, completed_at, timings in (yield ForEach(OF_CHILDREN, ITEM, list(asked))):
        ended = None if lo is None else timing_of(timings, item - lo, started_at, completed_at)[0]
        starts = [at for at in (first, ended) if at is not None]
        if starts or lo is not None:
            found[asked[parcel, item]] = min(starts, default=None)
    return found


def _first_runs(execution: UUID, loops: set[str]) -> Script[dict[str, UUID | None]]:
    """The first runs of loops: a step's row knows the latest one."""
    found: dict[str, UUID | None] = {}
    for parcel, count, extras in (yield Fetch(FIRST_CHILDREN, (execution, MOST_PARCELS))):
        for item, extra in enumerate(extras_of(extras, 0, count)):
            if extra.step in loops:
                found.setdefault(extra.step, execution_id(parcel, item))
    return found
