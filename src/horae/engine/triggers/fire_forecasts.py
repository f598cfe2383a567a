"""Forecasts: the numbers of coming fires by spans of time, counted in the background for namespaces that users look at.

Timers are counted in the order of their next fire, for a limited time. If timers are left uncounted, only the spans
from the next fire of the first uncounted timer on may have more fires than were counted.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from operator import add
from uuid import UUID

from msgspec import Struct

from horae.engine.service import Alarm, Wait
from horae.engine.triggers.trigger_calendars import timetable_of
from horae.env import SECOND, Env, Instant
from horae.errors import HoraeError
from horae.model.executions.tally import begin_of
from horae.model.triggers.calendars.compiled import Calendar
from horae.model.triggers.decisions.future_fires import count_future_fires
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Timed, Trigger
from horae.store.contract import Store
from horae.store.triggers import calendars, fire_reads
from horae.store.triggers.triggers import Timer

STEP, SLOTS = 1800, 24  # seconds in a span, and spans in a forecast
BATCH = 500  # timers read by one statement
AT_FIRST = 0.04  # the longest time for a count during a request, in seconds
AT_LEAST = 60.0  # the least time between two counts of a namespace, in seconds
AT_MOST = 2.0  # the longest time for a count in the background, in seconds
IN_A_ROW = 0.005  # seconds of computing before the event loop gets its turn
SHARE = 50  # counting takes at most 1/50 of the time
WATCHED = 600.0  # seconds for which a namespace is counted after a request
FIRST = UUID(int=0)


class FireForecast(Struct, frozen=True):
    """The counted fires between edges of time."""

    edges: Sequence[Instant]
    counts: Sequence[int]
    cut: Instant | None = None  # from this instant on there may be more fires

    @property
    def spans(self) -> list[tuple[Instant, int, bool]]:
        """The start of each span, the number of its fires, and whether there may be more."""
        return [
            (low, count, self.cut is not None and self.cut < high)
            for (low, high), count in zip(pairwise(self.edges), self.counts, strict=True)
        ]


class _Watched(Struct):
    ahead: FireForecast
    asked: float  # monotonic time of the last request
    due: float  # monotonic time of the next count


class FireForecasts:
    """Coming fires of whole namespaces by half hours.

    As a service, it renews the forecasts that were requested lately.
    """

    name = "fire-forecasts"

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store
        self._watched: dict[int, _Watched] = {}
        self.alarm = Alarm()

    async def of(self, namespace: int) -> FireForecast:
        """Return the fires by half hours from the present one on.

        If there are many timers, the first request gets an incomplete count (see `FireForecast.cut`).
        """
        now = self._env.clock.monotonic()
        known = self._watched.get(namespace)
        if known is None or known.ahead.edges[0] != begin_of(self._env.now(), STEP):
            ahead = await self._count(namespace, AT_FIRST)
            known = self._watched[namespace] = _Watched(ahead, now, now if ahead.cut else now + AT_LEAST)
            if ahead.cut:
                self.alarm.ring()
        known.asked = now
        return known.ahead

    async def step(self) -> Wait:
        """Renew the forecasts of namespaces that were requested lately."""
        now = self._env.clock.monotonic()
        self._watched = {
            namespace: watched for namespace, watched in self._watched.items() if watched.asked > now - WATCHED
        }
        for namespace, watched in list(self._watched.items()):
            if watched.due <= now:
                begun = self._env.clock.monotonic()
                watched.ahead = await self._count(namespace, AT_MOST)
                ended = self._env.clock.monotonic()
                watched.due = ended + max(AT_LEAST, SHARE * (ended - begun))
        return max(1.0, min((watched.due for watched in self._watched.values()), default=now + AT_LEAST) - now)

    async def _count(self, namespace: int, seconds: float) -> FireForecast:
        begin = begin_of(self._env.now(), STEP)
        edges = [begin + place * STEP * SECOND for place in range(SLOTS + 1)]
        return await count_coming(self._store, self._env, namespace, None, edges, seconds)


class Pace:
    """Ends a long computation after some seconds. Until then, it often gives the event loop its turn."""

    def __init__(self, env: Env, seconds: float) -> None:
        self._clock = env.clock
        self._until = self._clock.monotonic() + seconds
        self._rest_at = self._clock.monotonic() + IN_A_ROW

    async def is_over(self) -> bool:
        """Return whether the time is over; if not, let other tasks run when it is their turn."""
        now = self._clock.monotonic()
        if now > self._until:
            return True
        if now > self._rest_at:
            await self._clock.sleep(0)
            self._rest_at = self._clock.monotonic() + IN_A_ROW
        return False


async def count_coming(
    store: Store, env: Env, namespace: int, job: UUID | None, edges: Sequence[Instant], seconds: float
) -> FireForecast:
    """Count the coming fires of a namespace or of one job between successive edges."""
    counting = _Counting(store, namespace, edges)
    place: fire_reads.Place | None = (-(1 << 62), FIRST)
    pace = Pace(env, seconds)
    while place is not None:
        after = place
        rows = await store.read(lambda: fire_reads.upcoming_timers(namespace, job, after, edges[-1], BATCH))  # noqa: B023
        place = None
        for due in rows:
            if await pace.is_over():
                return FireForecast(edges, counting.counts(), due.timer.next_fire_at)
            if isinstance(due.timer.trigger, Timed):
                await counting.add(due.timer)
        if len(rows) == BATCH:
            last = rows[-1].timer
            place = last.next_fire_at or 0, last.id
    return FireForecast(edges, counting.counts())


class _Counting:
    """Counts fires of timers. Equal timers are counted once, and the result is multiplied by their number."""

    def __init__(self, store: Store, namespace: int, edges: Sequence[Instant]) -> None:
        self._store, self._namespace, self._edges = store, namespace, edges
        self._known: dict[tuple[str, ...], Calendar | None] = {}
        self._alike: dict[tuple[Trigger, Rules], list[int]] = {}
        self._times: Counter[tuple[Trigger, Rules]] = Counter()
        self._single = [0] * (len(edges) - 1)

    async def add(self, timer: Timer) -> None:
        key = _likeness(timer, self._edges[0])
        if key is None:
            found = await _count_timer(self._store, self._namespace, timer, self._edges, self._known)
            self._single = list(map(add, self._single, found))
            return
        if key not in self._alike:
            self._alike[key] = await _count_timer(self._store, self._namespace, timer, self._edges, self._known)
        self._times[key] += 1

    def counts(self) -> list[int]:
        """Return the fires of all timers together."""
        counts = self._single.copy()
        for key, found in self._alike.items():
            times = self._times[key]
            for place, number in enumerate(found):
                if number:
                    counts[place] += number * times
        return counts


def _likeness(timer: Timer, begin: Instant) -> tuple[Trigger, Rules] | None:
    """Return the key of timers with equal counts; None for timers with calendars, limited or undecided fires."""
    rules = timer.rules
    is_plain = not rules.calendars and rules.max_fires is None and timer.decided_through < begin - rules.offset
    return (timer.trigger, rules) if is_plain else None


async def _count_timer(
    store: Store,
    namespace: int,
    timer: Timer,
    edges: Sequence[Instant],
    known: dict[tuple[str, ...], Calendar | None],
) -> list[int]:
    names, timetable = timer.rules.calendars, None
    if names:
        if names not in known:
            wanted = namespace, names
            known[names] = (await store.read(lambda: calendars.compiled([wanted], calendars.FOREVER))).get(wanted)
        calendar = known[names]
        timetable = None if calendar is None else timetable_of(timer, calendar, edges[-1])
    try:
        return count_future_fires(timer.trigger, timer.rules, timer.decided_through, timer.fired, edges, timetable)
    except HoraeError:  # its fires cannot be computed; the trigger's own view shows the error
        return [0] * (len(edges) - 1)
