"""Statistics: each server adds up per job and minute in memory and writes its own rows every five seconds."""

from collections.abc import Callable, Sequence
from uuid import UUID

from horae.engine.service import Alarm, Wait
from horae.env import Env
from horae.errors import StoreUnavailable
from horae.model.circuit import Attempted
from horae.model.event import Event
from horae.model.ids import execution_id
from horae.model.rollout import Trial
from horae.store.contract import Store
from horae.store.moves import statistics
from horae.store.moves.effects import Effects

FLUSH = 5.0
MINUTE = 60_000_000


class Statistics:
    """Counts what executions came to, beside the hot transactions; at most a flush behind."""

    name = "statistics"

    def __init__(self, env: Env, store: Store, node: UUID) -> None:
        self._env, self._store, self._node = env, store, node
        self._counts: dict[tuple[UUID, int], statistics.Counts] = {}
        self.totals: dict[str, int] = {"success": 0, "failed": 0, "cancelled": 0, "skipped": 0, "retried": 0, "lost": 0}
        self._failed: set[UUID] = set()
        self.on_failed: Callable[[], object] = lambda: None  # told when an execution has failed
        self.on_attempted: Callable[[Sequence[Attempted]], object] = lambda attempted: None
        self.on_trials: Callable[[Sequence[Trial]], object] = lambda trials: None  # told of what rollouts chose
        self.on_effects: Callable[[Effects], object] = lambda effects: None  # told of all that is counted
        self.alarm = Alarm()

    def take_failed(self) -> set[UUID]:
        """The jobs of which something failed since this was last asked."""
        failed, self._failed = self._failed, set()
        return failed

    def add(self, effects: Effects) -> None:
        """Count what a batch of reports did; circuits are told of attempts of their jobs."""
        if effects.trials:
            self.on_trials(effects.trials)
        if effects.attempted:
            self.on_attempted(effects.attempted)
        minute = self._env.now() // MINUTE
        for ended in effects.ended:
            counts = self._counts.setdefault((ended.job, minute), statistics.Counts())
            counts.add(ended.state, ended.hi - ended.lo, ended.busy)
            self.totals[ended.state] += ended.hi - ended.lo
            if ended.state == "failed":
                self._failed.add(ended.job)
        self.totals["retried"] += effects.retried
        if self._failed:
            self.on_failed()
        self.on_effects(effects)

    def cancelled(self, job: UUID, count: int) -> None:
        """Count what was cancelled before it ran."""
        if count:
            key = (job, self._env.now() // MINUTE)
            self._counts.setdefault(key, statistics.Counts()).add("cancelled", count, 0)
            self.totals["cancelled"] += count

    def events(self, effects: Effects) -> list[Event]:
        """What subscribers are told of a batch."""
        now = self._env.now()
        ended = [
            Event("execution", execution_id(e.parcel, e.lo), e.state, e.namespace, now, e.job, e.hi - e.lo)
            for e in effects.ended[:20]
        ]
        moved = [
            Event("execution", execution_id(m.parcel, m.lo), m.state, m.namespace, now, m.job, m.hi - m.lo)
            for m in [*effects.moved[:20], *effects.started[:20]]
        ]
        logged = [
            Event("log", execution_id(n.parcel, n.lo), "running", n.namespace, now, n.job) for n in effects.logged[:20]
        ]
        stepped = [
            Event("step", s.execution, s.state, s.namespace, now, s.job, step=s.step) for s in effects.stepped[:20]
        ]
        return [*ended, *moved, *logged, *stepped]

    async def step(self) -> Wait:
        """Write what was added up."""
        if self._counts:
            counts, self._counts = self._counts, {}
            now = self._env.now()
            try:
                await self._store.write(lambda: statistics.add(self._node, counts, now))
            except StoreUnavailable as error:
                if not error.fields.get("unknown"):
                    self._keep(counts)
                raise
        return FLUSH

    def _keep(self, counts: dict[tuple[UUID, int], statistics.Counts]) -> None:
        """Nothing of these was written: they go with the next."""
        for key, unwritten in counts.items():
            self._counts.setdefault(key, statistics.Counts()).join(unwritten)
