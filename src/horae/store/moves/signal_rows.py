"""Signals as rows: what an execution was told, and which step took it."""

from horae.store.moves import shelves
from horae.store.script import Statement

SIGNALS: shelves.Columns = (
    *shelves.ITEM, ("id", "uuid"), ("name", "text"), ("payload", "bytea"), ("seq", "int"), ("taken_by", "text"),
    ("at", "bigint"),
)  # fmt: skip
KEPT = Statement(
    "kept_signals",
    "SELECT s.id, s.name, s.payload FROM signals s WHERE s.parcel = $1 AND s.item = $2 AND s.taken_by IS NULL"
    " AND s.name = $3 ORDER BY s.seq",
)
COUNT = Statement(
    "count_signals",
    "SELECT count(*), count(s.taken_by) FROM signals s WHERE s.parcel = $1 AND s.item = $2",
)
SENT = Statement("sent_signal", "SELECT s.taken_by FROM signals s WHERE s.parcel = $1 AND s.item = $2 AND s.id = $3")
TAKE = Statement(
    "take_signal", "UPDATE signals SET taken_by = $4 WHERE parcel = $1 AND item = $2 AND id = $3 AND taken_by IS NULL"
)
