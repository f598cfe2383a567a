"""Results that are not in the row of their step: large ones, and the lists of results of a foreach.

They are stored with the executions of the step, and are read only when an expression needs them.
"""

from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from msgspec import structs

from horae.model.base.ids import index_of, parcel_of
from horae.model.base.packing import Packed
from horae.model.executions.output.artifact import REFERENCE, is_content_of
from horae.model.executions.parcel import extras_of
from horae.model.executions.settle import FinishedSlice
from horae.model.workflows.decisions.expressions import too_much
from horae.model.workflows.decisions.plan import Plan
from horae.model.workflows.decisions.workflow import StepRow
from horae.store.base.shelves import ITEM, Columns
from horae.store.script import Fetch, ForEach, Script, Statement

NULL = b"null"
MOST_COLLECTED = 16 * 1024 * 1024  # bytes: an expression may not use a longer list of results of a foreach
Place = tuple[UUID, int]
CHILD: Columns = (("parcel", "uuid"),)
CHILDREN = Statement(
    "parcels_of_step",
    "SELECT c.child, c.count FROM flow_parcels c WHERE c.parcel = $1 AND c.item = $2 AND c.step = $3 ORDER BY c.child",
)
BLOBS = Statement(
    "blobs_of",
    "SELECT b.parcel, b.item, b.content FROM given JOIN blobs b ON b.parcel = given.parcel AND b.item = given.item",
)
LENGTH = Statement(
    "length_of_results",
    "SELECT h.parcel, sum(length(h.results)) FROM given JOIN history h ON h.parcel = given.parcel"
    " WHERE h.results IS NOT NULL GROUP BY h.parcel",
)
SUCCEEDED_ITEMS = Statement(
    "items_that_succeeded",
    "SELECT p.extras, h.lo, h.hi FROM given JOIN parcels p ON p.id = given.parcel"
    " JOIN history h ON h.parcel = p.id AND h.state = 'success'",
)
ENDED = Statement(
    "ended_of_parcels",
    "SELECT p.id, p.extras, h.lo, h.hi, h.state, h.ends, h.results FROM given"
    " JOIN parcels p ON p.id = given.parcel JOIN history h ON h.parcel = p.id",
)


def is_stored_apart(row: StepRow, plan: Plan) -> bool:
    """Tell whether a step's result may be stored with its executions instead of its row; for a foreach it always is."""
    if row.result is not None or row.execution is None:
        return False
    return is_foreach(row, plan) or row.state == "success"


def is_foreach(row: StepRow, plan: Plan) -> bool:
    """Tell whether a step is a foreach that has started its items."""
    node = plan.nodes.get(row.step)
    return bool(row.total) and node is not None and node.step.foreach is not None


def may_be_stored_apart(finished: FinishedSlice) -> bool:
    """Tell whether results of a slice may be stored apart from the slice, as rows of `blobs` or as files."""
    return finished.results is not None and (not finished.results.blob or REFERENCE in finished.results.blob)


def items_stored_apart(finished: FinishedSlice) -> Iterator[tuple[Place, bytes]]:
    """Yield the items of a slice whose results are stored apart.

    Each has the reference to its file; it is empty if the result is a row of `blobs`.
    """
    s, results = finished.slice, finished.results
    assert results is not None
    for item in range(s.lo, s.hi):
        result = results.one(item - s.lo)
        if not result or result.startswith(REFERENCE):
            yield (s.parcel, item), result


def read(place: Place, rows: Sequence[StepRow], plan: Plan) -> Script[dict[str, StepRow]]:
    """Read the results of these steps. Single steps without a large result are left out: their result is null."""
    found: dict[str, StepRow] = {}
    single: dict[tuple[UUID, int], StepRow] = {}
    for row in rows:
        if is_foreach(row, plan):
            found[row.step] = structs.replace(row, result=(yield from of_foreach(place, row)))
        elif row.execution is not None and row.state == "success":
            single[parcel_of(row.execution), index_of(row.execution)] = row
    if single:
        for at, content in (yield from large(dict.fromkeys(single, b""))).items():
            found[single[at].step] = structs.replace(single[at], result=content)
    return found


def large(places: Mapping[Place, bytes]) -> Script[dict[Place, bytes]]:
    """Read results that are stored apart, by parcel and item; the values of `places` are the references to files.

    A result in a file is found only if the store has a copy of it in `blobs`.
    """
    rows = yield ForEach(BLOBS, ITEM, sorted(places))
    return {
        (parcel, item): content
        for parcel, item, content in rows
        if not (said := places[parcel, item]) or is_content_of(content, said)
    }


def children_of(place: Place, step: str) -> Script[list[tuple[UUID, int]]]:
    """Return the parcels of a foreach's children, each with its number of items.

    They include parcels of an earlier workflow whose results a rerun has taken over.
    """
    return [(child, count) for child, count in (yield Fetch(CHILDREN, (*place, step)))]


def of_foreach(place: Place, row: StepRow) -> Script[bytes]:
    """Return the results of a foreach as a JSON list in the order of the items; null for items that did not succeed.

    If they are larger than MOST_COLLECTED, return a placeholder instead, which states the size.
    """
    results: list[bytes] = [NULL] * row.total
    children = [(child,) for child, _ in (yield from children_of(place, row.step))]
    total = sum(int(length) for _, length in (yield ForEach(LENGTH, CHILD, children)))
    if total > MOST_COLLECTED:
        return too_much(total, MOST_COLLECTED)
    apart: dict[Place, tuple[int, bytes]] = {}
    for parcel, extras, lo, hi, state, ends, blob in (yield ForEach(ENDED, CHILD, children)):
        if state != "success" or blob is None:
            continue
        places = places_of(extras, lo, hi)
        for item, at, result in zip(range(lo, hi), places, Packed(ends or b"", blob).part(0, hi - lo), strict=True):
            if not result or result.startswith(REFERENCE):
                apart[parcel, item] = at, result
            if result and at < row.total:
                results[at] = result
    if apart:
        found = yield from large({one: said for one, (_, said) in apart.items()})
        if sum(map(len, found.values())) > MOST_COLLECTED:
            return too_much(sum(map(len, found.values())), MOST_COLLECTED)
        for one, content in found.items():
            results[apart[one][0]] = content
    return b"[" + b",".join(results) + b"]"


def succeeded(place: Place, row: StepRow) -> Script[tuple[int, ...] | None]:
    """Return the indexes of a foreach's items that succeeded.

    Return None if it has no children, because a rerun has taken over its result as a whole.
    """
    children = [(child,) for child, _ in (yield from children_of(place, row.step))]
    if not children:
        return None
    rows = yield ForEach(SUCCEEDED_ITEMS, CHILD, children)
    return tuple(sorted(at for extras, lo, hi in rows for at in places_of(extras, lo, hi)))


def places_of(extras: bytes | None, lo: int, hi: int) -> list[int]:
    """Return the indexes, in the complete list of a foreach, of the items `lo` to `hi` (exclusive) of a parcel."""
    mine = extras_of(extras, lo, hi)
    if extras is not None and extras.startswith(b"["):
        return [extra.index or 0 for extra in mine]
    first = mine[0].index or 0
    return list(range(first + lo, first + hi))
