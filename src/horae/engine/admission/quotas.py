"""Quotas of namespaces, and their usage. Every server has a copy in memory, at most some seconds old."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar
from uuid import UUID

from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.service import Alarm, Wait
from horae.engine.tenancy.fair_access import FairAccess
from horae.engine.topics import Topics
from horae.env import Env, Instant
from horae.errors import BadInput, OverQuota, StoreUnavailable
from horae.model.admission.quota import QUOTA, UNBOUNDED, Quota, QuotaBounds, QuotaUsage, day_of, read_quota, used_up
from horae.model.admission.quota_view import QuotaDayView, QuotaView, UsageView, show_quota
from horae.model.base.duration import DAY
from horae.model.base.instant import format_instant
from horae.model.executions.parcel import Parcel
from horae.store.admission import quotas
from horae.store.contract import Store
from horae.store.executions.leaving.effects import Effects

INTERVAL = 1.0  # seconds between reads of quotas that other servers changed
FLUSH = 5.0  # seconds between writes of usage
MOST_DAYS = 400
PATIENCE = 20.0  # seconds that a request waits for room
AGAIN = 0.25  # seconds between the attempts of a request that waits for room
SHED = 0.1  # seconds for which requests of the same kind get the same refusal, without reading the store
MOST_WAITING = 1000  # requests that wait for room at a time
T = TypeVar("T")
NamespaceQueue = tuple[int, int]  # namespace and queue


class Quotas:
    """Adds up the usage of namespaces outside the hot transactions, and blocks namespaces that are over their quota."""

    name = "quotas"

    def __init__(
        self,
        env: Env,
        store: Store,
        directory: LocalDirectory,
        hints: Hints,
        node: UUID,
        fair_access: FairAccess,
        topics: Topics,
    ) -> None:
        self._env, self._store, self._directory, self._hints, self._node = env, store, directory, hints, node
        self._fair_access = fair_access
        self.by_namespace: dict[int, Quota] = {}
        self._uses: dict[tuple[int, int], QuotaUsage] = {}  # usage that is not written yet, by namespace and day
        self._writing: dict[tuple[int, int], QuotaUsage] = {}  # usage that is being written
        self._flushing = asyncio.Lock()
        self._stored_today: dict[int, QuotaUsage] = {}  # usage of this day that all servers have written, by namespace
        self._day = 0
        self._flush_at = 0.0
        self.waiting = 0  # requests that wait for room
        # Recent refusals: when they are forgotten, the number of refused executions, and the error.
        self._refused: dict[NamespaceQueue, tuple[float, int, OverQuota]] = {}
        topics.created.subscribe(self.name, self.count_accepted)
        topics.settled.subscribe(self.name, self.count_ended)
        self.alarm = Alarm()
        hints.listen(self._on_hint)

    def _on_hint(self, hint: Hint) -> None:
        if hint.quotas or hint.queues:
            self.alarm.ring()

    # Usage

    def count_accepted(self, parcels: Iterable[Parcel]) -> None:
        """Count executions that were created."""
        day = day_of(self._env.now())
        for parcel in parcels:
            use = self._use(parcel.envelope.namespace, day)
            use.executions += len(parcel)
            use.stored += len(parcel.items.blob)
        if self.by_namespace:
            self._publish_bounds()

    def count_ended(self, effects: Effects) -> None:
        """Count the worker time and storage of executions that ended."""
        day = day_of(self._env.now())
        for ended in effects.ended:
            if ended.busy:
                self._use(ended.namespace, day).busy += ended.busy
        for namespace, stored in effects.result_bytes.items():
            self._use(namespace, day).stored += stored
        self.count_accepted(effects.created)

    def count_refused(self, namespace: int, count: int) -> None:
        """Count executions that a quota refused."""
        self._use(namespace, day_of(self._env.now())).refused += count

    def check_submit_rate(self, namespace: int, count: int) -> None:
        """Count submissions of a namespace that has no submission rate of its own.

        Raises OverQuota when there are too many while other namespaces use this server.
        """
        quota = self.by_namespace.get(namespace)
        if quota is None or quota.rate is None:
            self._fair_access.count_submissions(namespace, count)

    async def retry_while_full(self, place: NamespaceQueue, count: int, attempt: Callable[[], Awaitable[T]]) -> T:
        """Call `attempt`, which submits `count` executions to the namespace and queue `place`, and return its answer.

        While the quota is full and allows requests to wait, repeat the call for up to PATIENCE seconds.
        """
        clock = self._env.clock
        ends_at = clock.monotonic() + PATIENCE
        while True:
            try:
                self._refuse_again(place, count)
                return await attempt()
            except OverQuota as refusal:
                self._refused.setdefault(place, (clock.monotonic() + SHED, count, refusal))
                left = ends_at - clock.monotonic()
                waits = self._store.bounds.lets_wait(place[0], refusal) and self.waiting < MOST_WAITING
                if not waits or refusal.fields["retryAfter"] > left:
                    raise
            self.waiting += 1
            try:
                async with self._fair_access.without_turn(place[0]):
                    await clock.sleep(AGAIN)
            finally:
                self.waiting -= 1

    def _refuse_again(self, place: NamespaceQueue, count: int) -> None:
        """Raise a recent refusal again without reading the store, so that many refused requests cost little."""
        until, least, refusal = self._refused.get(place, (0.0, 0, None))
        if refusal is None:
            return
        if self._env.clock.monotonic() >= until:
            del self._refused[place]
        elif count >= least:
            raise refusal

    def _use(self, namespace: int, day: int) -> QuotaUsage:
        return self._uses.setdefault((namespace, day), QuotaUsage())

    async def step(self) -> Wait:
        """Read the quotas. Every five seconds, write this server's usage and read the usage of all servers."""
        now = self._env.clock.monotonic()
        if now >= self._flush_at:
            self._flush_at = now + FLUSH
            await self.flush()
        self.by_namespace = await self._store.read(quotas.all_quotas)
        self._refused.clear()
        today = day_of(self._env.now())
        if today != self._day:
            self._day, self._stored_today = today, {}
        self._publish_bounds()
        return INTERVAL

    async def flush(self) -> None:
        """Write the accumulated usage, and read the day's usage of all servers."""
        async with self._flushing:
            self._writing, self._uses = {key: use for key, use in self._uses.items() if use}, {}
            try:
                await self._write(self._writing)
            finally:
                self._writing = {}
            day = day_of(self._env.now())
            self._day, self._stored_today = day, await self._store.read(lambda: quotas.used_on(day))

    async def _write(self, uses: dict[tuple[int, int], QuotaUsage]) -> None:
        if not uses:
            return
        try:
            await self._store.write(lambda: quotas.add_usage(self._node, uses))
        except StoreUnavailable as error:
            if not error.fields.get("unknown"):
                for key, use in uses.items():
                    self._use(*key).join(use)
            raise
        for (namespace, day), use in uses.items():
            if day == self._day:
                self._stored_today.setdefault(namespace, QuotaUsage()).join(use)

    def _publish_bounds(self) -> None:
        queues = {
            queue.id: (queue.name, queue.spec.max_queued)
            for queue in self._directory.queues.values()
            if queue.spec.max_queued is not None
        }
        over = {
            namespace: reason
            for namespace, quota in self.by_namespace.items()
            if (reason := used_up(quota, self._today(namespace)))
        }
        limited = queues or self.by_namespace
        self._store.set_bounds(QuotaBounds(self.by_namespace, queues, over) if limited else UNBOUNDED)

    def _today(self, namespace: int) -> QuotaUsage:
        """Return the usage of a namespace today, as far as this server knows."""
        use = QuotaUsage()
        use.join(self._stored_today.get(namespace, use))
        for pending in (self._writing, self._uses):
            use.join(pending.get((namespace, self._day), QuotaUsage()))
        return use

    # Reads and changes by users

    async def get(self, namespace: int, name: str) -> QuotaView:
        """Return the quota of a namespace."""
        known = await self._store.read(quotas.all_quotas)
        return show_quota(name, known.get(namespace, Quota()))

    async def put(self, namespace: int, name: str, body: Any) -> QuotaView:
        """Set the quota of a namespace; missing fields are unlimited."""
        quota = read_quota(body)
        await self._store.change(lambda now: quotas.set_quota(namespace, quota, now))
        await self._directory.load_limits()
        self._hints.send(Hint(quotas=True, queues=True))
        await self.step()
        return show_quota(name, quota)

    async def usage(self, namespace: int, name: str, since: Instant | None, until: Instant | None) -> UsageView:
        """Return the current load of a namespace and its usage by day; by default of the last thirty days."""
        await self.flush()
        last = day_of(self._env.now() if until is None else until - 1)
        first = last - 29 if since is None else day_of(since)
        if not 0 <= last - first < MOST_DAYS:
            raise BadInput(
                f"The usage can be read for 1 to {MOST_DAYS} days at a time.", "Give from and to.", field="from"
            )
        used = await self._store.read(lambda: quotas.used_between(namespace, first, last))
        queued, waiting, running = await self._store.read(lambda: quotas.count_live(namespace))
        quota = (await self._store.read(quotas.all_quotas)).get(namespace, Quota())
        today = used.get(day_of(self._env.now()), QuotaUsage())
        return UsageView(
            namespace=name, queued=queued, waiting=waiting, running=running, exceeded=used_up(quota, today),
            quota=QUOTA.write(quota), days=[_day(day, use) for day, use in used.items()],
        )  # fmt: skip


def _day(day: int, use: QuotaUsage) -> QuotaDayView:
    return QuotaDayView(
        day=format_instant(day * DAY)[:10], executions=use.executions, worker_seconds=round(use.busy / 1_000_000, 3),
        stored_bytes=use.stored, refused=use.refused,
    )  # fmt: skip
