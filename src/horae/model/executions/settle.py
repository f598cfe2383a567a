"""What becomes of items that a worker reports, or that are lost with it."""

import sys
from array import array
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise
from random import Random
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant, Micros
from horae.model.base.packing import Packed, pack
from horae.model.definitions.retry import FailureCounts, NoRetry, RetryAt, RetryPolicy, after_failure
from horae.model.executions.execution import WaitReason
from horae.model.executions.parcel import AT_MOST_ONCE
from horae.model.executions.slice import Queued, Running, Slice, Waiting, part
from horae.model.executions.tally import some_of
from horae.model.fleet.protocol import MAX_INLINE_RESULT, MAX_RESULT, Failure, Outcome
from horae.model.fleet.suspects import Loss, after_loss


class FinishedSlice(Struct, frozen=True, kw_only=True):
    """A slice as history keeps it. `results` is None when all are null; an empty one lies among the blobs."""

    slice: Slice
    state: str
    reason: str = ""
    worker: str = ""
    queued_at: Instant | None = None
    started_at: Instant | None = None
    completed_at: Instant
    exit_code: int | None = None
    results: Packed | None = None
    timings: bytes | None = None
    error: Failure | None = None


class FailedAttempt(Struct, frozen=True, kw_only=True):
    """An attempt that did not succeed, kept beside the execution."""

    parcel: UUID
    lo: int
    hi: int
    attempt: int
    outcome: str
    started_at: Instant | None
    ended_at: Instant
    exit_code: int | None = None
    error: Failure | None = None


FirstStart = tuple[UUID, int, int, Instant]  # of an item: its attempt, and when that began


class Settlement(Struct, frozen=True):
    """Where the items of one report go."""

    finished: list[FinishedSlice]
    waiting: list[Waiting]
    queued: list[Queued]
    tried: list[FailedAttempt]
    blobs: list[tuple[UUID, int, bytes]]
    begun: list[FirstStart]  # of what is suspended


AwaitedStep = tuple[UUID, int, str]  # a step of an item that waits for a signal
SIGNAL_GATE = "signal"  # where executions lie that wait for one
CountedFailures = tuple[int, int, str, int]  # items lo..hi-1, the class of their failures, and how many


class FailurePolicy(Struct, frozen=True, kw_only=True):
    """What decides about a parcel's failures."""

    retry: RetryPolicy
    delivery: int
    due_at: Instant = 0
    durable: bool = False  # whether it may wait without a worker; looked up for what is suspended
    tried: tuple[CountedFailures, ...] = ()  # where classes of failures are counted each by itself

    @property
    def ends_at(self) -> Instant | None:
        """When all tries must have ended."""
        return None if self.retry.within is None else self.due_at + self.retry.within

    def spent(self, lo: int, hi: int) -> list[tuple[int, int, FailureCounts]]:
        """The items of a range by how often they failed before, and by what."""
        if not self.tried:
            return [(lo, hi, {})]
        bounds = {bound for a, b, _, _ in self.tried for bound in (a, b) if lo < bound < hi}
        cuts = sorted({lo, hi, *bounds})
        return [(a, b, self._spent(a)) for a, b in pairwise(cuts)]

    def decide(
        self,
        failures: int,
        failure: Failure,
        now: Instant,
        rng: Random,
        *,
        spent: FailureCounts,
        exit_code: int | None = None,
    ) -> RetryAt | NoRetry:
        """Decide what follows a failure; `failures` counts it, `spent` the earlier ones by their class."""
        if self.delivery == AT_MOST_ONCE:
            return NoRetry("delivery")
        return after_failure(
            failures, failure, self.retry, now, rng, exit_code=exit_code, spent=spent, ends_at=self.ends_at
        )

    def _spent(self, item: int) -> FailureCounts:
        counts: Counter[str] = Counter()
        for lo, hi, kind, times in self.tried:
            if lo <= item < hi:
                counts[kind] += times
        return counts


TOO_LARGE = Failure(
    type="ResultTooLarge",
    message=f"The result is larger than {MAX_RESULT} bytes. Store it elsewhere and return a reference.",
    permanent=True,
)


def _to_queue(slice: Running, lo: int, hi: int, losses: int, alone: int) -> Queued:
    """The items as they were queued before: same lane, same rank."""
    return Queued(
        parcel=slice.parcel, lo=lo, hi=hi, job=slice.job, queue=slice.queue, namespace=slice.namespace,
        attempt=slice.attempt, failures=slice.failures, losses=losses, alone=alone, width=slice.width,
        flags=slice.flags,
        lane=slice.lane, rank=slice.rank, queued_at=slice.queued_at,
    )  # fmt: skip


def _to_wait(
    slice: Running, lo: int, hi: int, wake_at: Instant | None, reason: WaitReason, *, failures: int
) -> Waiting:
    return Waiting(
        parcel=slice.parcel, lo=lo, hi=hi, job=slice.job, queue=slice.queue, namespace=slice.namespace,
        attempt=slice.attempt, failures=failures, losses=slice.losses, alone=slice.alone, width=slice.width,
        flags=slice.flags, wake_at=wake_at, reason=reason,
    )  # fmt: skip


def has_begun(slice: Running, outcome: Outcome) -> bool:
    """Whether the server was told that items began: while they ran, or with their outcome."""
    return slice.started_at is not None or bool(outcome.started_at)


def lost_outcome(slice: Running) -> Outcome:
    """What a worker that is gone has to say: nothing but that it did not succeed."""
    return Outcome(parcel=slice.parcel, lo=slice.lo, hi=slice.hi, attempt=slice.attempt, outcome="failed")


class Settler:
    """Decides about the items of one session's report, or of its loss, and gathers their fates."""

    def __init__(
        self,
        worker: str,
        now: Instant,
        rng: Random,
        preempted: Collection[tuple[UUID, int]] = frozenset(),
        awaited: Collection[AwaitedStep] = frozenset(),
    ) -> None:
        self.worker, self.now, self.rng = worker, now, rng
        self._awaited = awaited  # steps for which no signal has come
        self._preempted = preempted  # items that were asked to give way
        self.fates = Settlement([], [], [], [], [], [])
        self._waits: dict[tuple[UUID, int, RetryPolicy], RetryAt] = {}

    def succeed(self, slice: Running, lo: int, hi: int, outcome: Outcome) -> None:
        """Put successes on history; results over their limit fail their item, not the report."""
        results = outcome.results[lo - outcome.lo : hi - outcome.lo]
        if results and max(map(len, results)) > MAX_INLINE_RESULT:
            for item in range(lo, hi):
                self._succeed_large(slice, item, outcome, bytes(results[item - lo]))
            return
        plain = all(len(r) == 4 and bytes(r) == b"null" for r in results)
        self._finish(slice, lo, hi, outcome, "success", results=None if plain else pack(results))

    def _succeed_large(self, slice: Running, item: int, outcome: Outcome, result: bytes) -> None:
        """Keep one result inline, by reference, or refuse it."""
        if len(result) > MAX_RESULT:
            self.give_up(slice, item, item + 1, outcome, TOO_LARGE, "permanent")
            return
        by_reference = len(result) > MAX_INLINE_RESULT
        if by_reference:
            self.fates.blobs.append((slice.parcel, item, result))
        self._finish(slice, item, item + 1, outcome, "success", results=pack([b"" if by_reference else result]))

    def fail(self, slice: Running, lo: int, hi: int, outcome: Outcome, rules: FailurePolicy) -> None:
        """An attempt that failed: another try after a delay, or the end."""
        failure = outcome.error or Failure(type="Failed")
        for a, b, spent in rules.spent(lo, hi):
            decision = self._decide(slice, outcome, failure, rules, spent)
            if isinstance(decision, NoRetry):
                self.give_up(slice, a, b, outcome, failure, decision.reason)
                continue
            self._try(slice, a, b, outcome, "failed", failure)
            self.fates.waiting.append(_to_wait(slice, a, b, decision.at, "retry", failures=slice.failures + 1))

    def _decide(
        self, slice: Running, outcome: Outcome, failure: Failure, rules: FailurePolicy, spent: FailureCounts
    ) -> RetryAt | NoRetry:
        """Neighbours that fail in one report under one policy share one jittered time."""
        exit_code = outcome.exit_code
        decision = rules.decide(slice.failures + 1, failure, self.now, self.rng, spent=spent, exit_code=exit_code)
        if failure.retry_after is None and isinstance(decision, RetryAt):
            return self._waits.setdefault((slice.job, slice.failures, rules.retry), decision)
        return decision

    def give_up(self, slice: Running, lo: int, hi: int, outcome: Outcome, failure: Failure, reason: str) -> None:
        """The end of a failed execution: history, and so the dead letters."""
        self._try(slice, lo, hi, outcome, "failed", failure)
        charged = structs.replace(slice, failures=slice.failures + 1)
        self._finish(charged, lo, hi, outcome, "failed", reason=reason, error=failure)

    def cancel(self, slice: Running, lo: int, hi: int, outcome: Outcome, reason: str = "") -> None:
        """A cancelled item has stopped."""
        self._try(slice, lo, hi, outcome, "cancelled", outcome.error)
        self._finish(slice, lo, hi, outcome, "cancelled", reason=reason, error=outcome.error)

    def release(self, slice: Running, lo: int, hi: int, outcome: Outcome) -> None:
        """Handed back: queued as before, nothing charged; a try that had begun is remembered."""
        if has_begun(slice, outcome):
            word = "preempted" if (slice.parcel, lo) in self._preempted else "released"
            self._try(slice, lo, hi, outcome, word, None)
        self.fates.queued.append(_to_queue(slice, lo, hi, slice.losses, slice.alone))

    def suspend(self, slice: Running, lo: int, hi: int, outcome: Outcome) -> None:
        """What is durable waits without a worker: for a time, or for signals unless one of them has come already."""
        started, _, _ = _times(slice, outcome, lo, hi, self.now)
        self.fates.begun.extend((slice.parcel, item, slice.attempt, started) for item in range(lo, hi))
        if not outcome.waits:
            until = self.now if outcome.wake_at is None else outcome.wake_at
            self.fates.waiting.append(_to_wait(slice, lo, hi, until, "sleep", failures=slice.failures))
            return
        for item in range(lo, hi):
            still = all((slice.parcel, item, step) in self._awaited for step in outcome.waits)
            waits = _to_wait(slice, item, item + 1, None, "signal", failures=slice.failures)
            wake_at = outcome.wake_at if still else self.now
            self.fates.waiting.append(structs.replace(waits, wake_at=wake_at, gate=SIGNAL_GATE))

    def lose(self, slice: Running, delivery: int, loss: Loss) -> None:
        """The worker is gone: back to the queue, or the end."""
        losses, alone = slice.losses + 1, slice.alone + loss.alone
        message = f"The worker {self.worker} stopped answering while it held this execution."
        failure = Failure(type="WorkerLost", message=message, kind="lost")
        nothing = lost_outcome(slice)
        verdict = after_loss(losses, alone, delivery == AT_MOST_ONCE, loss)
        self._try(slice, slice.lo, slice.hi, nothing, "lost", failure)
        if verdict is None:
            self.fates.queued.append(_to_queue(slice, slice.lo, slice.hi, losses, alone))
            return
        charged = structs.replace(slice, losses=losses)
        self._finish(charged, slice.lo, slice.hi, nothing, "failed", reason=verdict.reason, error=failure)

    def _finish(
        self, slice: Running, lo: int, hi: int, outcome: Outcome, state: str, *,
        reason: str = "", results: Packed | None = None, error: Failure | None = None,
    ) -> None:  # fmt: skip
        started, ended, timings = _times(slice, outcome, lo, hi, self.now)
        self.fates.finished.append(
            FinishedSlice(
                slice=part(slice, lo, hi), state=state, reason=reason, worker=self.worker, queued_at=slice.queued_at,
                started_at=started, completed_at=ended, exit_code=outcome.exit_code, results=results,
                timings=timings, error=error,
            )
        )  # fmt: skip

    def _try(self, slice: Running, lo: int, hi: int, outcome: Outcome, word: str, failure: Failure | None) -> None:
        started, ended, _ = _times(slice, outcome, lo, hi, self.now)
        self.fates.tried.append(
            FailedAttempt(
                parcel=slice.parcel, lo=lo, hi=hi, attempt=slice.attempt, outcome=word, started_at=started,
                ended_at=ended, exit_code=outcome.exit_code, error=failure,
            )
        )  # fmt: skip


def _times(slice: Running, outcome: Outcome, lo: int, hi: int, now: Instant) -> tuple[Instant, Instant, bytes | None]:
    """First start, last end, and each item's own as an encoded array. A worker's clock is not believed too far.

    A start that was told while the items ran is kept: everybody may have seen it.
    """
    starts, ends = _of_items(outcome.started_at, outcome, lo, hi), _of_items(outcome.ended_at, outcome, lo, hi)
    first = slice.started_at or (_within(min(starts), slice.granted_at, now) if starts else slice.granted_at)
    last = _within(max(ends), first, now) if ends else now
    if hi - lo == 1 or len(starts) != hi - lo or len(ends) != hi - lo:
        return first, last, None
    return first, last, encode_timings(first, starts, ends)


def _of_items(times: Sequence[Instant], outcome: Outcome, lo: int, hi: int) -> Sequence[Instant]:
    return times if len(times) <= 1 else times[lo - outcome.lo : hi - outcome.lo]


def _within(at: Instant, lo: Instant, hi: Instant) -> Instant:
    return max(lo, min(at, max(lo, hi)))


def encode_timings(first: Instant, starts: Sequence[Instant], ends: Sequence[Instant]) -> bytes:
    """Each item's start after `first` and its duration, as 32-bit little-endian microseconds (71 minutes at most)."""
    try:
        offsets = array("I", [s - first for s in starts])
        offsets.extend([e - s for s, e in zip(starts, ends, strict=True)])
    except OverflowError:
        offsets = array("I", [_bounded(s - first) for s in starts])
        offsets.extend([_bounded(e - s) for s, e in zip(starts, ends, strict=True)])
    if sys.byteorder == "big":
        offsets.byteswap()
    return offsets.tobytes()


def time_worked(first: Instant | None, last: Instant, timings: bytes | None) -> tuple[Micros, tuple[Micros, ...]]:
    """How long workers were busy with the items together, and how long some of them took, which stand for all: none
    where no item began.
    """
    if first is None:
        return 0, ()
    if timings is None:
        span = max(0, last - first)
        return span, (span,)
    spans = array("I", timings[len(timings) // 2 :])
    if sys.byteorder == "big":
        spans.byteswap()
    return sum(spans), some_of(spans)


def _bounded(micros: int) -> int:
    return min(max(micros, 0), 0xFFFF_FFFF)


def timing_of(
    timings: bytes | None, index: int, first: Instant | None, last: Instant
) -> tuple[Instant | None, Instant]:
    """One item's start and end."""
    if timings is None or first is None:
        return first, last
    at, after = 4 * index, len(timings) // 2 + 4 * index
    start = first + int.from_bytes(timings[at : at + 4], "little")
    return start, start + int.from_bytes(timings[after : after + 4], "little")
