"""Effects of ended attempts: the new states of items, the executions that start because of them, and counts.

Scripts that settle the attempts of many executions, such as reports, rescues and timeouts, return their effects.
"""

from collections.abc import Iterable, Iterator
from uuid import UUID

from msgspec import Struct

from horae.env import Instant, Micros
from horae.model.admission.circuit import ParcelAttempts
from horae.model.admission.keys import CHOSEN, CIRCUIT, KEYED, REPLAYS
from horae.model.definitions.rollout import RolloutAttempts
from horae.model.executions.execution import CANCELLED
from horae.model.executions.parcel import Parcel
from horae.model.executions.settle import FailedAttempt, FinishedSlice, Settlement, time_worked, timing_of
from horae.model.executions.show_execution import status_of
from horae.model.executions.slice import QueuedSlice, RunningSlice, Slice
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
    """The effects of a batch of reports, apart from the answers to the sessions."""

    ignored: dict[Stamp, list[Range]] = {}  # reported ranges that the session of the exchange did not hold
    ended: list[FinishedItems] = []
    retried: int = 0  # executions that wait for another attempt after a failure
    failures: dict[str, int] = {}  # attempts that failed or were lost, by the class of their failure
    repeats: list[RetriedAttempts] = []  # attempts that are retried or were lost, by job
    waited: list[QueueWait] = []  # times in the queue of executions that have started and have not ended
    wakes: list[Instant] = []  # wake times of slices that now wait
    requeued: dict[int, int] = {}  # lane -> least rank of slices that may be claimed there again
    logged: list[MovedItems] = []  # items with new log lines
    moved: list[MovedItems] = []  # items that changed without ending
    jobs_with_dependents: set[UUID] = set()  # jobs of the reported slices on which other jobs depend
    freed: set[UUID] = set()  # parcels with items that released their keys
    keys: dict[UUID, str | None] = {}  # encoded keys of parcels, where a statement has read them already
    started: list[MovedItems] = []  # executions that were queued as a consequence
    returned: list[QueuedSlice] = []  # slices that went back to the queue unchanged
    attempted: list[ParcelAttempts] = []  # attempts that circuits count
    trials: list[RolloutAttempts] = []  # attempts that rollouts count
    created: list[Parcel] = []  # parcels of executions that were created as a consequence
    ended_steps: list[FinishedSlice] = []  # ended steps whose workflows have not advanced yet
    cancelled_retries: list[FinishedSlice] = []  # cancelled executions that were retries of dead letters
    stepped: list[StepChange] = []  # steps of workflows that changed their state
    newborn: list[QueuedSlice] = []  # steps that follow the ended steps and are in no queue yet
    open_lanes: set[int] = set()  # lanes of `newborn` steps that have neither a hold nor a limit
    result_bytes: dict[int, int] = {}  # bytes of stored results by namespace

    def queue(self, slices: Iterable[QueuedSlice]) -> Insert:
        """Return the Insert of slices into `queued`, and record in `requeued` that they may be claimed."""
        slices = list(slices)
        for queued in slices:
            self.may_claim(queued)
        return shelves.put_queued(slices)

    def may_claim(self, item_slice: QueuedSlice | RunningSlice) -> None:
        """Record in `requeued` that the lane of this slice has executions to claim."""
        self.requeued[item_slice.lane] = min(item_slice.rank, self.requeued.get(item_slice.lane, item_slice.rank))


def free_keys(effects: Effects, now: Instant) -> Script[None]:
    """Queue executions that waited for the keys of other items, which have ended or wait for a retry."""
    entered = yield from holders.free(effects.freed, now, effects.keys)
    for item_slice in entered.queued:
        effects.may_claim(item_slice)
    effects.started += [_moved(item_slice, "queued") for item_slice in entered.queued]
    if entered.wake_at is not None:
        effects.wakes.append(entered.wake_at)


def advance_dependents(effects: Effects, new_id: NewId, now: Instant) -> Script[None]:
    """Advance the joins of jobs that depend on the ended executions."""
    over = [
        EndedItems(e.parcel, e.lo, e.hi, e.job, e.state) for e in effects.ended if e.job in effects.jobs_with_dependents
    ]
    if not over:
        return
    consequences = Consequences()
    yield from arrive(over, new_id, now, consequences)
    merge_started(effects, consequences)


def merge_started(effects: Effects, consequences: Consequences) -> None:
    """Add the consequences for dependent jobs and workflows to the effects: started and ended executions and steps."""
    for lane, rank in consequences.lanes.items():
        effects.requeued[lane] = min(rank, effects.requeued.get(lane, rank))
    effects.wakes += [at for at in (consequences.wake_at, consequences.check_at) if at is not None]
    effects.started += [
        MovedItems(p.id, 0, len(p), p.envelope.job, p.envelope.namespace, "queued") for p in consequences.parcels
    ]
    effects.started += [_moved(item_slice, "queued") for item_slice in consequences.released]
    effects.created += consequences.parcels
    effects.ended += consequences.ended_workflows
    effects.stepped += consequences.stepped


def put_settled(fates: Settlement, worker: str, session: UUID, effects: Effects) -> Iterator[Insert]:
    """Yield the Inserts that put settled items on their new shelves, and add their effects to `effects`."""
    effects.attempted += _attempted(fates)
    effects.trials += _trials(fates)
    effects.repeats += _repeats(fates)
    if fates.finished:
        yield shelves.put_finished(fates.finished)
        effects.freed |= {f.slice.parcel for f in fates.finished if f.slice.flags & KEYED}
        effects.ended += [_ended(f) for f in fates.finished]
        effects.ended_steps += [f for f in fates.finished if is_step(f.slice.flags)]
        effects.cancelled_retries += [f for f in fates.finished if f.slice.flags & REPLAYS and f.state == CANCELLED]
        for f in fates.finished:
            if f.results is not None:
                total = effects.result_bytes.get(f.slice.namespace, 0)
                effects.result_bytes[f.slice.namespace] = total + len(f.results.blob)
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
    if fates.attempts:
        yield shelves.put_attempts(fates.attempts, worker, session)
        _count_failures(fates.attempts, effects)
    if fates.blobs:
        yield shelves.put_blobs(fates.blobs)
    if fates.first_starts:
        yield first_starts.insert_starts(fates.first_starts)


def _count_failures(tried: Iterable[FailedAttempt], effects: Effects) -> None:
    """Count attempts that failed, or were lost with their worker, by the class of the failure."""
    for t in tried:
        if t.error is not None and t.outcome != "cancelled":
            effects.failures[t.error.kind] = effects.failures.get(t.error.kind, 0) + t.hi - t.lo


def _attempted(fates: Settlement) -> Iterator[ParcelAttempts]:
    """Yield the attempts that circuits count: those of slices with the flag CIRCUIT, whose jobs have a circuit."""
    for f in fates.finished:
        s = f.slice
        if s.flags & CIRCUIT and f.state in ("success", "failed") and (f.error is None or f.error.kind != "lost"):
            ok = f.state == "success"
            yield ParcelAttempts(s.parcel, s.job, (s.hi - s.lo) * ok, (s.hi - s.lo) * (not ok))
    for w in fates.waiting:
        if w.flags & CIRCUIT and w.reason == "retry":
            yield ParcelAttempts(w.parcel, w.job, 0, w.hi - w.lo)


def _trials(fates: Settlement) -> Iterator[RolloutAttempts]:
    """Yield the attempts that rollouts count: those of slices with the flag CHOSEN, whose version a rollout chose."""
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
    """Return the durations of the items of a slice; empty if they are not known."""
    count, first, last = finished.slice.hi - finished.slice.lo, finished.started_at, finished.completed_at
    if first is None or (finished.timings is None and count > 1):
        return ()
    return tuple(
        max(0, end - (start or end))
        for start, end in (timing_of(finished.timings, i, first, last) for i in range(count))
    )


def _repeats(fates: Settlement) -> Iterator[RetriedAttempts]:
    """Yield attempts that are retried, and attempts that were lost with their worker."""
    for w in fates.waiting:
        if w.reason == "retry":
            yield RetriedAttempts(w.job, w.namespace, w.hi - w.lo)
    lost = [tried for tried in fates.attempts if tried.outcome == "lost"]
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
    if not isinstance(s, RunningSlice):
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
