"""Dead letters: marks beside failed executions. The execution itself stays in history as it ended."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from horae.env import Instant
from horae.model.ids import index_of, parcel_of
from horae.store.moves.shelves import ITEM, Columns
from horae.store.script import ForEach, Insert, Script, Statement

COLUMNS: Columns = (
    ("parcel", "uuid"), ("item", "int"), ("kind", "text"), ("execution", "uuid"), ("at", "bigint"),
)  # fmt: skip
RETRIED, DISCARDED = "retried", "discarded"
# A retry is for good; what was discarded may still be retried.
_UNLESS_RETRIED = (
    "ON CONFLICT (parcel, item) DO UPDATE SET kind = excluded.kind, execution = excluded.execution, at = excluded.at"
    " WHERE marks.kind = 'discarded' AND excluded.kind = 'retried'"
)


UNMARK = Statement(
    "reopen_letters",
    "DELETE FROM marks USING given WHERE marks.parcel = given.parcel AND marks.item = given.item"
    " AND marks.kind = 'retried' AND marks.execution = given.execution",
)


def reopened(letters: Iterable[tuple[UUID, UUID]]) -> ForEach:
    """Open letters again: the new execution beside each was cancelled."""
    return ForEach(UNMARK, (*ITEM, ("execution", "uuid")), [(parcel_of(id), index_of(id), new) for id, new in letters])


def reopen(letter: UUID, execution: UUID) -> Script[None]:
    """Open a letter again if it was closed by this execution."""
    yield reopened([(letter, execution)])


def mark(kind: str, letters: Sequence[tuple[UUID, UUID | None]], now: Instant) -> Script[None]:
    """Say what was done with failed executions; a retried one names its new execution. The first retry stays."""
    letters = sorted(letters, key=lambda letter: letter[0])  # marks are taken in one order by everybody
    rows = [(parcel_of(id), index_of(id), kind, new, now) for id, new in letters]
    if rows:
        yield Insert("marks", COLUMNS, rows, conflict=_UNLESS_RETRIED)
