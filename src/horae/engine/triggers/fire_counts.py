"""Counts of past and coming fires by minute, hour or day, for a page that shows thousands of them in a calendar.

The past is counted in the ledger and the statistics. Coming fires are counted for a limited time only.
"""

from bisect import bisect_right
from collections.abc import Mapping
from datetime import timedelta
from itertools import pairwise
from typing import Protocol
from uuid import UUID

from msgspec import structs

from horae.engine.base.refs import find_job
from horae.engine.triggers.fire_forecasts import count_coming
from horae.env import SECOND, Env, Instant
from horae.errors import BadInput
from horae.model.base.days import begin_of_day, day_at, days_between, parse_day
from horae.model.base.instant import format_instant
from horae.model.executions.tally import HOUR, OutcomeCounts
from horae.model.triggers.fire_view import FireCountsView, FireCountView
from horae.store.contract import Store
from horae.store.triggers import fire_reads

MOST_DAYS = {"day": 62, "hour": 8, "minute": 1}
STEPS = {"hour": HOUR * SECOND, "minute": 60 * SECOND}
MOST_FATES = 50_000  # rows of the ledger that are counted
SLOTS = {"day": 900 * SECOND, "hour": 900 * SECOND, "minute": 60 * SECOND}  # all zones' hours begin at multiples of it
SECONDS = 1.0  # the longest time for counting coming fires
MISSED = ("skipped-misfire", "coalesced")
RAN = ("fired", "backfilled")


class EndedCounts(Protocol):
    """Counts the executions of a namespace or of one job that ended in each hour between two instants."""

    async def __call__(
        self, store: Store, namespace: int, job: UUID | None, since: Instant, until: Instant
    ) -> Mapping[Instant, OutcomeCounts]: ...


class FireCounts:
    """Counts the fires of a namespace or of one job."""

    def __init__(self, env: Env, store: Store, ended: EndedCounts | None = None) -> None:
        """Make a counter of fires; `ended` counts ended executions, None while statistics are disabled."""
        self._env, self._store, self._ended = env, store, ended

    async def of(
        self,
        namespace: int,
        *,
        since: str | None = None,
        until: str | None = None,
        by: str = "day",
        zone: str = "UTC",
        job: str | None = None,
    ) -> FireCountsView:
        """Return counts by minute, hour or day, for the days from `since` through `until`; by default today."""
        now = self._env.now()
        today = day_at(zone, now)
        first = today if since is None else parse_day(zone, since, "from")
        last = first if until is None else parse_day(zone, until, "to")
        if not 0 <= (last - first).days < MOST_DAYS[by]:
            detail = f"{first} to {last} is not a window of 1 to {MOST_DAYS[by]} days."
            remedy = "Give a shorter window" + ("." if by == "day" else ", or count by day.")
            raise BadInput(detail, remedy, field="to")
        job_id = None if job is None else (await find_job(self._store, namespace, job)).job.id
        edges = [begin_of_day(zone, day) for day in days_between(first, last + timedelta(days=1))]
        if by in STEPS:
            edges = [*range(edges[0], edges[-1], STEPS[by]), edges[-1]]
        table = _Table(edges)
        notes: list[str] = []
        if edges[0] < now:
            await self._past(namespace, job_id, min(now, edges[-1]), table, by, notes)
        if edges[-1] > now:
            await self._coming(namespace, job_id, table, notes)
        items = [item for item in table.items if by != "minute" or _is_any(item)]
        return FireCountsView(timezone=zone, by=by, items=items, complete=not notes, notes=notes)

    async def _past(
        self, namespace: int, job: UUID | None, now: Instant, table: "_Table", by: str, notes: list[str]
    ) -> None:
        begin, slot = table.edges[0], SLOTS[by]
        fates = await self._store.read(
            lambda: fire_reads.count_dispositions(namespace, job, begin, now + SECOND, slot, MOST_FATES)
        )
        for at, disposition, number in fates:
            if (fate := _fate(disposition)) is not None:
                table.add(at, fate, number)
        if sum(number for _, _, number in fates) == MOST_FATES:
            earliest = format_instant(min(at for at, _, _ in fates))
            notes.append(
                f"Only the newest {MOST_FATES} rows of the ledger are counted: before {earliest} there are more."
            )
        if by == "minute":
            return  # ended executions are counted by the hour only
        if self._ended is None:
            notes.append("Ends of executions are not counted, because statistics are switched off.")
            return
        for at, ended in (await self._ended(self._store, namespace, job, begin, now)).items():
            table.add(at, "success", ended.success)
            table.add(at, "failed", ended.failed)

    async def _coming(self, namespace: int, job: UUID | None, table: "_Table", notes: list[str]) -> None:
        now = self._env.now()
        edges = [now, *(edge for edge in table.edges if edge > now)] if table.edges[0] < now else table.edges
        ahead = await count_coming(self._store, self._env, namespace, job, edges, SECONDS)
        for at, number, more in ahead.spans:
            table.add(at, "planned", number, more)
        if ahead.cut is not None:
            notes.append(f"From {format_instant(ahead.cut)} on there may be more coming fires than were counted.")


def _is_any(item: FireCountView) -> bool:
    return bool(item.fired or item.missed or item.skipped or item.planned or item.more)


def _fate(disposition: str) -> str | None:
    """Return the count to which a fire is added. A moved fire runs at another instant and is counted there only."""
    if disposition == "moved":
        return None
    return "fired" if disposition in RAN else "missed" if disposition in MISSED else "skipped"


class _Table:
    """A table of counts that is being filled."""

    def __init__(self, edges: list[Instant]) -> None:
        self.edges = edges
        self.items = [
            FireCountView(at=format_instant(low), until=format_instant(high)) for low, high in pairwise(edges)
        ]

    def add(self, at: Instant, field: str, number: int, more: bool = False) -> None:
        place = bisect_right(self.edges, at) - 1
        if 0 <= place < len(self.items):
            known = self.items[place]
            self.items[place] = structs.replace(
                known, more=known.more or more, **{field: getattr(known, field) + number}
            )
