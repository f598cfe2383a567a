"""Limits: who waits goes in when a limit is raised, what runs under a new one is marked, and a sweep mends the rest.

Nothing here is waited for in the course of things: what ends lets the next in by itself.
"""

from collections.abc import Iterable
from uuid import UUID

import structlog

from horae.engine.base.hints import Hint, Hints
from horae.engine.service import Alarm, Wait
from horae.engine.topics import Topics
from horae.env import Env
from horae.store.admission import adoption, coarse, holder_sweep, holders, limit_changes
from horae.store.admission.holders import Entered
from horae.store.contract import Store

SWEEP = 5.0  # seconds between looks at all keys at which something waits
BATCH = 100  # keys locked in one transaction
ADOPTED = 500  # slices brought under a new limit in one transaction
SETTLED = 3.0  # seconds after which every server knows of a change, and what it had begun before is done
log = structlog.get_logger("horae.engine")


class LimitReconciler:
    """Lets changes of limits act at once, and sees that nobody waits for room that there is."""

    name = "limits"

    def __init__(self, env: Env, store: Store, hints: Hints, happenings: Topics) -> None:
        self._env, self._store, self._hints = env, store, hints
        self._freed: set[UUID] = set()
        self._jobs: set[UUID] = set()
        self._again: dict[UUID, float] = {}  # jobs that changed lately, and when they are looked at once more
        self._sweep_at = 0.0
        self.repaired = 0  # executions that had waited though there was room: none, unless something is wrong
        self.alarm = Alarm()
        hints.listen(self._on_hint)
        happenings.freed.subscribe(self.name, self.freed)

    def _on_hint(self, hint: Hint) -> None:
        if hint.jobs:
            self._jobs.update(hint.jobs)
            self.alarm.ring()

    def freed(self, parcels: Iterable[UUID]) -> None:
        """Items of these parcels left the queue: others may have their keys."""
        self._freed.update(parcels)
        self.alarm.ring()

    async def step(self) -> Wait:
        """See to what changed; now and then to everything."""
        jobs, self._jobs = self._jobs, set()
        await self._adopt_again()
        for job in sorted(jobs):
            await self._adopt(job)
            keys = await self._store.change(lambda now: limit_changes.apply(job, now))  # noqa: B023
            await self._let_in(keys)
            self._hints.tell(Hint(wake_at=self._env.now()))
        freed, self._freed = self._freed, set()
        if freed:
            self._tell(await self._store.change(lambda now: holders.free(freed, now)))
        await self._mark()
        now = self._env.clock.monotonic()
        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP
            await self._sweep()
        return SETTLED if self._again else SWEEP

    async def _adopt(self, job: UUID) -> None:
        """What a job had before it was limited as a whole comes under that limit, what runs first: it counts."""
        for session in await self._store.read(lambda: adoption.running_in(job)):
            await self._store.write(lambda: adoption.mark(session, job))  # noqa: B023
        while await self._store.change(lambda now: adoption.adopt(job, ADOPTED, now)) >= ADOPTED:
            self._hints.tell(Hint(wake_at=self._env.now()))
        self._again[job] = self._env.clock.monotonic() + SETTLED

    async def _adopt_again(self) -> None:
        """Once more, for what a claim or a submission had in its hands meanwhile."""
        now = self._env.clock.monotonic()
        for job in [job for job, at in self._again.items() if at <= now]:
            await self._adopt(job)
            del self._again[job]
            self._hints.tell(Hint(wake_at=self._env.now()))

    async def _let_in(self, keys: list[str]) -> int:
        count = 0
        for at in range(0, len(keys), BATCH):
            some = keys[at : at + BATCH]
            count += self._tell(await self._store.change(lambda now: holder_sweep.let_in(some, now)))  # noqa: B023
        return count

    def _tell(self, entered: Entered) -> int:
        self._hints.tell(Hint(lanes=entered.lanes(), wake_at=entered.wake_at))
        return sum(slice.hi - slice.lo for slice in entered.queued)

    async def _mark(self) -> None:
        """What ran before its queue or its namespace was limited counts from then on."""
        for name, kind, id in await self._store.read(coarse.unready):
            for session in await self._store.read(lambda: coarse.unmarked(kind, id)):  # noqa: B023
                await self._store.write(lambda: limit_changes.mark(session, kind, id))  # noqa: B023
            if not await self._store.read(lambda: coarse.unmarked(kind, id)):  # noqa: B023
                await self._store.write(lambda: coarse.set_ready(name))  # noqa: B023

    async def _sweep(self) -> None:
        found = await self._store.read(lambda: holder_sweep.stale(BATCH))
        count = self._tell(await self._store.change(lambda now: holder_sweep.forget(found, now))) if found else 0
        after: str | None = ""
        while after is not None:
            gates = await self._store.read(lambda: holder_sweep.gates(after or "", BATCH))  # noqa: B023
            count += await self._let_in([gate for gate in gates if holder_sweep.is_key(gate)])
            after = gates[-1] if len(gates) == BATCH else None
        if count:
            self.repaired += count
            log.warning("executions waited for limits that had room", executions=count)
