"""Signals as rows: what an execution was told, and which step took it."""

from uuid import UUID

from horae.model.executions.awaits import Signal
from horae.store.base import shelves
from horae.store.script import Fetch, Script, Statement

SIGNALS: shelves.Columns = (
    *shelves.ITEM, ("id", "uuid"), ("name", "text"), ("payload", "bytea"), ("seq", "int"), ("taken_by", "text"),
    ("at", "bigint"),
)  # fmt: skip
KEPT = Statement(
    "kept_signals",
    "SELECT s.seq, s.id, s.name, s.payload FROM signals s WHERE s.parcel = $1 AND s.item = $2"
    " AND s.taken_by IS NULL AND s.name = $3",
)
COUNT = Statement(
    "count_signals",
    "SELECT count(*), count(s.taken_by) FROM signals s WHERE s.parcel = $1 AND s.item = $2",
)
SENT = Statement("sent_signal", "SELECT s.taken_by FROM signals s WHERE s.parcel = $1 AND s.item = $2 AND s.id = $3")
TAKE = Statement(
    "take_signal", "UPDATE signals SET taken_by = $4 WHERE parcel = $1 AND item = $2 AND id = $3 AND taken_by IS NULL"
)


def kept_of(parcel: UUID, item: int, name: str) -> Script[list[Signal]]:
    """The signals of a name that no step has taken, in the order in which they came."""
    rows = yield Fetch(KEPT, (parcel, item, name))
    return [Signal(id=row[1], name=row[2], payload=row[3]) for row in sorted(rows, key=lambda row: row[0])]
