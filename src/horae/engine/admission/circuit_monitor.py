"""The service of circuit breakers: counts attempts, opens and closes circuits, and releases waiting executions.

The outcomes of reports are added up in memory and written to the store at most ten times a second, outside the reports'
transactions. A server that crashes loses its unwritten counts. This only delays the next change of a circuit.
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
from horae.model.admission.circuit import CircuitState, CircuitStatus, ParcelAttempts, delay_note
from horae.model.base.duration import DAY, HOUR
from horae.model.base.event import ChangeEvent
from horae.store.admission import circuit_gates, circuit_reads, circuits
from horae.store.admission.circuits import CircuitRef
from horae.store.contract import Store
from horae.store.executions.leaving.effects import Effects

WRITE_EVERY = 0.1  # seconds between two writes of counts
INTERVAL = 1.0  # seconds between checks for changes that no hint announced
BATCH = 500  # slices released in one transaction
KEEP_CHANGES = 30 * DAY  # the retention of circuit changes
KEEP_COUNTS = 3 * HOUR  # the retention of counts: longer than the longest window
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
        self._write_at = self._check_at = self._forget_at = 0.0
        self.not_closed: dict[CircuitRef, CircuitStatus] = {}  # circuits that are not closed
        # How many times this server changed a circuit to each state.
        self.changes: dict[CircuitState, int] = {"open": 0, "half-open": 0, "closed": 0}
        self.alarm = Alarm()
        topics.settled.subscribe(self.name, self._collect)

    def _collect(self, effects: Effects) -> None:
        if effects.attempted:
            self._attempted += effects.attempted
            self.alarm.ring()

    async def step(self) -> Wait:
        """Write the counts. Once a second, and at once after a change, check the circuits that are not closed."""
        now = self._env.clock.monotonic()
        if self._attempted and now >= self._write_at:
            self._write_at = now + WRITE_EVERY
            await self._write_counts()
        if now >= self._check_at:
            self._check_at = now + INTERVAL
            await self.refresh()
        if now >= self._forget_at:
            self._forget_at = now + FORGET_EVERY
            instant = self._env.now()
            await self._store.write(lambda: circuit_reads.forget(instant - KEEP_COUNTS, instant - KEEP_CHANGES))
        return max(0.0, (self._write_at if self._attempted else self._check_at) - self._env.clock.monotonic())

    async def _write_counts(self) -> None:
        attempted, self._attempted = _sum_by_parcel(self._attempted), []
        try:
            changed = await self._store.change(lambda now: circuits.count_attempts(self._node, attempted, now))
        except BaseException:
            self._attempted += attempted
            raise
        await self.publish(changed)

    async def refresh(self) -> None:
        """Read the circuits that are not closed, let those change whose time is over, and release executions.

        Executions are released if they wait for a circuit that is closed or half-open.
        """
        found = await self._store.read(circuit_reads.shut)
        if self._clock.trusted and found:
            await self.publish(await self._store.change(circuits.advance))
            found = await self._store.read(circuit_reads.shut)
        self.not_closed = {(status.job, status.key): status for status in found}
        self._directory.set_open_circuits(
            {(status.job, status.key) if status.key else status.job: delay_note(status) for status in found}
        )
        for circuit_ref in await self._store.read(circuit_gates.gates):
            status = self.not_closed.get(circuit_ref)
            if status is None or status.state == "half-open":
                await self._release(circuit_ref)

    async def _release(self, circuit_ref: CircuitRef) -> None:
        """Make executions that wait for a circuit due at once: all if it is closed, only probes if it is half-open."""
        while True:
            count = await self._store.change(lambda now: circuit_gates.release_waiting(circuit_ref, BATCH, now))
            if count:
                self._hints.send(Hint(wake_at=self._env.now()))
            if not count or circuit_ref in self.not_closed:
                return

    async def publish(self, changed: Sequence[CircuitStatus]) -> None:
        """Log and publish the circuits that changed, and check them again at once."""
        if not changed:
            return
        owners = await self._store.read(lambda: circuit_reads.owners({status.job for status in changed}))
        for status in changed:
            namespace, name = owners[status.job]
            self.changes[status.state] += 1
            tell = log.warning if status.state == "open" else log.info
            tell(f"circuit is {status.state}", job=name, key=status.key, cause=status.cause, by=status.by)
            event = ChangeEvent("circuit", status.job, status.state, namespace, self._env.now(), status.job)
            self._hints.send(Hint(events=[event]))
        self._check_at = 0.0
        self.alarm.ring()


def _sum_by_parcel(attempted: Sequence[ParcelAttempts]) -> list[ParcelAttempts]:
    """Add up the attempts of each parcel."""
    sums: dict[UUID, ParcelAttempts] = {}
    for attempts in attempted:
        before = sums.get(attempts.parcel)
        ok, failed = (before.ok, before.failed) if before else (0, 0)
        sums[attempts.parcel] = ParcelAttempts(
            attempts.parcel, attempts.job, ok + attempts.ok, failed + attempts.failed
        )
    return list(sums.values())
