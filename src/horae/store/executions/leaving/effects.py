"""What the ends of attempts bring about: where items go, who hears of it, and what is counted.

Reports and rescues have them alike; so does whatever else ends executions.
"""

from collections.abc import Iterable, Iterator
from uuid import UUID

from msgspec import Struct

from horae.env import Instant, Micros
from horae.model.admission.circuit import ParcelAttempts
from horae.model.admission.keys import AGAIN, CHOSEN, CIRCUIT, KEYED
from horae.model.definitions.rollout import RolloutAttempts
from horae.model.executions.execution import CANCELLED
from horae.model.executions.parcel import Parcel
from horae.model.executions.settle import FailedAttempt, FinishedSlice, Settlement, time_worked, timing_of
from horae.model.executions.show_execution import status_of
from horae.model.executions.slice import Queued, Running, Slice
from horae.model.fleet.protocol import Range
from horae.store.admission import holders
from horae.store.base import shelves
from horae.store.executions import first_starts
from horae.store.executions.state_changes import (
    FinishedItems,
    MovedItems,
    QueueWait,
    RetriedAttempts,
    StepChange,
    is_step,
)
from horae.store.script import Insert, Script
from horae.store.triggers.dependencies.arrivals import EndedItems, arrive
from horae.store.triggers.dependencies.starts import Consequences, NewId

Stamp = tuple[UUID, int]  # session and channel: one exchange of a batch


class Effects(Struct):
    """What a batch of reports did, beside what the sessions are told."""

    ignored: dict[Stamp, list[Range]] = {}
    ended: list[FinishedItems] = []
    retried: int = 0
    failures: dict[str, int] = {}  # attempts that failed or were lost, by the class of their failure
    repeats: list[RetriedAttempts] = []  # the same by job, and what was lost with its worker
    waited: list[QueueWait] = []  # of what has begun, and goes on
    wakes: list[Instant] = []
    requeued: dict[int, int] = {}  # lane -> least rank of what may be claimed there again
    logged: list[MovedItems] = []
    moved: list[MovedItems] = []  # what went on without ending
    feeding: set[UUID] = set()  # jobs of these slices on which others depend
    freed: set[UUID] = set()  # parcels of which items no longer hold their keys
    keys: dict[UUID, str | None] = {}  # those of parcels, where they were read with something else
    started: list[MovedItems] = []  # executions of those others
    returned: list[Queued] = []  # what went back to the queue as it was
    attempted: list[ParcelAttempts] = []  # what circuits are judged by
    trials: list[RolloutAttempts] = []  # what rollouts are judged by
    created: list[Parcel] = []  # those of them that are new
    children: list[FinishedSlice] = []  # steps of workflows that have ended, and have not been told of
    given_up: list[FinishedSlice] = []  # what ran a dead letter again, and was cancelled
    stepped: list[StepChange] = []  # steps of workflows that went on
    newborn: list[Queued] = []  # steps that follow from those that ended, and stand in no queue yet
    open: set[int] = set()  # lanes of such steps that neither a hold nor a limit is about
    stored: dict[int, int] = {}  # namespace -> bytes of results

    def queue(self, slices: Iterable[Queued]) -> Insert:
        """Put slices into the queue, where they may be claimed."""
        slices = list(slices)
        for queued in slices:
            self.may_claim(queued)
        return shelves.put_queued(slices)

    def may_claim(self, item_slice: Queued | Running) -> None:
        """Something can be claimed where this slice lies, or came from."""
        self.requeued[item_slice.lane] = min(item_slice.rank, self.requeued.get(item_slice.lane, item_slice.rank))


def free_keys(effects: Effects, now: Instant) -> Script[None]:
    """What has ended, or waits to be tried again, may be what others wait for under the same keys."""
    entered = yield from holders.free(effects.freed, now, effects.keys)
    for item_slice in entered.queued:
        effects.may_claim(item_slice)
    effects.started += [_moved(item_slice, "queued") for item_slice in entered.queued]
    if entered.wake_at is not None:
        effects.wakes.append(entered.wake_at)


def advance_dependents(effects: Effects, new_id: NewId, now: Instant) -> Script[None]:
    """What has ended may be what other jobs wait for."""
    over = [EndedItems(e.parcel, e.lo, e.hi, e.job, e.state) for e in effects.ended if e.job in effects.feeding]
    if not over:
        return
    done = Consequences()
    yield from arrive(over, new_id, now, done)
    merge_started(effects, done)


def merge_started(effects: Effects, done: Consequences) -> None:
    """What followed for dependents goes with the rest."""
    for lane, rank in done.lanes.items():
        effects.requeued[lane] = min(rank, effects.requeued.get(lane, rank))
    effects.wakes += [at for at in (done.wake_at, done.look_at) if at is not None]
    effects.started += [
        MovedItems(p.id, 0, len(p), p.envelope.job, p.envelope.namespace, "queued") for p in done.parcels
    ]
    effects.started += [_moved(item_slice, "queued") for item_slice in done.released]
    effects.created += done.parcels
    effects.ended += done.ended
    effects.stepped += done.stepped


def put_settled(fates: Settlement, worker: str, session: UUID, effects: Effects) -> Iterator[Insert]:
    """Put settled items where they go."""
    effects.attempted += _attempted(fates)
    effects.trials += _trials(fates)
    effects.repeats += _repeats(fates)
    if fates.finished:
        yield shelves.put_finished(fates.finished)
        effects.freed |= {f.slice.parcel for f in fates.finished if f.slice.flags & KEYED}
        effects.ended += [_ended(f) for f in fates.finished]
        effects.children += [f for f in fates.finished if is_step(f.slice.flags)]
        effects.given_up += [f for f in fates.finished if f.slice.flags & AGAIN and f.state == CANCELLED]
        for f in fates.finished:
            if f.results is not None:
                total = effects.stored.get(f.slice.namespace, 0)
                effects.stored[f.slice.namespace] = total + len(f.results.blob)
    if fates.waiting:
        yield shelves.put_waiting(fates.waiting)
        effects.freed |= {w.parcel for w in fates.waiting if w.flags & KEYED}  # guard: retry-frees-keys
        effects.wakes += [w.wake_at for w in fates.waiting if w.wake_at is not None]
        effects.retried += sum(w.hi - w.lo for w in fates.waiting if w.reason == "retry")
        effects.moved += [_moved(w, status_of("waiting", w.reason)) for w in fates.waiting]
    if fates.queued:
        yield shelves.put_queued(fates.queued)
        for q in fates.queued:
            effects.may_claim(q)
        effects.returned += fates.queued
        effects.moved += [_moved(q, "queued") for q in fates.queued]
    if fates.tried:
        yield shelves.put_tried(fates.tried, worker, session)
        _count_failures(fates.tried, effects)
    if fates.blobs:
        yield shelves.put_blobs(fates.blobs)
    if fates.begun:
        yield first_starts.insert_starts(fates.begun)


def _count_failures(tried: Iterable[FailedAttempt], effects: Effects) -> None:
    """Count attempts that failed, or were lost with their worker, by class."""
    for t in tried:
        if t.error is not None and t.outcome != "cancelled":
            effects.failures[t.error.kind] = effects.failures.get(t.error.kind, 0) + t.hi - t.lo


def _attempted(fates: Settlement) -> Iterator[ParcelAttempts]:
    """What circuits hear of; slices of other jobs carry no flag for them."""
    for f in fates.finished:
        s = f.slice
        if s.flags & CIRCUIT and f.state in ("success", "failed") and (f.error is None or f.error.kind != "lost"):
            ok = f.state == "success"
            yield ParcelAttempts(s.parcel, s.job, (s.hi - s.lo) * ok, (s.hi - s.lo) * (not ok))
    for w in fates.waiting:
        if w.flags & CIRCUIT and w.reason == "retry":
            yield ParcelAttempts(w.parcel, w.job, 0, w.hi - w.lo)


def _trials(fates: Settlement) -> Iterator[RolloutAttempts]:
    """What rollouts hear of; slices that none chose carry no flag for it."""
    for f in fates.finished:
        s = f.slice
        if s.flags & CHOSEN and f.state in ("success", "failed") and (f.error is None or f.error.kind != "lost"):
            yield RolloutAttempts(
                s.parcel, s.job, "success" if f.state == "success" else "failed", s.hi - s.lo, _spans(f)
            )
    for w in fates.waiting:
        if w.flags & CHOSEN and w.reason == "retry":
            yield RolloutAttempts(w.parcel, w.job, "retried", w.hi - w.lo)


def _spans(finished: FinishedSlice) -> tuple[Micros, ...]:
    """How long each item took, where that is known."""
    count, first, last = finished.slice.hi - finished.slice.lo, finished.started_at, finished.completed_at
    if first is None or (finished.timings is None and count > 1):
        return ()
    return tuple(
        max(0, end - (start or end))
        for start, end in (timing_of(finished.timings, i, first, last) for i in range(count))
    )


def _repeats(fates: Settlement) -> Iterator[RetriedAttempts]:
    """What is tried again, and what was lost with its worker."""
    for w in fates.waiting:
        if w.reason == "retry":
            yield RetriedAttempts(w.job, w.namespace, w.hi - w.lo)
    lost = [tried for tried in fates.tried if tried.outcome == "lost"]
    if lost:
        slices: dict[UUID, Slice] = {item_slice.parcel: item_slice for item_slice in [*fates.waiting, *fates.queued]}
        slices |= {f.slice.parcel: f.slice for f in fates.finished}
        for tried in lost:
            item_slice = slices[tried.parcel]
            yield RetriedAttempts(item_slice.job, item_slice.namespace, tried.hi - tried.lo, "lost")


def _moved(item_slice: Slice, state: str) -> MovedItems:
    return MovedItems(item_slice.parcel, item_slice.lo, item_slice.hi, item_slice.job, item_slice.namespace, state)


def _ended(finished: FinishedSlice) -> FinishedItems:
    s = finished.slice
    began = finished.started_at
    busy, spans = time_worked(began, finished.completed_at, finished.timings)
    if not isinstance(s, Running):
        return FinishedItems(
            s.parcel, s.lo, s.hi, s.job, s.namespace, finished.state, busy, 0, spans, attempt=s.attempt,
            step=is_step(s.flags),
            at=finished.completed_at,
        )  # fmt: skip
    waited = None if began is None or s.started_at is not None else max(0, began - s.queued_at)
    return FinishedItems(
        s.parcel, s.lo, s.hi, s.job, s.namespace, finished.state, busy, s.lane, spans, waited, None, s.attempt,
        is_step(s.flags),
        finished.completed_at,
    )  # fmt: skip
