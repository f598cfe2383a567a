"""Settlement: the decisions about items that a worker reports, or that are lost with their worker."""

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
from horae.model.executions.slice import QueuedSlice, RunningSlice, Slice, WaitingSlice, part
from horae.model.executions.tally import sample
from horae.model.fleet.protocol import MAX_INLINE_RESULT, MAX_RESULT, Failure, Outcome
from horae.model.fleet.suspects import Loss, after_loss


class FinishedSlice(Struct, frozen=True, kw_only=True):
    """A slice in history.

    `results` has the result of each item, or is None when all results are null. An empty byte string stands for a large
    result, which is stored as a blob.
    """

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
    """An attempt that did not succeed, stored beside the execution."""

    parcel: UUID
    lo: int
    hi: int
    attempt: int
    outcome: str
    started_at: Instant | None
    ended_at: Instant
    exit_code: int | None = None
    error: Failure | None = None


FirstStart = tuple[UUID, int, int, Instant]  # parcel, item, attempt, and its start


class Settlement(Struct, frozen=True):
    """The rows to write for the items of one report, by their destinations."""

    finished: list[FinishedSlice]
    waiting: list[WaitingSlice]
    queued: list[QueuedSlice]
    attempts: list[FailedAttempt]
    blobs: list[tuple[UUID, int, bytes]]
    first_starts: list[FirstStart]  # the first starts of suspended items


AwaitedStep = tuple[UUID, int, str]  # parcel, item, and the step that waits for a signal
SIGNAL_GATE = "signal"  # gate of executions that wait for a signal
CountedFailures = tuple[int, int, str, int]  # items lo..hi-1, the class of their failures, and its count


class FailurePolicy(Struct, frozen=True, kw_only=True):
    """The rules by which failures of a parcel are decided."""

    retry: RetryPolicy
    delivery: int
    due_at: Instant = 0
    durable: bool = False  # whether it may wait without a worker; looked up for suspended items only
    failure_counts: tuple[CountedFailures, ...] = ()  # earlier failures of classes with their own budget

    @property
    def ends_at(self) -> Instant | None:
        """Return when all attempts must have ended."""
        return None if self.retry.within is None else self.due_at + self.retry.within

    def spent(self, lo: int, hi: int) -> list[tuple[int, int, FailureCounts]]:
        """Divide the items `lo` to `hi - 1` into ranges of items with the same earlier failures."""
        if not self.failure_counts:
            return [(lo, hi, {})]
        bounds = {bound for a, b, _, _ in self.failure_counts for bound in (a, b) if lo < bound < hi}
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
        """Decide what follows a failure; `failures` includes it, `spent` counts the earlier ones by class."""
        if self.delivery == AT_MOST_ONCE:
            return NoRetry("delivery")
        return after_failure(
            failures, failure, self.retry, now, rng, exit_code=exit_code, spent=spent, ends_at=self.ends_at
        )

    def _spent(self, item: int) -> FailureCounts:
        counts: Counter[str] = Counter()
        for lo, hi, kind, times in self.failure_counts:
            if lo <= item < hi:
                counts[kind] += times
        return counts


TOO_LARGE = Failure(
    type="ResultTooLarge",
    message=f"The result is larger than {MAX_RESULT} bytes. Store it elsewhere and return a reference.",
    permanent=True,
)


def _to_queue(running: RunningSlice, lo: int, hi: int, losses: int, alone: int) -> QueuedSlice:
    """Return the items as they were queued before: same lane, same rank."""
    return QueuedSlice(
        parcel=running.parcel, lo=lo, hi=hi, job=running.job, queue=running.queue, namespace=running.namespace,
        attempt=running.attempt, failures=running.failures, losses=losses, alone=alone, width=running.width,
        flags=running.flags,
        lane=running.lane, rank=running.rank, queued_at=running.queued_at,
    )  # fmt: skip


def _to_wait(
    running: RunningSlice, lo: int, hi: int, wake_at: Instant | None, reason: WaitReason, *, failures: int
) -> WaitingSlice:
    return WaitingSlice(
        parcel=running.parcel, lo=lo, hi=hi, job=running.job, queue=running.queue, namespace=running.namespace,
        attempt=running.attempt, failures=failures, losses=running.losses, alone=running.alone, width=running.width,
        flags=running.flags, wake_at=wake_at, reason=reason,
    )  # fmt: skip


def has_begun(running: RunningSlice, outcome: Outcome) -> bool:
    """Return whether the server knows that the items started, from an earlier message or this outcome."""
    return running.started_at is not None or bool(outcome.started_at)


def lost_outcome(running: RunningSlice) -> Outcome:
    """Return the outcome that replaces the missing report of a lost worker."""
    return Outcome(parcel=running.parcel, lo=running.lo, hi=running.hi, attempt=running.attempt, outcome="failed")


class Settler:
    """The decisions about the items of one session's report, or of its loss."""

    def __init__(
        self,
        worker: str,
        now: Instant,
        rng: Random,
        preempted: Collection[tuple[UUID, int]] = frozenset(),
        awaited: Collection[AwaitedStep] = frozenset(),
    ) -> None:
        self.worker, self.now, self.rng = worker, now, rng
        self._awaited = awaited  # steps whose signal has not arrived
        self._preempted = preempted  # items that were asked to yield
        self.fates = Settlement([], [], [], [], [], [])
        self._waits: dict[tuple[UUID, int, RetryPolicy], RetryAt] = {}

    def succeed(self, running: RunningSlice, lo: int, hi: int, outcome: Outcome) -> None:
        """Move successful items to history; an item with a result over the limit fails, but not the whole report."""
        results = outcome.results[lo - outcome.lo : hi - outcome.lo]
        if results and max(map(len, results)) > MAX_INLINE_RESULT:
            for item in range(lo, hi):
                self._succeed_large(running, item, outcome, bytes(results[item - lo]))
            return
        plain = all(len(r) == 4 and bytes(r) == b"null" for r in results)
        self._finish(running, lo, hi, outcome, "success", results=None if plain else pack(results))

    def _succeed_large(self, running: RunningSlice, item: int, outcome: Outcome, result: bytes) -> None:
        """Store one result inline or as a blob, or refuse it."""
        if len(result) > MAX_RESULT:
            self.give_up(running, item, item + 1, outcome, TOO_LARGE, "permanent")
            return
        by_reference = len(result) > MAX_INLINE_RESULT
        if by_reference:
            self.fates.blobs.append((running.parcel, item, result))
        self._finish(running, item, item + 1, outcome, "success", results=pack([b"" if by_reference else result]))

    def fail(self, running: RunningSlice, lo: int, hi: int, outcome: Outcome, rules: FailurePolicy) -> None:
        """Settle a failed attempt: a retry after a delay, or the end."""
        failure = outcome.error or Failure(type="Failed")
        for a, b, spent in rules.spent(lo, hi):
            decision = self._decide(running, outcome, failure, rules, spent)
            if isinstance(decision, NoRetry):
                self.give_up(running, a, b, outcome, failure, decision.reason)
                continue
            self._record_attempt(running, a, b, outcome, "failed", failure)
            self.fates.waiting.append(_to_wait(running, a, b, decision.at, "retry", failures=running.failures + 1))

    def _decide(
        self, running: RunningSlice, outcome: Outcome, failure: Failure, rules: FailurePolicy, spent: FailureCounts
    ) -> RetryAt | NoRetry:
        """Decide on a retry. Items with equal failure counts and policies in one report get the same random delay."""
        exit_code = outcome.exit_code
        decision = rules.decide(running.failures + 1, failure, self.now, self.rng, spent=spent, exit_code=exit_code)
        if failure.retry_after is None and isinstance(decision, RetryAt):
            return self._waits.setdefault((running.job, running.failures, rules.retry), decision)
        return decision

    def give_up(self, running: RunningSlice, lo: int, hi: int, outcome: Outcome, failure: Failure, reason: str) -> None:
        """End a failed execution: it moves to history, and so to the dead letters."""
        self._record_attempt(running, lo, hi, outcome, "failed", failure)
        charged = structs.replace(running, failures=running.failures + 1)
        self._finish(charged, lo, hi, outcome, "failed", reason=reason, error=failure)

    def cancel(self, running: RunningSlice, lo: int, hi: int, outcome: Outcome, reason: str = "") -> None:
        """End a cancelled item that has stopped."""
        self._record_attempt(running, lo, hi, outcome, "cancelled", outcome.error)
        self._finish(running, lo, hi, outcome, "cancelled", reason=reason, error=outcome.error)

    def release(self, running: RunningSlice, lo: int, hi: int, outcome: Outcome) -> None:
        """Queue items that were handed back, at their old rank. This counts neither as a failure nor as a loss.

        An attempt that had started is recorded.
        """
        if has_begun(running, outcome):
            word = "preempted" if (running.parcel, lo) in self._preempted else "released"
            self._record_attempt(running, lo, hi, outcome, word, None)
        self.fates.queued.append(_to_queue(running, lo, hi, running.losses, running.alone))

    def suspend(self, running: RunningSlice, lo: int, hi: int, outcome: Outcome) -> None:
        """Let a durable item wait without a worker: for a time, or for signals unless one has already arrived."""
        started, _, _ = _times(running, outcome, lo, hi, self.now)
        self.fates.first_starts.extend((running.parcel, item, running.attempt, started) for item in range(lo, hi))
        if not outcome.waits:
            until = self.now if outcome.wake_at is None else outcome.wake_at
            self.fates.waiting.append(_to_wait(running, lo, hi, until, "sleep", failures=running.failures))
            return
        for item in range(lo, hi):
            still = all((running.parcel, item, step) in self._awaited for step in outcome.waits)
            waits = _to_wait(running, item, item + 1, None, "signal", failures=running.failures)
            wake_at = outcome.wake_at if still else self.now
            self.fates.waiting.append(structs.replace(waits, wake_at=wake_at, gate=SIGNAL_GATE))

    def lose(self, running: RunningSlice, delivery: int, loss: Loss) -> None:
        """Settle items of a lost worker: back to the queue, or the end."""
        losses, alone = running.losses + 1, running.alone + loss.alone
        message = f"The worker {self.worker} stopped answering while it held this execution."
        failure = Failure(type="WorkerLost", message=message, kind="lost")
        nothing = lost_outcome(running)
        verdict = after_loss(losses, alone, delivery == AT_MOST_ONCE, loss)
        self._record_attempt(running, running.lo, running.hi, nothing, "lost", failure)
        if verdict is None:
            self.fates.queued.append(_to_queue(running, running.lo, running.hi, losses, alone))
            return
        charged = structs.replace(running, losses=losses)
        self._finish(charged, running.lo, running.hi, nothing, "failed", reason=verdict.reason, error=failure)

    def _finish(
        self, running: RunningSlice, lo: int, hi: int, outcome: Outcome, state: str, *,
        reason: str = "", results: Packed | None = None, error: Failure | None = None,
    ) -> None:  # fmt: skip
        started, ended, timings = _times(running, outcome, lo, hi, self.now)
        self.fates.finished.append(
            FinishedSlice(
                slice=part(running, lo, hi), state=state, reason=reason, worker=self.worker,
                queued_at=running.queued_at, started_at=started, completed_at=ended, exit_code=outcome.exit_code,
                results=results, timings=timings, error=error,
            )
        )  # fmt: skip

    def _record_attempt(
        self, running: RunningSlice, lo: int, hi: int, outcome: Outcome, word: str, failure: Failure | None
    ) -> None:
        started, ended, _ = _times(running, outcome, lo, hi, self.now)
        self.fates.attempts.append(
            FailedAttempt(
                parcel=running.parcel, lo=lo, hi=hi, attempt=running.attempt, outcome=word, started_at=started,
                ended_at=ended, exit_code=outcome.exit_code, error=failure,
            )
        )  # fmt: skip


def _times(
    running: RunningSlice, outcome: Outcome, lo: int, hi: int, now: Instant
) -> tuple[Instant, Instant, bytes | None]:
    """Return the first start, the last end, and the encoded times of each item, within the bounds of the server's
    clock.

    A start that was reported while the items ran is kept, because users may have seen it.
    """
    starts, ends = _of_items(outcome.started_at, outcome, lo, hi), _of_items(outcome.ended_at, outcome, lo, hi)
    first = running.started_at or (_within(min(starts), running.granted_at, now) if starts else running.granted_at)
    last = _within(max(ends), first, now) if ends else now
    if hi - lo == 1 or len(starts) != hi - lo or len(ends) != hi - lo:
        return first, last, None
    return first, last, encode_timings(first, starts, ends)


def _of_items(times: Sequence[Instant], outcome: Outcome, lo: int, hi: int) -> Sequence[Instant]:
    return times if len(times) <= 1 else times[lo - outcome.lo : hi - outcome.lo]


def _within(at: Instant, lo: Instant, hi: Instant) -> Instant:
    return max(lo, min(at, max(lo, hi)))


def encode_timings(first: Instant, starts: Sequence[Instant], ends: Sequence[Instant]) -> bytes:
    """Encode the items' starts and durations as 32-bit little-endian microseconds.

    Starts are relative to `first`. A value of more than 71 minutes is stored as the largest 32-bit number.
    """
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
    """Return the total worker time of the items, and a sample of their durations; 0 and () if no item started."""
    if first is None:
        return 0, ()
    if timings is None:
        span = max(0, last - first)
        return span, (span,)
    spans = array("I", timings[len(timings) // 2 :])
    if sys.byteorder == "big":
        spans.byteswap()
    return sum(spans), sample(spans)


def _bounded(micros: int) -> int:
    return min(max(micros, 0), 0xFFFF_FFFF)


def timing_of(
    timings: bytes | None, index: int, first: Instant | None, last: Instant
) -> tuple[Instant | None, Instant]:
    """Return one item's start and end."""
    if timings is None or first is None:
        return first, last
    at, after = 4 * index, len(timings) // 2 + 4 * index
    start = first + int.from_bytes(timings[at : at + 4], "little")
    return start, start + int.from_bytes(timings[after : after + 4], "little")
