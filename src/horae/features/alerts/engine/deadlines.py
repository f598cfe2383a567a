"""Deadlines at risk: by how long executions of a job usually take, and when those that stand in a queue begin."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import islice
from uuid import UUID

from horae.env import Env, Instant, Micros
from horae.errors import HoraeError, StoreUnavailable
from horae.features.alerts.engine.learned import Learned
from horae.features.alerts.engine.words import span
from horae.features.alerts.model.findings import Expected
from horae.features.alerts.model.rule import DeadlineRisk
from horae.features.alerts.store import facts
from horae.features.alerts.store.facts import Due
from horae.model.base.duration import MINUTE
from horae.model.base.ids import execution_id, parcel_of
from horae.model.base.instant import format_instant
from horae.store.contract import Store

KEPT = 60.0  # seconds that an estimate is good for
MOST = 20  # estimates at one look: each asks all gates
MOST_KNOWN = 10_000
MISSED = 60 * MINUTE  # how long a deadline that was missed is found anew
FARTHEST = 24 * 60 * MINUTE  # how far ahead deadlines are looked at
MORE = 16  # times as many are asked for again, when those that were are over
REST = 20  # times as long as it took, before all of them are looked for again
Ask = Callable[[int, UUID], Awaitable[Instant | None]]


class Starts:
    """When executions that stand in a queue probably begin, as `explain` tells."""

    def __init__(self, env: Env, ask: Ask) -> None:
        self._env, self._ask = env, ask
        self._known: dict[UUID, tuple[float, Micros]] = {}  # until when, and how long it waits
        self._left = MOST

    def begin(self) -> None:
        """A look begins."""
        self._left = MOST
        if len(self._known) > MOST_KNOWN:
            self._known.clear()

    async def of(self, namespace: int, execution: UUID) -> Instant:
        """Now, where nobody can tell, or enough was asked."""
        now, at = self._env.now(), self._env.clock.monotonic()
        until, wait = self._known.get(execution, (0.0, 0))
        if until <= at and self._left > 0:
            self._left -= 1
            wait = max(0, (await self._asked(namespace, execution) or now) - now)
            self._known[execution] = (at + KEPT, wait)
        return now + wait

    async def _asked(self, namespace: int, execution: UUID) -> Instant | None:
        try:
            return await self._ask(namespace, execution)
        except StoreUnavailable:
            raise
        except HoraeError:  # it has ended meanwhile
            return None


class Nearing:
    """What has a deadline of the next day, or missed one lately; not looked for more often than that is cheap."""

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store
        self._found: list[Due] = []
        self._again_at = 0.0

    async def look(self) -> list[Due]:
        """As it is now; where there is very much of it, as it was up to a minute ago."""
        began, now = self._env.clock.monotonic(), self._env.now()
        if began >= self._again_at:
            self._found = await self._store.read(lambda: facts.nearing_deadlines(now - MISSED, now + FARTHEST, now))
            took = self._env.clock.monotonic() - began
            self._again_at = began + min(KEPT, took * REST)
        return self._found


class Deadlines:
    """Judges what has a deadline."""

    def __init__(
        self, store: Store, learned: Learned, starts: Starts, rule: DeadlineRisk, namespace: int, now: Instant
    ) -> None:
        self._store, self._learned, self._starts = store, learned, starts
        self._rule, self._namespace, self._now = rule, namespace, now

    async def missed(self, due: Mapping[UUID, dict[UUID, Due]], sure: set[UUID]) -> dict[UUID, tuple[UUID, str]]:
        """Of each job one that misses its deadline; parcels that are not known as they are now are asked for again."""
        found: dict[UUID, tuple[UUID, str]] = {}
        left, some = list(due), 1
        while left:
            doubtful: list[UUID] = []
            parcels: set[UUID] = set()
            for job in left:
                missed = await self._first_missed(due[job].values())
                if missed is not None and (parcel := parcel_of(missed[0])) not in sure:
                    doubtful.append(job)
                    parcels |= {parcel, *islice((one for one in _in_order(due[job]) if one not in sure), some)}
                elif missed is not None:
                    found[job] = missed
            await self._ask_again({job: due[job] for job in doubtful}, parcels)
            sure |= parcels
            left, some = doubtful, some * MORE
        return found

    async def _ask_again(self, due: Mapping[UUID, dict[UUID, Due]], parcels: set[UUID]) -> None:
        if not parcels:
            return
        present = await self._store.read(lambda: facts.still_due(parcels, self._now))
        by_parcel = {one.parcel: one for one in present}
        for of_job in due.values():
            for parcel in of_job.keys() & parcels:
                if parcel in by_parcel:
                    of_job[parcel] = by_parcel[parcel]
                else:
                    del of_job[parcel]

    async def _first_missed(self, due: Iterable[Due]) -> tuple[UUID, str] | None:
        """Of a job's executions one that misses its deadline, and what is to be said of it.

        When those in the queue begin is asked of the first and the last of them.
        """
        some = sorted(due, key=lambda one: (one.deadline, one.parcel))
        for one in some:
            if said := await self._misses(one, one.begins_at):
                return execution_id(one.parcel, one.queued or 0), said
        queued = [one for one in some if one.queued is not None]
        for one in queued[:1] + queued[1:][-1:]:
            id = execution_id(one.parcel, one.queued or 0)
            if said := await self._misses(one, max(one.begins_at, await self._starts.of(self._namespace, id))):
                return id, said
        return None

    async def _misses(self, due: Due, begins_at: Instant) -> str | None:
        """What is to be said of an execution that is going to miss its deadline; None if it should not."""
        deadline = format_instant(due.deadline)
        if due.deadline <= self._now:
            return f"an execution has missed its deadline {deadline}"
        lasts = await self._learned.of(due.job)
        if lasts is None:
            return None
        late = Expected(due.deadline, begins_at, lasts).misses(self._rule.after, self._now)
        if late is None:
            return None
        waits = f"begins in {span(begins_at - self._now)}, " if begins_at > self._now else ""
        return f"an execution {waits}takes {span(lasts)} and is going to miss its deadline {deadline} by {span(late)}"


def _in_order(due: Mapping[UUID, Due]) -> list[UUID]:
    return sorted(due, key=lambda parcel: (due[parcel].deadline, parcel))
