"""Dead letters: failed executions, which are marked when they are retried or discarded.

The mark has a row of its own. The execution itself stays in history as it ended.
"""

from collections.abc import Iterable, Sequence
from uuid import UUID

from horae.env import Instant
from horae.model.admission.keys import REPLAYS
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.executions.execution import CANCELLED
from horae.model.executions.parcel import extra_of
from horae.model.executions.settle import FinishedSlice
from horae.store.base.shelves import ITEM, Columns
from horae.store.script import ForEach, Insert, Script, Statement

COLUMNS: Columns = (
    ("parcel", "uuid"), ("item", "int"), ("kind", "text"), ("execution", "uuid"), ("at", "bigint"),
)  # fmt: skip
RETRIED, DISCARDED = "retried", "discarded"
# The mark of a retry is never replaced; a discarded dead letter may still be retried.
_UNLESS_RETRIED = (
    "ON CONFLICT (parcel, item) DO UPDATE SET kind = excluded.kind, execution = excluded.execution, at = excluded.at"
    " WHERE marks.kind = 'discarded' AND excluded.kind = 'retried'"
)


EXTRAS = Statement("extras_of_retries", "SELECT p.id, p.extras FROM given JOIN parcels p ON p.id = given.parcel")
UNMARK = Statement(
    "reopen_letters",
    "DELETE FROM marks USING given WHERE marks.parcel = given.parcel AND marks.item = given.item"
    " AND marks.kind = 'retried' AND marks.execution = given.execution",
)


GIVEN_UP = Statement(
    "cancelled_retries",
    "SELECT given.parcel, given.item FROM given JOIN history h ON h.parcel = given.parcel AND h.lo <= given.item"
    f" AND h.hi > given.item WHERE h.state = '{CANCELLED}'",
)


def reopened(letters: Iterable[tuple[UUID, UUID]]) -> ForEach:
    """Return the deletion of the marks of dead letters, each given with its new execution, which was cancelled."""
    return ForEach(
        UNMARK, (*ITEM, ("execution", "uuid")), [(parcel_of(letter), index_of(letter), new) for letter, new in letters]
    )


def reopen(finished: Iterable[FinishedSlice]) -> Script[None]:
    """Reopen dead letters whose new executions were cancelled, by deleting their marks."""
    given_up = [f.slice for f in finished if f.slice.flags & REPLAYS and f.state == CANCELLED]
    if not given_up:
        return
    rows = yield ForEach(EXTRAS, (("parcel", "uuid"),), [(parcel,) for parcel in sorted({s.parcel for s in given_up})])
    extras: dict[UUID, bytes | None] = dict(rows)
    items = [(cancelled.parcel, item) for cancelled in given_up for item in range(cancelled.lo, cancelled.hi)]
    letters = [(extra_of(extras.get(parcel), item).retry_of, execution_id(parcel, item)) for parcel, item in items]
    yield reopened(sorted((letter, new) for letter, new in letters if letter is not None))


def mark(kind: str, letters: Sequence[tuple[UUID, UUID | None]], now: Instant) -> Script[None]:
    """Mark failed executions as retried, each with its new execution, or as discarded.

    A failed execution that was retried before keeps its mark. One whose new execution is already cancelled gets none.
    """
    again = [(parcel_of(new), index_of(new)) for _, new in letters if new is not None]
    gone = {execution_id(*row) for row in (yield ForEach(GIVEN_UP, ITEM, sorted(again)))} if again else set()
    # All transactions insert marks in the same order.
    letters = sorted(letters, key=lambda letter: letter[0])  # guard: dead-letters-in-order
    rows = [(parcel_of(letter), index_of(letter), kind, new, now) for letter, new in letters if new not in gone]
    if rows:
        yield Insert("marks", COLUMNS, rows, conflict=_UNLESS_RETRIED)
