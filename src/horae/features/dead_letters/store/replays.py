"""Transactions of replays: create, list, pause, resume and cancel them, and lease a replay to one server for a batch.

A server that leases a replay sets its `next_at` to the end of the lease. If the server is killed, another one repeats
the batch after that instant. No dead letter runs twice, because a repeated retry finds the execution of the first one
by its key.
"""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from horae.env import Instant
from horae.features.dead_letters.model import LEASE, OPEN, LetterFilter, Replay, ReplayState
from horae.model.admission.rate import Rate
from horae.store.base.shelves import Columns, json_or_none, names
from horae.store.expiry.expiry import Cutoffs
from horae.store.script import Fetch, Insert, Row, Script, Statement
from horae.store.tenancy.holdings import Holdings, PendingWork, records

COLUMNS: Columns = (
    ("id", "uuid"), ("namespace", "int"), ("letters", "text"), ("rate", "text"), ("params", "text"), ("state", "text"),
    ("place_parcel", "uuid"), ("place_item", "int"), ("next_at", "bigint"), ("total", "bigint"), ("matched", "bigint"),
    ("retried", "bigint"), ("skipped", "bigint"), ("note", "text"), ("created_by", "text"), ("created_at", "bigint"),
    ("completed_at", "bigint"),
)  # fmt: skip
GET = Statement("replay", f"SELECT {names(COLUMNS)} FROM replays WHERE id = $1 AND namespace = $2")
PAGE = Statement(
    "replays",
    f"SELECT {names(COLUMNS)} FROM replays WHERE namespace = $1 AND id < $2 AND ($3::text IS NULL OR state = $3)"
    " ORDER BY id DESC LIMIT $4",
)
DUE = Statement(
    "due_replay",
    f"SELECT {names(COLUMNS)} FROM replays WHERE state = 'running' AND next_at <= $1 ORDER BY next_at LIMIT 1"
    " FOR UPDATE SKIP LOCKED",
)
NEXT = Statement("next_replay", "SELECT min(next_at) FROM replays WHERE state = 'running'")
LOCK = Statement("lock_replay", f"SELECT {names(COLUMNS)} FROM replays WHERE id = $1 AND namespace = $2 FOR UPDATE")
SET_NEXT = Statement("set_next_of_replay", "UPDATE replays SET next_at = $2 WHERE id = $1")
SET_STATE = Statement(
    "set_replay_state", "UPDATE replays SET state = $2, next_at = $3, completed_at = $4 WHERE id = $1"
)
# The row is updated only if the replay is still at the place where the batch began, so that a server whose lease has
# expired does not undo the progress of another.
ADVANCE = Statement(
    "advance_replay",
    "UPDATE replays SET place_parcel = $4, place_item = $5, next_at = $6, matched = matched + $7,"
    " retried = retried + $8, skipped = skipped + $9, note = $10,"
    " state = CASE WHEN $11::bigint IS NULL OR state <> 'running' THEN state ELSE 'done' END,"
    " completed_at = CASE WHEN state = 'running' THEN $11 ELSE completed_at END"
    " WHERE id = $1 AND place_parcel = $2 AND place_item = $3",
)
FORGET = Statement("expire_replays", "DELETE FROM replays WHERE completed_at < $1")
STANDING = Statement(
    "standing_replays",
    "SELECT namespace, state, count(*) FROM replays WHERE completed_at IS NULL GROUP BY namespace, state",
)


def count_unfinished() -> Script[dict[tuple[int, str], int]]:
    """Count the replays that have not ended, by namespace and state."""
    return {(namespace, state): count for namespace, state, count in (yield Fetch(STANDING))}


def put(replay: Replay) -> Script[None]:
    """Insert a new replay, which some server will begin."""
    yield Insert("replays", COLUMNS, [_to_row(replay)])


def _to_row(r: Replay) -> Row:
    return (
        r.id, r.namespace, msgspec.json.encode(r.letters).decode(), json_or_none(r.rate), r.params, r.state, *r.place,
        r.next_at, r.total, r.matched, r.retried, r.skipped, r.note, r.created_by, r.created_at, r.completed_at,
    )  # fmt: skip


def _read(row: Row) -> Replay:
    return Replay(
        id=row[0], namespace=row[1], letters=msgspec.json.decode(row[2], type=LetterFilter),
        rate=None if row[3] is None else msgspec.json.decode(row[3], type=Rate), params=row[4], state=row[5],
        place=(row[6], row[7]), next_at=row[8], total=row[9], matched=row[10], retried=row[11], skipped=row[12],
        note=row[13], created_by=row[14], created_at=row[15], completed_at=row[16],
    )  # fmt: skip


def get(replay_id: UUID, namespace: int) -> Script[Replay | None]:
    """Return a replay, or None."""
    rows = yield Fetch(GET, (replay_id, namespace))
    return _read(rows[0]) if rows else None


def page(namespace: int, before: UUID, state: ReplayState | None, limit: int) -> Script[list[Replay]]:
    """Return up to `limit` replays with ids before an id, newest first, in all states or in one."""
    rows = yield Fetch(PAGE, (namespace, before, state, limit))
    return [_read(row) for row in rows]


def take_up(now: Instant) -> Script[Replay | None]:
    """Lease the replay that is due first, and return it, or None if no replay is due."""
    rows = yield Fetch(DUE, (now,))
    if not rows:
        return None
    yield Fetch(SET_NEXT, (rows[0][0], now + LEASE))
    return _read(rows[0])


def advance(
    before: Replay, place: tuple[UUID, int], next_at: Instant, counts: tuple[int, int, int], note: str,
    completed_at: Instant | None,
) -> Script[None]:  # fmt: skip
    """Record the progress of a batch.

    `counts` are the numbers of matched, retried and skipped dead letters. Without a note, an earlier one is kept if it
    tells why some were skipped. A replay that was paused or cancelled meanwhile keeps its state.
    """
    end = (*place, next_at, *counts, note or (before.note if before.skipped else ""), completed_at)
    yield Fetch(ADVANCE, (before.id, *before.place, *end))


def next_due() -> Script[Instant | None]:
    """Return when the next replay is due, or None."""
    rows = yield Fetch(NEXT)
    at: Instant | None = rows[0][0]
    return at


def change(
    replay_id: UUID, namespace: int, state: ReplayState, among: Sequence[ReplayState], now: Instant
) -> Script[Replay | None]:
    """Set the state of a replay if its state is among these.

    Return the replay before the change, or None if there is no such replay.
    """
    rows = yield Fetch(LOCK, (replay_id, namespace))
    if not rows:
        return None
    before = _read(rows[0])
    if before.state in among:
        yield Fetch(SET_STATE, (replay_id, state, max(now, before.next_at), now if state == "cancelled" else None))
    return before


def sweep(cutoffs: Cutoffs) -> Script[bool]:
    """Delete all replays whose retention is over."""
    yield Fetch(FORGET, (cutoffs.executions,))
    return False


def _cancel(replay_id: UUID, namespace: int, now: Instant) -> Script[object]:
    return (yield from change(replay_id, namespace, "cancelled", OPEN, now))


HOLDINGS = Holdings(
    records=(records("replays", "id", "namespace = $1 AND created_at < $2 AND completed_at IS NOT NULL"),),
    under_way=PendingWork(
        "replay",
        Statement(
            "namespace_replays",
            "SELECT id FROM replays WHERE namespace = $1 AND created_at < $2 AND completed_at IS NULL ORDER BY id",
        ),
        _cancel,
    ),
)
