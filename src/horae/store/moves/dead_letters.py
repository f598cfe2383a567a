"""Dead letters: marks beside failed executions. The execution itself stays in history as it ended."""

from collections.abc import Sequence
from uuid import UUID

from horae.env import Instant
from horae.model.ids import index_of, parcel_of
from horae.store.moves.shelves import Columns
from horae.store.script import Insert, Script

COLUMNS: Columns = (
    ("parcel", "uuid"), ("item", "int"), ("kind", "text"), ("execution", "uuid"), ("at", "bigint"),
)  # fmt: skip
RETRIED, DISCARDED = "retried", "discarded"
# A retry is for good; what was discarded may still be retried.
_UNLESS_RETRIED = (
    "ON CONFLICT (parcel, item) DO UPDATE SET kind = excluded.kind, execution = excluded.execution, at = excluded.at"
    " WHERE marks.kind = 'discarded' AND excluded.kind = 'retried'"
)


def mark(kind: str, letters: Sequence[tuple[UUID, UUID | None]], now: Instant) -> Script[None]:
    """Say what was done with failed executions; a retried one names its new execution. The first retry stays."""
    letters = sorted(letters, key=lambda letter: letter[0])  # marks are taken in one order by everybody
    rows = [(parcel_of(id), index_of(id), kind, new, now) for id, new in letters]
    if rows:
        yield Insert("marks", COLUMNS, rows, conflict=_UNLESS_RETRIED)
