"""Awaits: durable steps that wait for a signal. A row exists until the signal arrives or the deadline is over."""

from collections.abc import Sequence
from uuid import UUID

from horae.env import Instant
from horae.model.executions.settle import AwaitedStep
from horae.model.executions.signal_waits import Signal, WaitingStep
from horae.store.base import shelves
from horae.store.script import Fetch, ForEach, Insert, Script, Statement

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

COLUMNS: shelves.Columns = (
    *shelves.ITEM, ("step", "text"), ("name", "text"), ("filter", "text"), ("deadline", "bigint"), ("at", "bigint"),
)  # fmt: skip
STEP: shelves.Columns = (*shelves.ITEM, ("step", "text"))
OPEN = Statement(
    "open_awaits",
    "SELECT a.parcel, a.item, a.step FROM given JOIN awaits a ON a.parcel = given.parcel AND a.item = given.item",
)
OF_ITEM = Statement(
    "awaits_of_item",
    "SELECT a.at, a.step, a.filter, a.deadline, a.name FROM awaits a WHERE a.parcel = $1 AND a.item = $2",
)
DROP = Statement(
    "drop_awaits",
    "DELETE FROM awaits USING given WHERE awaits.parcel = given.parcel AND awaits.item = given.item"
    " AND awaits.step = given.step",
)


def open_of(items: Sequence[tuple[UUID, int]]) -> Script[frozenset[AwaitedStep]]:
    """Return the steps of these items that still wait; the caller has locked their sessions, so no signal arrives."""
    rows = yield ForEach(OPEN, shelves.ITEM, items)
    return frozenset((parcel, item, step) for parcel, item, step in rows)


def of_item(parcel: UUID, item: int) -> Script[list[tuple[str, WaitingStep]]]:
    """Return the waiting steps of an execution, oldest first, each with the name of its signal."""
    rows = yield Fetch(OF_ITEM, (parcel, item))
    ordered = sorted(rows, key=lambda row: row[:2])
    return [
        (name, WaitingStep(step=step, filter=condition, deadline=deadline))
        for _, step, condition, deadline, name in ordered
    ]


def put(parcel: UUID, item: int, name: str, wait: WaitingStep, now: Instant) -> Insert:
    """Store that a step waits."""
    row = (parcel, item, wait.step, name, wait.filter, wait.deadline, now)
    return Insert("awaits", COLUMNS, [row], conflict="ON CONFLICT DO NOTHING")


def drop(parcel: UUID, item: int, step: str) -> ForEach:
    """Delete the wait of a step."""
    return ForEach(DROP, STEP, [(parcel, item, step)])


def kept_of(parcel: UUID, item: int, name: str) -> Script[list[Signal]]:
    """Return the signals of a name that no step has taken, in the order of their arrival."""
    rows = yield Fetch(KEPT, (parcel, item, name))
    return [Signal(id=row[1], name=row[2], payload=row[3]) for row in sorted(rows, key=lambda row: row[0])]
