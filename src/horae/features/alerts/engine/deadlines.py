"""Executions that will probably miss their deadlines.

This is estimated from the usual durations of jobs (the 95th percentile in the last week) and the probable start times
of queued executions.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import islice
from uuid import UUID

from horae.env import SECOND, Env, Instant, Micros
from horae.errors import HoraeError, StoreUnavailable
from horae.features.alerts.model.findings import ExpectedRun
from horae.features.alerts.model.rule import DeadlineRisk
from horae.features.alerts.store import reads
from horae.features.alerts.store.reads import DueParcel
from horae.features.statistics.store.reads import of_jobs
from horae.model.base.duration import MINUTE, WEEK, format_duration
from horae.model.base.ids import execution_id, parcel_of
from horae.model.base.instant import format_instant
from horae.store.contract import Store

SHARE = 0.95  # the percentile that is the usual duration
READ_AGAIN = 300.0  # seconds until a usual duration is read again
KEPT = 60.0  # seconds until an estimate expires
MOST_ESTIMATES = 20  # new estimates per round; each is expensive, because it reads all gates of an execution
MOST_KNOWN = 10_000  # cached estimates, and cached usual durations
MISSED = 60 * MINUTE  # unfinished executions are found until so long after their deadlines
FARTHEST = 24 * 60 * MINUTE  # deadlines farther in the future than this are not checked
GROWTH = 16  # each further reading of a job's parcels reads so many times more
PAUSE_FACTOR = 20  # the least time between two searches, as a multiple of the duration of the last search
EstimateStart = Callable[[int, UUID], Awaitable[Instant | None]]


class UsualDurations:
    """A cache of the usual durations of jobs. Rules about long executions and deadlines use it."""

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store
        self._known: dict[UUID, tuple[float, Micros | None]] = {}

    async def get(self, job: UUID) -> Micros | None:
        """Return the usual duration of a job, or None if no execution ended in the last week."""
        now = self._env.clock.monotonic()
        until, usual = self._known.get(job, (0.0, None))
        if until > now:
            return usual
        since = self._env.now() - WEEK
        tally = (await self._store.read(lambda: of_jobs([job], since)))[job]
        found = tally.durations.percentile(SHARE)
        usual = None if found is None else int(found)
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[job] = (now + READ_AGAIN, usual)
        return usual


class StartEstimates:
    """The probable start times of queued executions, as `explain` estimates them. They are cached for a minute."""

    def __init__(self, env: Env, estimate_start: EstimateStart) -> None:
        self._env, self._estimate_start = env, estimate_start
        self._known: dict[UUID, tuple[float, Micros]] = {}  # expiry (monotonic), and the estimated wait until the start
        self._left = MOST_ESTIMATES

    def begin(self) -> None:
        """Begin a round: allow MOST_ESTIMATES new estimates again, and clear the cache if it is too large."""
        self._left = MOST_ESTIMATES
        if len(self._known) > MOST_KNOWN:
            self._known.clear()

    async def get(self, namespace: int, execution: UUID) -> Instant:
        """Return the probable start of an execution.

        Without an estimate, return the present time. If the round has made all its new estimates, use an expired one.
        """
        now, at = self._env.now(), self._env.clock.monotonic()
        until, wait = self._known.get(execution, (0.0, 0))
        if until <= at and self._left > 0:
            self._left -= 1
            wait = max(0, (await self._estimate(namespace, execution) or now) - now)
            self._known[execution] = (at + KEPT, wait)
        return now + wait

    async def _estimate(self, namespace: int, execution: UUID) -> Instant | None:
        try:
            return await self._estimate_start(namespace, execution)
        except StoreUnavailable:
            raise
        except HoraeError:  # the execution has ended meanwhile
            return None


class NearDeadlines:
    """Unfinished parcels with a deadline within the next day or the last hour.

    The longer a search takes, the longer its result is cached.
    """

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store
        self._found: list[DueParcel] = []
        self._search_at = 0.0

    async def find(self) -> list[DueParcel]:
        """Search for the parcels, or return the result of the last search while it is cached, for at most a minute."""
        began, now = self._env.clock.monotonic(), self._env.now()
        if began >= self._search_at:
            self._found = await self._store.read(lambda: reads.nearing_deadlines(now - MISSED, now + FARTHEST, now))
            took = self._env.clock.monotonic() - began
            self._search_at = began + min(KEPT, took * PAUSE_FACTOR)
        return self._found


class DeadlineCheck:
    """The check of the parcels with deadlines by one rule."""

    def __init__(
        self,
        store: Store,
        durations: UsualDurations,
        starts: StartEstimates,
        rule: DeadlineRisk,
        namespace: int,
        now: Instant,
    ) -> None:
        self._store, self._durations, self._starts = store, durations, starts
        self._rule, self._namespace, self._now = rule, namespace, now

    async def missed(
        self, due: Mapping[UUID, dict[UUID, DueParcel]], current: set[UUID]
    ) -> dict[UUID, tuple[UUID, str]]:
        """Return, for each job with executions that will miss their deadlines, one of these with a message.

        `due` has the parcels by job. `current` has the ids of parcels that were read in this round. The data of all
        other parcels comes from a cache, so a parcel is read again before it is reported.
        """
        found: dict[UUID, tuple[UUID, str]] = {}
        left, some = list(due), 1
        while left:
            doubtful: list[UUID] = []
            parcels: set[UUID] = set()
            for job in left:
                missed = await self._first_missed(due[job].values())
                if missed is not None and (parcel := parcel_of(missed[0])) not in current:
                    doubtful.append(job)
                    parcels |= {parcel, *islice((one for one in _in_order(due[job]) if one not in current), some)}
                elif missed is not None:
                    found[job] = missed
            await self._read_again({job: due[job] for job in doubtful}, parcels)
            current |= parcels
            left, some = doubtful, some * GROWTH
        return found

    async def _read_again(self, due: Mapping[UUID, dict[UUID, DueParcel]], parcels: set[UUID]) -> None:
        if not parcels:
            return
        present = await self._store.read(lambda: reads.still_due(parcels, self._now))
        by_parcel = {one.parcel: one for one in present}
        for of_job in due.values():
            for parcel in of_job.keys() & parcels:
                if parcel in by_parcel:
                    of_job[parcel] = by_parcel[parcel]
                else:
                    del of_job[parcel]

    async def _first_missed(self, due: Iterable[DueParcel]) -> tuple[UUID, str] | None:
        """Return one of a job's executions that will miss its deadline, with a message; None if there is none.

        The start is estimated only for the queued executions with the earliest and the latest deadline.
        """
        some = sorted(due, key=lambda one: (one.deadline, one.parcel))
        for one in some:
            if message := await self._misses(one, one.begins_at):
                return execution_id(one.parcel, one.item), message
        queued = [one for one in some if one.queued is not None]
        for one in queued[:1] + queued[1:][-1:]:
            execution = execution_id(one.parcel, one.queued or 0)
            if message := await self._misses(
                one, max(one.begins_at, await self._starts.get(self._namespace, execution))
            ):
                return execution, message
        return None

    async def _misses(self, due: DueParcel, begins_at: Instant) -> str | None:
        """Return a message if an execution that begins at `begins_at` will miss its deadline, otherwise None."""
        deadline = format_instant(due.deadline)
        if due.deadline <= self._now:
            return f"an execution has missed its deadline {deadline}"
        lasts = await self._durations.get(due.job)
        if lasts is None:
            return None
        late = ExpectedRun(due.deadline, begins_at, lasts).overrun(self._rule.after, self._now)
        if late is None:
            return None
        waits = f"begins in {duration_text(begins_at - self._now)}, " if begins_at > self._now else ""
        estimate = f"an execution {waits}takes {duration_text(lasts)}"
        return f"{estimate} and is going to miss its deadline {deadline} by {duration_text(late)}"


def _in_order(due: Mapping[UUID, DueParcel]) -> list[UUID]:
    return sorted(due, key=lambda parcel: (due[parcel].deadline, parcel))


def duration_text(micros: Micros) -> str:
    """Format a duration, rounded down to whole seconds unless it is shorter than a second."""
    return format_duration(micros if micros < SECOND else micros // SECOND * SECOND)
