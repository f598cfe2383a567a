"""States of ranges of items, read by one statement over the four shelves."""

from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

from horae.model.executions.show_execution import status_of
from horae.model.executions.slice import gaps
from horae.store.base import shelves
from horae.store.script import ForEach, Script, Statement

EXPIRED = "expired"  # the state of an item on no shelf: it ended, and its history was deleted
RANGE: shelves.Columns = (("parcel", "uuid"), ("lo", "int"), ("hi", "int"))
_STATE_COLUMNS = {
    "waiting": "'waiting' AS state, s.reason AS reason",
    "queued": "'queued' AS state, '' AS reason",
    "running": "'running' AS state, '' AS reason",
    "history": "s.state AS state, '' AS reason",
}
SLICE_STATES = Statement(
    "standing",
    " UNION ALL ".join(
        f"SELECT s.parcel AS parcel, s.lo AS lo, s.hi AS hi, {says}"
        f" FROM given JOIN {shelf} s ON s.parcel = given.parcel WHERE s.lo < given.hi AND s.hi > given.lo"
        for shelf, says in _STATE_COLUMNS.items()
    ),
)

Range = tuple[UUID, int, int]  # parcel, lo, hi
StateRange = tuple[int, int, str]  # lo, hi, state


def item_states(ranges: Sequence[Range]) -> Script[list[list[StateRange]]]:
    """Return, for each range, its parts with their states, in the order of the items."""
    rows = yield ForEach(SLICE_STATES, RANGE, sorted(set(ranges)))
    slices: dict[UUID, set[StateRange]] = {}
    for parcel, lo, hi, state, reason in rows:
        slices.setdefault(parcel, set()).add((lo, hi, status_of(state, reason)))
    return [list(split_by_state(lo, hi, slices.get(parcel, ()))) for parcel, lo, hi in ranges]


def split_by_state(lo: int, hi: int, slices: Iterable[StateRange]) -> Iterator[StateRange]:
    """Divide a range into parts of items with equal states; items that no slice covers have expired."""
    within = [(max(lo, a), min(hi, b), state) for a, b, state in slices if a < hi and b > lo]
    holes = [(a, b, EXPIRED) for a, b in gaps(lo, hi, [(a, b) for a, b, _ in within])]
    first, last, known = lo, lo, ""
    for a, b, state in sorted(within + holes):
        if last > first and state != known:
            yield first, last, known
            first = a
        last, known = b, state
    if last > first:
        yield first, last, known
