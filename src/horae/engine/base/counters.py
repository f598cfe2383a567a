"""Counters of this server. They are plain numbers without locks: only the event loop's thread changes them.

So counting costs a hot path only an addition or two. Readers, such as the metrics, take the present values.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from horae.env import SECOND, Instant
from horae.model.base.buckets import Buckets
from horae.model.executions.slice import RunningSlice
from horae.model.executions.submission import RepeatedRequest, SubmitResult
from horae.model.fleet.protocol import Outcome, Range
from horae.store.executions.leaving.effects import Effects
from horae.store.fleet.claim import ClaimResult

# Upper bounds of histogram buckets, in seconds: durations of executions (a millisecond to a day), waits in the queue,
# and lags of fires behind their nominal time. COUNTS are numbers of executions.
RUNS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0)
WAITS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)
LAGS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)
COUNTS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0)


class Counters:
    """The outcomes of executions, claims and exchanges on this server since it started."""

    def __init__(self) -> None:
        self.runs = {state: Buckets(RUNS, SECOND) for state in ("success", "failed", "cancelled")}
        self.totals = dict.fromkeys(("success", "failed", "cancelled", "skipped", "retried", "lost"), 0)
        self.waits = Buckets(WAITS, SECOND)
        self.lags = Buckets(LAGS, SECOND)
        self.failures: Counter[str] = Counter()  # failed attempts, by the class of the failure
        self.dead: Counter[int] = Counter()  # executions that failed finally, by namespace
        self.stale = 0  # executions in refused reports
        self.claims = self.claims_in_vain = 0
        self.repeated = 0  # attempts after the first
        self.reported, self.granted = Buckets(COUNTS), Buckets(COUNTS)  # executions per exchange, and per answer
        self.answer_bytes = 0
        self.accepted = 0  # submitted executions
        self.deduplicated = 0  # submitted executions that were answered with an earlier one

    def claimed(self, claimed: ClaimResult) -> None:
        """Count a claim and the executions it took. A claim without lanes that it could take from is not counted."""
        if claimed.running:
            self.claims += 1
        elif claimed.lanes:
            self.claims_in_vain += 1
        for running in claimed.running:
            count = running.hi - running.lo
            self.waits.add(running.granted_at - running.queued_at, count)
            if running.attempt > 1:
                self.repeated += count

    def answered(self, granted: Sequence[RunningSlice], size: int) -> None:
        """Count the answer of an exchange: its grants and its size in bytes."""
        self.answer_bytes += size
        if granted:
            self.granted.add(sum(running.hi - running.lo for running in granted))

    def submitted(self, done: SubmitResult) -> None:
        """Count the requests of one group commit."""
        self.accepted += sum(map(len, done.parcels))
        for answer in done.answers:
            if isinstance(answer, list):
                self.deduplicated += sum(receipt.count for receipt in answer if receipt.deduplicated)
            elif isinstance(answer, RepeatedRequest):
                self.deduplicated += sum(receipt.count for receipt in answer.answer)

    def settled(self, effects: Effects) -> None:
        """Count the effects of reports or rescues."""
        for ended in effects.ended:
            count = ended.hi - ended.lo
            self.totals[ended.state] += count
            if ended.state == "failed" and not ended.step:
                self.dead[ended.namespace] += count
            if ended.lane and ended.state in self.runs:
                self.runs[ended.state].add(ended.busy / count, count)
        for again in effects.repeats:
            self.totals[again.outcome] += again.count
        if effects.failures:
            self.failures.update(effects.failures)

    def refused(self, reported: Sequence[Range | Outcome]) -> None:
        """Count outcomes that were reported after their attempt or their session had ended."""
        self.stale += sum(each.hi - each.lo for each in reported)

    def fired(self, fires: Iterable[tuple[Instant, int]], now: Instant) -> None:
        """Count fired executions: pairs of a nominal time and the number of executions made for it."""
        for due_at, count in fires:
            self.lags.add(now - due_at, count)
