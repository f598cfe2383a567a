"""How long executions take here, as measured: it sizes chunks and decides what is worth fetching ahead."""

from math import ceil
from uuid import UUID

from horae.env import SECOND, Micros
from horae.model.definitions.job import Spec

CHUNK_SECONDS = 0.006  # of work in one hop to a thread
AHEAD_SECONDS = 0.1  # of work held ready on every slot
MAX_CHUNK = 1024
MAX_AHEAD = 4096  # items beyond idle slots, held and asked for
TINY = 100e-6  # shorter than a thread switch: more threads would only fight over the interpreter
MOST_JOBS = 10_000  # whose durations are remembered
LONG_TIMEOUT: Micros = 10 * SECOND


class DurationEstimates:
    """Measured durations per job. It belongs to the process and outlives its sessions."""

    def __init__(self) -> None:
        self._seconds: dict[UUID, float] = {}

    def note(self, job: UUID, count: int, seconds: float) -> None:
        """Remember that this many executions took this long, one after another."""
        mean = seconds / count
        known = self._seconds.get(job)
        if known is None:
            self._remember(job, mean)
        else:
            self._seconds[job] = known + (mean - known) * (0.5 if mean > known else 0.3)

    def note_running(self, job: UUID, seconds: float) -> None:
        """Remember that an execution has already run this long: what was short is so no more."""
        if seconds > self._seconds.get(job, 0.0):
            self._remember(job, seconds)

    def _remember(self, job: UUID, seconds: float) -> None:
        self._seconds[job] = seconds
        if len(self._seconds) > MOST_JOBS:
            del self._seconds[next(iter(self._seconds))]

    def expected(self, job: UUID) -> float | None:
        """Seconds an execution of this job takes, if known."""
        return self._seconds.get(job)

    def is_tiny(self, job: UUID) -> bool:
        """Whether executions are so short that a second thread would not help."""
        known = self._seconds.get(job)
        return known is not None and known < TINY

    def chunk(self, job: UUID) -> int:
        """How many executions one slot takes at once: one while the duration is unknown."""
        known = self._seconds.get(job)
        return 1 if known is None else max(1, min(MAX_CHUNK, int(CHUNK_SECONDS / max(known, 1e-9))))

    def ahead(self, job: UUID, slots: int) -> int:
        """How many executions to hold ready beyond what runs: none while the duration is unknown or long."""
        known = self._seconds.get(job)
        if known is None or known > AHEAD_SECONDS:
            return 0
        return max(0, min(MAX_AHEAD, int(AHEAD_SECONDS * slots / max(known, 1e-9))))

    def slots(self, job: UUID, count: int) -> int:
        """How many slots this many ready executions will keep busy for about the time they may be held ready."""
        known = self._seconds.get(job)
        if known is None or known > AHEAD_SECONDS:
            return count
        return min(count, ceil(count * known / AHEAD_SECONDS))


def may_fetch_ahead(spec: Spec) -> bool:
    """Whether items of a job may be held beyond idle slots once they are known to be short.

    What takes more than a slot is granted where there is room for it, and what is spread, to whom it is due.
    """
    if spec.delivery == "at-most-once" or spec.cost or spec.spread:
        return False
    return spec.timeout is None or spec.timeout <= LONG_TIMEOUT
