"""How many workers a queue wants, and how fast a fleet may grow and shrink.

Everything here is pure. A queue's signals are what it holds, how fast it fills and empties, and who serves it; what is
wanted follows from how long an execution may wait.
"""

from collections import deque
from math import ceil

from msgspec import Struct

HEADROOM = 0.8  # of its slots that a fleet uses at most when it just keeps up: fuller ones let queues grow
DEFAULT_SLOTS = 10  # of a worker, when none is there to tell


class ScalingSignals(Struct, frozen=True, kw_only=True):
    """How a queue stands. Times are in seconds, rates in executions per second."""

    backlog: int  # queued
    running: int
    oldest_age: float = 0.0  # how long the oldest of the backlog has been queued
    arrival_rate: float = 0.0
    service_rate: float = 0.0  # that ended
    duration: float | None = None  # that an execution takes, as far as is known
    workers: int = 0  # that serve it, and do not drain
    slots: int = 0  # of these, in all
    busy: int = 0  # of these slots

    @property
    def utilisation(self) -> float:
        """The share of the slots that is in use, by whatever queue."""
        return min(1.0, self.busy / self.slots) if self.slots else 0.0

    @property
    def slots_per_worker(self) -> int:
        return max(1, round(self.slots / self.workers)) if self.workers else DEFAULT_SLOTS


def desired_slots(signals: ScalingSignals, target_wait: float) -> float:
    """How many slots let what is queued, and what will come, start within the target wait.

    N slots of which some are busy begin N - busy executions at once and N x wait / duration more within the wait, when
    each takes `duration`; as many must begin as are queued and will arrive. What keeps up in the long run has headroom.
    """
    if signals.duration is None:
        return float(signals.backlog + signals.running)
    turns = target_wait / max(signals.duration, 1e-6)
    now = (signals.backlog + signals.running + signals.arrival_rate * target_wait) / (1 + turns)
    return max(now, signals.arrival_rate * signals.duration / HEADROOM)


def desired_workers(signals: ScalingSignals, target_wait: float, slots_per_worker: int | None = None) -> int:
    """How many workers that is; none when nothing is queued, runs or comes."""
    per_worker = slots_per_worker or signals.slots_per_worker
    wanted = desired_slots(signals, target_wait)
    if wanted <= 1e-6:
        return 0
    return max(1, ceil(wanted / per_worker - 1e-6))


class BacklogSample(Struct, frozen=True):
    """What a queue held at an instant (in seconds), and how many executions had ended by minute."""

    at: float
    held: int  # queued and running
    ended: dict[int, int]


def arrivals(before: BacklogSample, now: BacklogSample) -> float:
    """Executions that came between two samples: what is there more, and what has ended since."""
    first = int(before.at // 60)
    ended = sum(count for minute, count in now.ended.items() if minute >= first)
    known = sum(count for minute, count in before.ended.items() if minute >= first)
    return max(0.0, float(now.held - before.held + ended - known))


class ArrivalMeter:
    """Samples of one queue over a while: how fast it fills."""

    def __init__(self, keep: float = 120.0, least: float = 5.0) -> None:
        self._keep, self._least = keep, least  # seconds
        self._samples: deque[BacklogSample] = deque(maxlen=240)

    def rate(self, sample: BacklogSample) -> float | None:
        """Arrivals per second since the oldest sample that is kept; None when there is none to compare with."""
        while self._samples and self._samples[0].at < sample.at - self._keep:
            self._samples.popleft()
        oldest = self._samples[0] if self._samples else None
        if not self._samples or sample.at - self._samples[-1].at >= 1.0:
            self._samples.append(sample)
        if oldest is None or sample.at - oldest.at < self._least:
            return None
        return arrivals(oldest, sample) / (sample.at - oldest.at)


class ScalingBounds(Struct, frozen=True, kw_only=True):
    """Within which a fleet is kept, and how fast it changes."""

    least: int = 0
    most: int = 10
    step: int = 4  # workers at a time, up or down
    cooldown: float = 60.0  # seconds for which fewer must have been wanted before any leaves


class Scaler:
    """Decides a fleet's size step by step: up as soon as more is wanted, down when that has lasted."""

    def __init__(self, bounds: ScalingBounds) -> None:
        self._bounds = bounds
        self._wanted: deque[tuple[float, int]] = deque()
        self._since: float | None = None  # when it looked first

    def size(self, now: float, current: int, desired: int) -> int:
        """What the fleet's size should be now."""
        bounds = self._bounds
        bounded = max(bounds.least, min(bounds.most, desired))
        self._wanted.append((now, bounded))
        self._since = now if self._since is None else self._since
        while self._wanted[0][0] < now - bounds.cooldown:
            self._wanted.popleft()
        if bounded >= current:
            return min(bounded, current + bounds.step)
        highest = max(size for _, size in self._wanted)
        if now - self._since < bounds.cooldown and current <= bounds.most:
            return current
        return max(min(highest, current), current - bounds.step)
