"""Promotion: slices on `waiting` that are due, or whose gate has opened, are moved to `queued`."""

from collections.abc import Callable, Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.admission.key_gate import GateEntry
from horae.model.admission.keys import KEYED, keys_of
from horae.model.executions.slice import QueuedSlice, WaitingSlice, merge
from horae.store.admission.holders import enter
from horae.store.base import shelves
from horae.store.executions.parcels import least_ranks
from horae.store.fleet.claim_lane import job_gate
from horae.store.script import Fetch, Rows, Script, Statement, Together

_COLUMNS = f"{shelves.names(shelves.WAITING, 'w.')}, p.lane, p.due_at, p.priority, p.deadline, p.keys"
DUE = Statement(
    "due_waiting",
    f"SELECT {_COLUMNS} FROM waiting w JOIN parcels p ON p.id = w.parcel"
    " WHERE w.wake_at >= $1 AND w.wake_at <= $2 ORDER BY w.wake_at LIMIT $3 FOR UPDATE OF w SKIP LOCKED",
)
AT_GATE = Statement(
    "waiting_at_gate",
    f"SELECT {_COLUMNS} FROM waiting w JOIN parcels p ON p.id = w.parcel WHERE w.gate = $1 LIMIT $2"
    " FOR UPDATE OF w SKIP LOCKED",
)
NEXT_WAKE = Statement("next_wake", "SELECT min(wake_at) FROM waiting WHERE wake_at IS NOT NULL")
OPEN_GATES = Statement(
    "open_gates",
    "SELECT DISTINCT j.id FROM waiting w JOIN jobs j ON j.id = w.job"
    " WHERE w.gate LIKE 'job:%' AND w.reason = 'paused' AND j.state <> 'paused'",
)

Ranker = Callable[[int, Instant, int, Instant | None, UUID], int]  # (queue, due_at, priority, deadline, job) -> rank
LONG_AGO = -(1 << 62)  # an instant before all others


class PromotionResult(Struct, frozen=True):
    """The effects of a promotion."""

    lanes: dict[int, int]  # the least rank of the queued slices in each lane
    rows: int  # the number of slices that were read from `waiting`
    slices: list[QueuedSlice]  # the slices that were queued
    wake_at: Instant | None = None  # when the promoter must check slices that also need keys not locked here


def promote_due(low: Instant, now: Instant, limit: int, rank: Ranker) -> Script[PromotionResult]:
    """Queue due slices, earliest first. Slices with wake times before `low` were queued by earlier calls."""
    rows = yield Fetch(DUE, (low, now, limit))
    return (yield from _promote(rows, rank, now))


def open_gate(job: UUID, limit: int, rank: Ranker, now: Instant) -> Script[PromotionResult]:
    """Queue slices that waited for a job to be resumed."""
    rows = yield Fetch(AT_GATE, (job_gate(job), limit))
    return (yield from _promote(rows, rank, now))


def gates_left_open() -> Script[list[UUID]]:
    """Return jobs that are not paused although slices wait for them to be resumed.

    Such slices come from a race: a claim saw the job paused, and set the slices aside after the job was resumed.
    """
    rows = yield Fetch(OPEN_GATES)
    return [row[0] for row in rows]


def next_wake() -> Script[Instant | None]:
    """Return the earliest instant at which a waiting slice is due; None if none has a time."""
    rows = yield Fetch(NEXT_WAKE)
    value: Instant | None = rows[0][0]
    return value


def _promote(rows: Rows, rank: Ranker, now: Instant) -> Script[PromotionResult]:
    """Queue these slices; merge neighbouring slices of a parcel if they differ only in their ranges."""
    if not rows:
        return PromotionResult({}, 0, [])
    waiting = [shelves.waiting(row) for row in rows]
    came = []
    for waiting_slice, row in zip(waiting, rows, strict=True):
        lane, due_at, priority, deadline, keys = row[len(shelves.WAITING) :]
        came.append(
            GateEntry(
                waiting_slice,
                keys_of(keys),
                lane,
                rank(waiting_slice.queue, due_at, priority, deadline, waiting_slice.job),
            )
        )
    queued = [to_queue(e.slice, e.lane, e.rank, now) for e in came if not e.slice.flags & KEYED]
    keyed = [entry for entry in came if entry.slice.flags & KEYED]
    if keyed:
        return (yield from _enter(keyed, queued, now, came))
    queued = merge(queued)
    yield shelves.take("waiting", waiting)
    yield shelves.put_queued(queued)
    return PromotionResult(least_ranks(queued), len(rows), queued)


def _enter(
    keyed: Sequence[GateEntry], queued: list[QueuedSlice], now: Instant, came: Sequence[GateEntry]
) -> Script[PromotionResult]:
    """Queue slices without keys, and slices with keys as far as their keys have room.

    The other slices with keys wait at the gates of their keys.
    """
    admitted = yield from enter(sorted(keyed, key=lambda e: (e.rank, e.slice.parcel, e.slice.lo)), now)
    queued = merge([*queued, *admitted.passed.queued])
    yield shelves.take("waiting", [entry.slice for entry in came])
    yield Together([shelves.put_queued(queued), shelves.put_waiting(admitted.passed.waiting), *admitted.changes])
    queued += admitted.also_admitted.queued
    return PromotionResult(least_ranks(queued), len(came), queued, admitted.also_admitted.wake_at)


def to_queue(w: WaitingSlice, lane: int, rank: int, now: Instant) -> QueuedSlice:
    """Return the queued slice that replaces a waiting slice."""
    return QueuedSlice(
        parcel=w.parcel, lo=w.lo, hi=w.hi, job=w.job, queue=w.queue, namespace=w.namespace, attempt=w.attempt,
        failures=w.failures, losses=w.losses, alone=w.alone, width=w.width, flags=w.flags, lane=lane,
        rank=rank, queued_at=now,
    )  # fmt: skip
