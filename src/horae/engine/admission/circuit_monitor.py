"""The circuit breakers' service: counts attempts, opens and closes circuits, and releases executions that wait there.

The outcomes of reports are added up in memory and written to the store at most ten times a second, outside the reports'
transactions. A server that crashes loses its unwritten counts, which only makes a circuit slower to change.
"""

from collections.abc import Sequence
from uuid import UUID

import structlog

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.service import Alarm, Wait
from horae.engine.topics import Topics
from horae.env import Env
from horae.model.admission.circuit import CircuitState, CircuitStatus, ParcelAttempts, delayed, is_due
from horae.model.base.duration import DAY, HOUR
from horae.model.base.event import Event
from horae.store.admission import circuit_gates, circuit_reads, circuits
from horae.store.admission.circuits import CircuitRef
from horae.store.contract import Store
from horae.store.executions.leaving.effects import Effects

WRITE_EVERY = 0.1  # seconds between two writes of counts
LOOK = 1.0  # seconds between looks for changes that no hint announced
BATCH = 500  # slices released in one transaction
KEEP_CHANGES = 30 * DAY  # for which the changes of circuits are kept
KEEP_COUNTS = 3 * HOUR  # for which counts are kept: longer than the longest window
FORGET_EVERY = 3600.0
log = structlog.get_logger("horae.engine")


class CircuitMonitor:
    """Counts attempts, changes the states of circuits, and releases executions."""

    name = "circuits"

    def __init__(
        self,
        env: Env,
        store: Store,
        node: UUID,
        directory: LocalDirectory,
        hints: Hints,
        clock: ClockWatch,
        topics: Topics,
    ) -> None:
        self._env, self._store, self._node, self._clock = env, store, node, clock
        self._directory, self._hints = directory, hints
        self._attempted: list[ParcelAttempts] = []
        self._write_at = self._look_at = self._forget_at = 0.0
        self.not_closed: dict[CircuitRef, CircuitStatus] = {}  # circuits that are not closed
        self.changes: dict[CircuitState, int] = {"open": 0, "half-open": 0, "closed": 0}  # made by this server
        self.alarm = Alarm()
        topics.settled.subscribe(self.name, self._collect)

    def _collect(self, effects: Effects) -> None:
        if effects.attempted:
            self._attempted += effects.attempted
            self.alarm.ring()

    async def step(self) -> Wait:
        """Write the counts; once a second, or when a circuit is due, check the circuits that are not closed."""
        now = self._env.clock.monotonic()
        if self._attempted and now >= self._write_at:
            self._write_at = now + WRITE_EVERY
            await self._write_counts()
        if now >= self._look_at:
            self._look_at = now + LOOK
            await self.refresh()
        if now >= self._forget_at:
            self._forget_at = now + FORGET_EVERY
            instant = self._env.now()
            await self._store.write(lambda: circuit_reads.forget(instant - KEEP_COUNTS, instant - KEEP_CHANGES))
        return max(0.0, (self._write_at if self._attempted else self._look_at) - self._env.clock.monotonic())

    async def _write_counts(self) -> None:
        attempted, self._attempted = self._attempted, []
        changed = await self._store.change(
            lambda now: circuits.count_attempts(self._node, _sum_by_parcel(attempted), now)
        )
        await self.publish(changed)

    async def refresh(self) -> None:
        """Read the circuits that are not closed, half-open those that are due, and release what need not wait."""
        found = await self._store.read(circuit_reads.shut)
        if self._clock.trusted and any(is_due(standing, self._env.now()) for standing in found):
            await self.publish(await self._store.change(circuits.advance))
            found = await self._store.read(circuit_reads.shut)
        self.not_closed = {(standing.job, standing.key): standing for standing in found}
        self._directory.open_circuits = {(s.job, s.key) if s.key else s.job: delayed(s) for s in found}
        for which in await self._store.read(circuit_gates.gates):
            standing = self.not_closed.get(which)
            if standing is None or standing.state == "half-open":
                await self._release(which)

    async def _release(self, which: CircuitRef) -> None:
        """Make executions due at once. A half-open circuit releases one batch, a closed one everything."""
        while True:
            count = await self._store.change(lambda now: circuit_gates.release_waiting(which, BATCH, now))
            if count:
                self._hints.send(Hint(wake_at=self._env.now()))
            if not count or which in self.not_closed:
                return

    async def publish(self, changed: Sequence[CircuitStatus]) -> None:
        """Log and publish the circuits that changed, and check them again at once."""
        if not changed:
            return
        owners = await self._store.read(lambda: circuit_reads.owners({standing.job for standing in changed}))
        for standing in changed:
            namespace, name = owners[standing.job]
            self.changes[standing.state] += 1
            tell = log.warning if standing.state == "open" else log.info
            tell(f"circuit is {standing.state}", job=name, key=standing.key, cause=standing.cause, by=standing.by)
            event = Event("circuit", standing.job, standing.state, namespace, self._env.now(), standing.job)
            self._hints.send(Hint(events=[event]))
        self._look_at = 0.0
        self.alarm.ring()


def _sum_by_parcel(attempted: Sequence[ParcelAttempts]) -> list[ParcelAttempts]:
    """Return one sum for each parcel."""
    sums: dict[UUID, ParcelAttempts] = {}
    for one in attempted:
        before = sums.get(one.parcel)
        ok, failed = (before.ok, before.failed) if before else (0, 0)
        sums[one.parcel] = ParcelAttempts(one.parcel, one.job, ok + one.ok, failed + one.failed)
    return list(sums.values())
