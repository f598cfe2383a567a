"""The service of limits, and the keys of a job's limits and sequences that executions hold.

The service applies changed limits, counts running executions under new ones, and repairs missed admissions. Normally no
execution waits for it, because the transaction that ends an execution admits the next one.
"""

from collections.abc import Iterable
from typing import Literal
from uuid import UUID

import structlog

from horae.engine.base.hints import Hint, Hints
from horae.engine.base.refs import find_job
from horae.engine.service import Alarm, Wait
from horae.engine.topics import Topics
from horae.env import Env
from horae.model.admission.held_key_view import HeldKeyView
from horae.model.admission.limits import LIMIT, OWN, template_of, value_in, with_own
from horae.model.base.cursor import check_limit, make_cursor, read_cursor
from horae.model.base.duration import DAY
from horae.model.base.view import Page
from horae.model.definitions.job import Job
from horae.store.admission import adoption, coarse, holder_sweep, holders, limit_reads
from horae.store.admission.holders import AdmittedItems
from horae.store.admission.limit_reads import HeldKey
from horae.store.contract import Store

SWEEP = 5.0  # seconds between checks of all keys with waiting executions
BATCH = 100  # keys locked in one transaction
ADOPTED = 500  # slices brought under a new limit in one transaction
SETTLED = 3.0  # seconds after which every server knows a change, and earlier transactions have ended
MOST_CHANGED = 10_000  # jobs changed lately that a new server reads
MOST_KEYS = 100  # keys in one page, even if more are requested: each costs a read
MOST_NAMED = 10  # executions that are named for each key
KINDS: tuple[Literal["limit", "sequence"], ...] = ("limit", "sequence")  # in the order in which their keys sort
log = structlog.get_logger("horae.engine")


class LimitReconciler:
    """Applies changes of limits at once, and admits executions that wait although there is room."""

    name = "limits"

    def __init__(self, env: Env, store: Store, hints: Hints, topics: Topics) -> None:
        self._env, self._store, self._hints = env, store, hints
        self._freed: set[UUID] = set()
        self._jobs: set[UUID] = set()
        self._has_begun = False
        self._recheck_at: dict[UUID, float] = {}  # jobs changed lately, and when their limits are applied once more
        self._sweep_at = 0.0
        self.repaired = 0  # executions that waited although there was room: 0 unless there is a bug
        self.alarm = Alarm()
        hints.listen(self._on_hint)
        topics.freed.subscribe(self.name, self.note_freed)

    def _on_hint(self, hint: Hint) -> None:
        if hint.jobs:
            self._jobs.update(hint.jobs)
            self.alarm.ring()

    def note_freed(self, parcels: Iterable[UUID]) -> None:
        """Record that items of these parcels left the queue, so that other executions may get their keys."""
        self._freed.update(parcels)
        self.alarm.ring()

    async def step(self) -> Wait:
        """Apply the limits of changed jobs; every SWEEP seconds, check all keys with waiting executions."""
        if not self._has_begun:  # the server may have crashed before it applied all changes
            since = self._env.now() - DAY
            self._jobs.update(await self._store.read(lambda: adoption.limited_since(since, MOST_CHANGED)))
            self._has_begun = True
        due = {job for job, at in self._recheck_at.items() if at <= self._env.clock.monotonic()}
        for job in sorted(self._jobs | due):
            await self._apply(job)
        await self._free()
        await self._mark_running()
        now = self._env.clock.monotonic()
        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP
            await self._sweep()
        return SETTLED if self._recheck_at else SWEEP

    async def _apply(self, job: UUID) -> None:
        """Apply the limits of a changed job. This is done twice, because a claim or a submission may move some of its
        executions during the first time.
        """
        is_first = job in self._jobs
        self._jobs.discard(job)
        try:
            await self._adopt(job)
            if is_first:
                await self._admit(await self._store.change(lambda now: holder_sweep.wake_paced(job, now)))
                self._recheck_at[job] = self._env.clock.monotonic() + SETTLED
            else:
                await self._admit_waiting(job)
                del self._recheck_at[job]
        except BaseException:
            if is_first:
                self._jobs.add(job)
            raise
        self._hints.send(Hint(wake_at=self._env.now()))

    async def _free(self) -> None:
        """Free the keys of parcels that left the queue."""
        freed, self._freed = self._freed, set()
        try:
            if freed:
                self._publish(await self._store.change(lambda now: holders.free(freed, now)))
        except BaseException:
            self._freed |= freed
            raise

    async def _adopt(self, job: UUID) -> None:
        """Bring a job's executions under a limit of the whole job: first those that run, then those that do not yet."""
        for session in await self._store.read(lambda: adoption.unmarked_sessions(job)):
            await self._store.write(lambda: adoption.mark(session, job))  # noqa: B023
        while await self._store.change(lambda now: adoption.adopt(job, ADOPTED, now)) >= ADOPTED:
            self._hints.send(Hint(wake_at=self._env.now()))

    async def _admit_waiting(self, job: UUID) -> None:
        """Admit executions of a job that wait although its keys have room.

        While an adoption goes on, this is not a bug: executions without a key yet do not free it when they end.
        """
        await self._admit(await self._store.read(lambda: holder_sweep.gates_of(job)))

    async def _admit(self, keys: list[str]) -> int:
        count = 0
        for at in range(0, len(keys), BATCH):
            part = keys[at : at + BATCH]
            count += self._publish(await self._store.change(lambda now: holder_sweep.admit(part, now)))  # noqa: B023
        return count

    def _publish(self, entered: AdmittedItems) -> int:
        self._hints.send(Hint(lanes=entered.lanes(), wake_at=entered.wake_at))
        return sum(queued.hi - queued.lo for queued in entered.queued)

    async def _mark_running(self) -> None:
        """Count running executions that started before a limit of their queue or namespace was set."""
        for name, kind, object_id in await self._store.read(coarse.unready):
            for session in await self._store.read(lambda: coarse.unmarked_sessions(kind, object_id)):  # noqa: B023
                await self._store.write(lambda: holder_sweep.mark_limited(session, kind, object_id))  # noqa: B023
            if not await self._store.read(lambda: coarse.unmarked_sessions(kind, object_id)):  # noqa: B023
                await self._store.write(lambda: coarse.set_ready(name))  # noqa: B023

    async def _sweep(self) -> None:
        for job in list(self._recheck_at):
            await self._admit_waiting(job)
        found = await self._store.read(lambda: holder_sweep.stale_holders(BATCH))
        count = self._publish(await self._store.change(lambda now: holder_sweep.forget(found, now))) if found else 0
        after: str | None = ""
        while after is not None:
            gates = await self._store.read(lambda: holder_sweep.gates(after or "", BATCH))  # noqa: B023
            count += await self._admit([gate for gate in gates if holder_sweep.is_key(gate)])
            after = gates[-1] if len(gates) == BATCH else None
        if count:
            self.repaired += count
            log.warning("executions waited for limits that had room", executions=count)


class HeldKeys:
    """Reads the keys of a job's limits and sequences that executions hold."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(self, namespace: int, ref: str, *, limit: int = 50, cursor: str | None = None) -> Page[HeldKeyView]:
        """Return the held keys of a job in order, including the key of a limit of the whole job."""
        job = (await find_job(self._store, namespace, ref)).job
        after, size = read_cursor(cursor, str) if cursor else "", min(check_limit(limit), MOST_KEYS)
        found: list[HeldKey] = []
        for kind in KINDS:
            most = size + 1 - len(found)
            if most > 0 and after.partition(":")[0] <= kind:
                found += await self._store.read(
                    lambda: limit_reads.held_keys(kind, job.id, after, most, MOST_NAMED)  # noqa: B023
                )
        items = found[:size]
        more = len(found) > size
        return Page(
            items=[_shown(held, job) for held in items], next_cursor=make_cursor(items[-1].key) if more else None
        )


def _shown(held: HeldKey, job: Job) -> HeldKeyView:
    spec = job.spec
    is_sequence = held.key.startswith("sequence:")
    limit = None if is_sequence else template_of(held.key, with_own(spec.limits, spec.concurrency, spec.rate))
    allowed = {} if limit is None else LIMIT.write(limit)
    return HeldKeyView(
        kind="sequence" if is_sequence else "job" if limit is not None and limit.key == OWN else "key",
        key=(spec.sequence or None) if is_sequence else None if limit is None else limit.key or None,
        value=value_in(held.key),
        concurrency=1 if is_sequence else allowed.get("concurrency"),
        rate=allowed.get("rate"),
        used=held.used,
        has_waiters=held.waited_for,
        holders=held.holders,
    )
