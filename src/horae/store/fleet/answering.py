"""Answering: exchanges that end without work have their numbers taken, and one that was answered is answered again."""

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

from horae.env import Instant
from horae.model.executions.slice import Running
from horae.model.fleet.session import see, seen_on
from horae.store.base import shelves
from horae.store.fleet.exchange import SessionRow, lock_sessions, touched
from horae.store.script import Fetch, Rows, Script, Statement

STAMPED = Statement(
    "stamped",
    f"SELECT {shelves.names(shelves.RUNNING)} FROM running WHERE session = $1 AND channel = $2 AND n = $3"
    " ORDER BY parcel, lo",
)

Emptied = Literal["empty", "taken", "ended"]


def answer_empty(
    numbers: Sequence[tuple[UUID, int, int]], now: Instant
) -> Script[dict[tuple[UUID, int], tuple[Emptied, bool]]]:
    """Take the numbers (session, channel, n) of exchanges that end without work, unless a claim took them first.

    `taken` means that something may be stamped to answer with; the flag tells whether the session is draining.
    """
    sessions = yield from lock_sessions([id for id, _, _ in numbers])
    emptied: dict[tuple[UUID, int], tuple[Emptied, bool]] = {}
    for id, channel, n in numbers:
        emptied[id, channel] = _empty(sessions.get(id), channel, n)
    yield from touched(sessions, now)
    return emptied


def _empty(row: SessionRow | None, channel: int, n: int) -> tuple[Emptied, bool]:
    if row is None or not row.live:  # guard: empty-of-live-session
        return "ended", False
    draining = row.state == "draining"
    if seen_on(row.seen, channel) != n - 1:  # guard: empty-in-turn
        return "taken", draining
    row.seen, row.dirty = see(row.seen, channel, n), True  # guard: empty-takes-number
    return "empty", draining


def stamped(session: UUID, channel: int, n: int) -> Script[list[Running]]:
    """All running slices stamped with an exchange: its answer, however often it is asked."""
    rows: Rows = yield Fetch(STAMPED, (session, channel, n))
    return [shelves.running(row) for row in rows]
