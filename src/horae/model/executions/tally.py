"""Tallies: counts of outcomes in a span of time, for one job or a whole namespace. They can be added up."""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from msgspec import Struct, field

from horae.env import SECOND, Instant, Micros
from horae.model.base.histogram import Histogram

MINUTE, TEN_MINUTES, HOUR, DAY = 60, 600, 3600, 86_400  # seconds
JOB_SPANS = (HOUR, DAY)
NAMESPACE_SPANS = (MINUTE, TEN_MINUTES, HOUR)
RETENTION = {MINUTE: DAY, TEN_MINUTES: 10 * DAY, HOUR: 100 * DAY, DAY: 400 * DAY}  # retention in seconds
STEPS = (  # seconds between two points of a chart
    *(60, 120, 300, 600, 1200, 1800, 3600, 7200, 10_800, 14_400, 21_600, 28_800, 43_200),
    *(DAY, 2 * DAY, 7 * DAY, 28 * DAY),
)
MOST_POINTS = 120  # points of a chart
ENDS = ("success", "failed", "cancelled", "skipped")
OUTCOMES = ("success", "failed", "cancelled", "skipped", "retried", "lost")
SAMPLES = 8  # durations sampled from a slice's items


class OutcomeCounts(Struct):
    """The numbers of executions by outcome, of retries and of losses, and the worker time (`busy`, in microseconds)."""

    success: int = 0
    failed: int = 0
    cancelled: int = 0
    skipped: int = 0
    retried: int = 0
    lost: int = 0
    busy: int = 0

    def add(self, state: str, count: int, busy: int = 0) -> None:
        setattr(self, state, getattr(self, state) + count)
        self.busy += busy

    def join(self, other: "OutcomeCounts") -> None:
        self.success += other.success
        self.failed += other.failed
        self.cancelled += other.cancelled
        self.skipped += other.skipped
        self.retried += other.retried
        self.lost += other.lost
        self.busy += other.busy

    @property
    def ended(self) -> int:
        return self.success + self.failed + self.cancelled + self.skipped

    @property
    def outcomes(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in OUTCOMES}

    @property
    def success_rate(self) -> float | None:
        """Return the share of successes among successes and failures; None when there are none."""
        judged = self.success + self.failed
        return self.success / judged if judged else None

    @property
    def retry_rate(self) -> float | None:
        """Return the retries per execution that succeeded or failed."""
        judged = self.success + self.failed
        return self.retried / judged if judged else None


NOTHING = OutcomeCounts()
Minute = tuple[UUID, int]  # a job, and a minute since 1970


class JobTally(OutcomeCounts):
    """The counts of one job, with the durations of its executions and their waits in the queue."""

    durations: Histogram = field(default_factory=Histogram)
    waits: Histogram = field(default_factory=Histogram)
    namespace: int = 0  # the namespace of the job, if it is known
    steps_failed: int = 0  # failed executions that are steps of workflows; the workflows are counted as failed, too

    def add_durations(self, spans: Sequence[Micros], count: int) -> None:
        """Add durations of `count` executions; a sample stands for all of them."""
        if len(spans) == 1:
            self.durations.add(spans[0], count)
            return
        each, more = divmod(count, len(spans))
        for place, micros in enumerate(spans):
            self.durations.add(micros, each + (place < more))

    def join(self, other: OutcomeCounts) -> None:
        OutcomeCounts.join(self, other)
        if isinstance(other, JobTally):
            self.durations.join(other.durations)
            self.waits.join(other.waits)
            self.namespace = self.namespace or other.namespace
            self.steps_failed += other.steps_failed


class NamespaceTally(OutcomeCounts):
    """The counts of a namespace, with the lag of fires, the waits in the queue, and the queue's length."""

    lags: Histogram = field(default_factory=Histogram)
    waits: Histogram = field(default_factory=Histogram)
    lag_max: Micros | None = None
    queued: int | None = None

    def add_lag(self, lag: Micros, count: int) -> None:
        self.lags.add(lag, count)
        self.lag_max = lag if self.lag_max is None else max(lag, self.lag_max)

    def join(self, other: OutcomeCounts) -> None:
        OutcomeCounts.join(self, other)
        if isinstance(other, NamespaceTally):
            self.lags.join(other.lags)
            self.waits.join(other.waits)
            self.lag_max = largest(self.lag_max, other.lag_max)
            self.queued = largest(self.queued, other.queued)


def missing_counts(found: Mapping[Minute, JobTally], known: Mapping[Minute, OutcomeCounts]) -> dict[Minute, JobTally]:
    """Return the counts that history has and the statistics lack, by job and minute.

    The end of an execution may be counted a moment after it happened, and so in the next minute. So counts are missing
    only if the totals over all these minutes differ. They are assigned to the newest minutes first, because a server
    that died did not count its last minutes.
    """
    lacking: dict[Minute, JobTally] = {}
    for name in ENDS:
        left: dict[UUID, int] = {}
        for tallies, sign in ((found, 1), (known, -1)):
            for (job, _), tally in tallies.items():
                left[job] = left.get(job, 0) + sign * getattr(tally, name)
        for job, minute in sorted(found, key=lambda key: -key[1]):
            tally = found[job, minute]
            gap = getattr(tally, name) - getattr(known.get((job, minute), NOTHING), name)
            count = min(gap, left[job])
            if count > 0:
                left[job] -= count
                lacks = lacking.setdefault((job, minute), JobTally(namespace=tally.namespace))
                lacks.add(name, count)
                lacks.steps_failed += min(count, tally.steps_failed) if name == "failed" else 0
    return lacking


def largest(*values: int | None) -> int | None:
    return max((value for value in values if value is not None), default=None)


def begin_of(at: Instant, seconds: int) -> Instant:
    """Return the beginning of the span that contains an instant."""
    return at - at % (seconds * SECOND)


def step_of(since: Instant, until: Instant, least: int = MINUTE) -> int:
    """Return the number of seconds between points, at least `least`, so that a window has at most MOST_POINTS."""
    for step in STEPS:
        if step >= least and -(-(until - begin_of(since, step)) // (step * SECOND)) <= MOST_POINTS:
            return step
    return STEPS[-1]


def span_for(step: int, since: Instant, now: Instant, spans: Sequence[int]) -> int:
    """Return the widest stored span that divides the step and is retained for as long as the window goes back.

    If there is none, return the span that is retained longest.
    """
    fitting = [span for span in spans if step % span == 0]
    kept = [span for span in fitting if since >= now - RETENTION[span] * SECOND]
    return max(kept or [max(spans, key=lambda span: RETENTION[span])])


def points(since: Instant, until: Instant, step: int) -> Iterable[Instant]:
    """Return the beginnings of the points that cover a window."""
    return range(begin_of(since, step), until, step * SECOND)


def sample(spans: Sequence[Micros]) -> tuple[Micros, ...]:
    """Return an evenly spaced sample of at most SAMPLES durations."""
    return tuple(spans[:: -(-len(spans) // SAMPLES)])
