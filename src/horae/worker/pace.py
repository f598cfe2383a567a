"""Measured durations of executions. They determine the sizes of chunks, and the jobs whose items are fetched ahead."""

from math import ceil
from uuid import UUID

from horae.env import SECOND, Micros
from horae.model.definitions.job import Spec

CHUNK_SECONDS = 0.006  # seconds of work in a chunk, so that the switch to a thread is worth its cost
AHEAD_SECONDS = 0.1  # seconds of work that is held ready for every slot
MAX_CHUNK = 1024
MAX_AHEAD = 4096  # items that are held or requested in addition to those for idle slots
TINY = 100e-6  # seconds; shorter than a thread switch: more threads would only compete for the interpreter
MOST_JOBS = 10_000  # jobs whose durations are remembered
LONG_TIMEOUT: Micros = 10 * SECOND


class DurationEstimates:
    """Measured durations per job. They belong to the process and outlive its sessions."""

    def __init__(self) -> None:
        self._seconds: dict[UUID, float] = {}

    def note(self, job: UUID, count: int, seconds: float) -> None:
        """Update a job's estimate by the total duration of `count` executions that ran one after another."""
        mean = seconds / count
        known = self._seconds.get(job)
        if known is None:
            self._remember(job, mean)
        else:
            self._seconds[job] = known + (mean - known) * (0.5 if mean > known else 0.3)

    def note_running(self, job: UUID, seconds: float) -> None:
        """Raise a job's estimate to the time that an execution has already run: the job no longer counts as short."""
        if seconds > self._seconds.get(job, 0.0):
            self._remember(job, seconds)

    def _remember(self, job: UUID, seconds: float) -> None:
        self._seconds[job] = seconds
        if len(self._seconds) > MOST_JOBS:
            del self._seconds[next(iter(self._seconds))]

    def expected(self, job: UUID) -> float | None:
        """Return the seconds that an execution of this job takes, if known."""
        return self._seconds.get(job)

    def is_tiny(self, job: UUID) -> bool:
        """Return whether executions are so short that a second thread would not help."""
        known = self._seconds.get(job)
        return known is not None and known < TINY

    def chunk_size(self, job: UUID) -> int:
        """Return the number of executions that one slot takes at once: one while the duration is unknown."""
        known = self._seconds.get(job)
        return 1 if known is None else max(1, min(MAX_CHUNK, int(CHUNK_SECONDS / max(known, 1e-9))))

    def prefetch_count(self, job: UUID, slots: int) -> int:
        """Return the number of executions to hold ready beyond those that run.

        It is 0 while the duration is unknown or long.
        """
        known = self._seconds.get(job)
        if known is None or known > AHEAD_SECONDS:
            return 0
        return max(0, min(MAX_AHEAD, int(AHEAD_SECONDS * slots / max(known, 1e-9))))

    def slots_needed(self, job: UUID, count: int) -> int:
        """Return the number of slots that this many ready executions keep busy for `AHEAD_SECONDS`."""
        known = self._seconds.get(job)
        if known is None or known > AHEAD_SECONDS:
            return count
        return min(count, ceil(count * known / AHEAD_SECONDS))


def may_fetch_ahead(spec: Spec) -> bool:
    """Return whether items of a job may be held ready for busy slots, once the job is known to be short.

    Executions that use more than a slot may not, because they are granted to a worker that has room at that moment.
    Executions with `spread` may not, because they are granted to the worker whose turn it is.
    """
    if spec.delivery == "at-most-once" or spec.cost or spec.spread:
        return False
    return spec.timeout is None or spec.timeout <= LONG_TIMEOUT
