"""Past and coming fires in a window, across jobs: first rows of the ledger, then fires that are still to be decided.

Coming fires are merged from the timers in the order of their due times. So the cost of a page depends on its fires and
on the timers that are due before its end, not on the number of triggers.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, get_args
from uuid import UUID

from horae.engine.base.refs import find_job
from horae.engine.definitions.job_lists import check_choice
from horae.engine.triggers.fire_forecasts import Pace
from horae.engine.triggers.trigger_calendars import timetable_of
from horae.env import Env, Instant, Micros
from horae.errors import BadInput
from horae.model.base.cursor import check_limit, make_cursor, read_cursor
from horae.model.base.duration import DAY, HOUR
from horae.model.base.instant import format_instant, parse_instant
from horae.model.fields.values import a_text
from horae.model.triggers.calendars.compiled import Calendar
from horae.model.triggers.decisions.count import count_fires
from horae.model.triggers.decisions.decide import Disposition, upcoming
from horae.model.triggers.decisions.future_fires import fires_left
from horae.model.triggers.decisions.rules import due_at
from horae.model.triggers.decisions.timetable import Timetable
from horae.model.triggers.decisions.values import Timed
from horae.model.triggers.events.decide import EventDisposition
from horae.model.triggers.fire_view import FirePage, FireView
from horae.store.contract import Store
from horae.store.definitions import job_reads
from horae.store.triggers import calendars, fire_reads
from horae.store.triggers.dependencies.dependency_fires import DependencyDisposition
from horae.store.triggers.fire_reads import LedgerEntry, Place, UpcomingTimer
from horae.store.triggers.triggers import Timer

PLANNED = "planned"
_DECIDED = (Disposition, EventDisposition, DependencyDisposition)
DISPOSITIONS = tuple(dict.fromkeys((PLANNED, *(name for each in _DECIDED for name in get_args(each)))))
MOST_SCANNED = 20_000  # ledger rows that are read for one page at most, if few of them match the filter
MOST_TIMERS = 10_000  # timers read for one page of coming fires
SECONDS = 2.0  # the longest time for computing the coming fires of one page
BATCH = 1_000
SLOW = "Computing them takes too long."
FAR = 366 * DAY
FIRST = UUID(int=0)

Cursor = tuple[str, Instant, UUID]
# Due time, timer's id, nominal time, timer, timetable, and fires left.
Waiting = tuple[Instant, UUID, Instant, UpcomingTimer, Timetable | None, int | None]


class Fires:
    """Reads past and coming fires."""

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store

    async def list(
        self,
        namespace: int,
        *,
        since: str | None = None,
        until: str | None = None,
        job: str | None = None,
        trigger: str | None = None,
        disposition: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> FirePage:
        """Return fires in [since, until), by default from an hour ago to a day ahead: decided ones, then coming ones.

        With the disposition `planned`, return the next fires within a year: a distant page costs no more than a near
        one.
        """
        now = self._env.now()
        ahead = FAR if disposition == PLANNED else DAY
        begin = now - HOUR if since is None else parse_instant(since, field="from")
        end = max(now, begin) + ahead if until is None else parse_instant(until, field="to")
        if end <= begin:
            raise BadInput("`to` is not after `from`.", "Give a later instant.", field="to")
        if disposition is not None:
            check_choice(disposition, "disposition", DISPOSITIONS)
        a_text(trigger or "", "trigger", most=256)
        job_id = None if job is None else (await find_job(self._store, namespace, job)).job.id
        listing = _Listing(self._env, self._store, namespace, job_id, trigger, end, check_limit(limit))
        place: Cursor = ("decided", begin - 1, FIRST)
        if cursor is not None:
            place = read_cursor(cursor, tuple[str, Instant, UUID])
        if place[0] == "decided" and disposition != PLANNED:
            goes_on = await listing.decided(place[1:], disposition)
            if goes_on is not None:
                return listing.page(("decided", *goes_on))
        if disposition not in (None, PLANNED):
            return listing.page(None)
        if place[0] == "decided":
            place = ("planned", begin - 1, FIRST)
        goes_on = await listing.planned(place[1:], await self._name(namespace))
        return listing.page(None if goes_on is None else ("planned", *goes_on))

    async def _name(self, namespace: int) -> str:
        return await self._store.read(lambda: job_reads.namespace_name(namespace))


class _Listing:
    """A page that is being filled."""

    def __init__(
        self, env: Env, store: Store, namespace: int, job: UUID | None, trigger: str | None, end: Instant, limit: int
    ) -> None:
        self._env = env
        self._store, self._namespace, self._job, self._trigger = store, namespace, job, trigger
        self._end, self._limit = end, limit
        self._calendars: dict[tuple[str, ...], Calendar | None] = {}
        self.items: list[FireView] = []
        self.notes: list[str] = []

    def page(self, cursor: Cursor | None) -> FirePage:
        following = None if cursor is None else make_cursor(cursor)
        return FirePage(items=self.items, next_cursor=following, complete=not self.notes, notes=self.notes)

    async def decided(self, after: Place, disposition: str | None) -> Place | None:
        """Add rows of the ledger; return the place to continue, or None when there are no more."""
        for _ in range(0, MOST_SCANNED, BATCH):
            rows = await self._rows(fire_reads.ledger_entries, after)
            for row in rows:
                if len(self.items) == self._limit:
                    return after
                after = (row.run.last, row.trigger_id)
                if self._trigger in (None, row.name) and disposition in (None, row.run.disposition):
                    self.items.append(_shown(row))
            if len(rows) < BATCH:
                return None
        return after

    async def planned(self, after: Place, namespace: str) -> Place | None:
        """Add coming fires: the next fire of each timer, merged with the fires that follow it."""
        heap: list[Waiting] = []
        loaded: Place | None = (-(1 << 62), FIRST)
        read, pace = 0, Pace(self._env, SECONDS)
        while True:
            while loaded is not None and (not heap or heap[0][:2] > loaded):
                if read >= MOST_TIMERS:
                    self._cut(loaded[0], f"More than {MOST_TIMERS} triggers are due earlier.")
                    return None
                rows = await self._rows(fire_reads.upcoming_timers, loaded)
                read += len(rows)
                loaded = _place(rows[-1]) if len(rows) == BATCH else None
                if (left_out := await self._add(heap, rows, after[0], pace)) is not None:
                    self._cut(left_out, SLOW)
                    return None
            if not heap or heap[0][0] >= self._end:
                return None
            if await pace.is_over():
                self._cut(heap[0][0], SLOW)
                return None
            at, timer_id, nominal, due, timetable, left = heappop(heap)
            if (at, timer_id) > after:
                if len(self.items) == self._limit:
                    return after
                moved = at - due.timer.rules.offset - nominal
                self.items.append(_planned(due, nominal, moved, f"{namespace}/{due.job_name}"))
                after = (at, timer_id)
            _push(heap, due, timetable, nominal, left)

    async def _add(self, heap: list[Waiting], rows: list[UpcomingTimer], since: Instant, pace: Pace) -> Instant | None:
        """Push the first fire of each timer that may be due at an instant or later.

        If that takes too long, return the instant from which on fires are left out.
        """
        for row in rows:
            if await pace.is_over():
                return min([_place(row)[0], *(waiting[0] for waiting in heap[:1])])
            timer = row.timer
            if isinstance(timer.trigger, Timed) and self._trigger in (None, timer.name):
                timetable, at = await self._timetable(timer), since - timer.rules.offset
                if timetable is not None:
                    at = min(timetable.boundary(at), self._end)
                begin = max(at - 1, timer.decided_through)
                left = fires_left(timer.trigger, timer.rules, timer.fired, timer.decided_through, begin, timetable)
                _push(heap, row, timetable, begin, left)
        return None

    async def _timetable(self, timer: Timer) -> Timetable | None:
        """Return a timer's fires by its calendars; None without calendars, or if they cannot be read."""
        if not timer.rules.calendars:
            return None
        names = timer.rules.calendars
        if names not in self._calendars:
            wanted = (self._namespace, names)
            known = await self._store.read(lambda: calendars.compiled([wanted], calendars.FOREVER))
            self._calendars[names] = known.get(wanted)
        calendar = self._calendars[names]
        return None if calendar is None else timetable_of(timer, calendar, self._end)

    def _cut(self, at: Instant, cause: str) -> None:
        """Note that the fires that are due at an instant or later are left out."""
        self.notes.append(
            f"Fires from {format_instant(at)} on are left out: {cause} Ask for a shorter window, or for one job."
        )

    async def _rows(self, read: Callable[..., Any], after: Place) -> list[Any]:
        return await self._store.read(lambda: read(self._namespace, self._job, after, self._end, BATCH))


def _place(due: UpcomingTimer) -> Place:
    assert due.timer.next_fire_at is not None
    return due.timer.next_fire_at, due.timer.id


def _push(
    heap: list[Waiting], timer_row: UpcomingTimer, timetable: Timetable | None, after: Instant, left: int | None
) -> None:
    """Push the next fire of a timer in the order of due times; nothing when it has no fires left."""
    if left == 0:
        return
    nominal = (
        upcoming(timer_row.timer.trigger, timer_row.timer.rules, after) if timetable is None else timetable.next(after)
    )
    due = nominal
    if nominal is not None and timetable is not None:
        # A fire beyond the horizon may follow another fire.
        due = timetable.due(nominal) if timetable.runs(nominal) else None
    if nominal is not None and due is not None:
        heappush(
            heap,
            (
                due + timer_row.timer.rules.offset,
                timer_row.timer.id,
                nominal,
                timer_row,
                timetable,
                None if left is None else left - 1,
            ),
        )


def _planned(timer_row: UpcomingTimer, nominal: Instant, moved: Micros, key: str) -> FireView:
    timer = timer_row.timer
    return FireView(
        at=format_instant(nominal),
        due_at=format_instant(due_at(timer.rules, f"{key}/{timer.name}", nominal) + moved),
        job_id=timer_row.job,
        job=timer_row.job_name,
        trigger=timer.name,
        disposition=PLANNED,
        cause="to come",
    )


def _shown(row: LedgerEntry) -> FireView:
    run = row.run
    single = run.first == run.last
    return FireView(
        at=format_instant(run.first),
        until=None if single else format_instant(run.last),
        count=1 if single or row.trigger is None else count_fires(row.trigger, row.rules, run.first - 1, run.last + 1),
        job_id=row.job,
        job=row.job_name,
        trigger=row.name,
        disposition=run.disposition,
        cause=run.cause,
        execution_id=row.execution,
        decided_at=format_instant(row.decided_at),
    )
