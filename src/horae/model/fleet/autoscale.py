"""The number of workers that a queue needs, and how fast a fleet grows and shrinks.

All functions are pure. The desired number is computed from the executions of a queue, its arrival and service rates,
its workers, and the target wait: the time within which queued executions should start.
"""

from collections import deque
from math import ceil

from msgspec import Struct

HEADROOM = 0.8  # largest share of slots that should be in use in the long run; above it, queues grow
DEFAULT_SLOTS = 10  # assumed slots of a worker while there is none


class ScalingSignals(Struct, frozen=True, kw_only=True):
    """The load of a queue. Times are in seconds, rates in executions per second."""

    backlog: int  # queued executions
    running: int  # running executions
    oldest_age: float = 0.0  # how long the oldest of the backlog has been queued
    arrival_rate: float = 0.0
    service_rate: float = 0.0  # executions that end per second
    duration: float | None = None  # usual duration of an execution, if known
    workers: int = 0  # workers that serve the queue and are not draining
    slots: int = 0  # the slots of these workers
    busy: int = 0  # slots in use

    @property
    def utilisation(self) -> float:
        """Return the share of the slots that is in use, by any queue."""
        return min(1.0, self.busy / self.slots) if self.slots else 0.0

    @property
    def slots_per_worker(self) -> int:
        return max(1, round(self.slots / self.workers)) if self.workers else DEFAULT_SLOTS


def desired_slots(signals: ScalingSignals, target_wait: float) -> float:
    """Return how many slots let all queued and arriving executions start within the target wait.

    N slots, of which some are busy, start N - busy executions at once, and N x wait / duration more within the wait.
    These numbers together must be at least the queued executions and the executions that arrive within the wait. In the
    long run, the slots also need headroom.
    """
    if signals.duration is None:
        return float(signals.backlog + signals.running)
    turns = target_wait / max(signals.duration, 1e-6)
    now = (signals.backlog + signals.running + signals.arrival_rate * target_wait) / (1 + turns)
    return max(now, signals.arrival_rate * signals.duration / HEADROOM)


def desired_workers(signals: ScalingSignals, target_wait: float, slots_per_worker: int | None = None) -> int:
    """Return the number of workers for the desired slots; 0 when nothing is queued, running or arriving."""
    per_worker = slots_per_worker or signals.slots_per_worker
    wanted = desired_slots(signals, target_wait)
    if wanted <= 1e-6:
        return 0
    return max(1, ceil(wanted / per_worker - 1e-6))


class BacklogSample(Struct, frozen=True):
    """The executions that a queue holds at an instant (in seconds), and the number that ended in each minute."""

    at: float
    held: int  # executions queued and running
    ended: dict[int, int]


def arrivals(before: BacklogSample, now: BacklogSample) -> float:
    """Return how many executions arrived between two samples: the growth of the queue plus the ended executions."""
    first = int(before.at // 60)
    ended = sum(count for minute, count in now.ended.items() if minute >= first)
    known = sum(count for minute, count in before.ended.items() if minute >= first)
    return max(0.0, float(now.held - before.held + ended - known))


class ArrivalMeter:
    """The arrival rate of one queue, from samples of the last minutes."""

    def __init__(self, keep: float = 120.0, least: float = 5.0) -> None:
        self._keep, self._least = keep, least  # seconds
        self._samples: deque[BacklogSample] = deque(maxlen=240)

    def rate(self, sample: BacklogSample) -> float | None:
        """Add a sample, and return the arrivals per second since the oldest sample; None while that is too recent."""
        while self._samples and self._samples[0].at < sample.at - self._keep:
            self._samples.popleft()
        oldest = self._samples[0] if self._samples else None
        if not self._samples or sample.at - self._samples[-1].at >= 1.0:
            self._samples.append(sample)
        if oldest is None or sample.at - oldest.at < self._least:
            return None
        return arrivals(oldest, sample) / (sample.at - oldest.at)


class ScalingBounds(Struct, frozen=True, kw_only=True):
    """The bounds of the number of workers in a fleet, and of the speed of its changes."""

    least: int = 0
    most: int = 10
    step: int = 4  # workers at a time, up or down
    cooldown: float = 60.0  # seconds for which fewer workers must have sufficed before the fleet shrinks


class Scaler:
    """The size of a fleet over time. It grows at once, and shrinks when fewer workers have been enough for a while."""

    def __init__(self, bounds: ScalingBounds) -> None:
        self._bounds = bounds
        self._wanted: deque[tuple[float, int]] = deque()
        self._since: float | None = None  # time of the first decision

    def size(self, now: float, current: int, desired: int) -> int:
        """Return the number of workers that the fleet should have now; `now` is in seconds."""
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
