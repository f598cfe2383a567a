"""Statistics: each server adds up in memory, per job and per namespace, and writes its own rows every five seconds.

What happens all day is counted once, by minute; hours and days are added up from that when it is written.
"""

from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from horae.engine.service import Alarm, Wait
from horae.engine.tallies import Tallies
from horae.env import Env, Instant
from horae.errors import StoreUnavailable
from horae.model.circuit import Attempted
from horae.model.event import Event, missed
from horae.model.ids import execution_id
from horae.model.parcel import Parcel
from horae.model.rollout import Trial
from horae.model.tally import JOB_SPANS, NAMESPACE_SPANS, Counts, JobTally, NamespaceTally
from horae.store.contract import Store
from horae.store.moves import statistics
from horae.store.moves.effects import Effects
from horae.store.moves.told import Ended

FLUSH = 5.0
MOST_TOLD, FEW_TOLD = 1000, 20  # events of one kind in a batch
MINUTE = 60_000_000
TELLING = ("success", "failed")  # how long the others took tells nothing of a job


class Statistics:
    """Counts what executions came to, beside the hot transactions; at most a flush behind."""

    name = "statistics"

    def __init__(self, env: Env, store: Store, node: UUID) -> None:
        self._env, self._store, self._node = env, store, node
        self._jobs: dict[tuple[UUID, int], JobTally] = {}  # by minute: since the last flush
        self._namespaces: dict[tuple[int, int], NamespaceTally] = {}
        self._unowned: list[tuple[UUID, int, JobTally]] = []  # of jobs whose namespace nobody told
        self._job_spans = Tallies(JOB_SPANS, JobTally, statistics.put_jobs, env.new_id)
        self._namespace_spans = Tallies(NAMESPACE_SPANS, NamespaceTally, statistics.put_namespaces, env.new_id)
        self.totals: dict[str, int] = {"success": 0, "failed": 0, "cancelled": 0, "skipped": 0, "retried": 0, "lost": 0}
        self._failed: set[UUID] = set()
        self.on_failed: Callable[[], object] = lambda: None  # told when an execution has failed
        self.on_attempted: Callable[[Sequence[Attempted]], object] = lambda attempted: None
        self.on_trials: Callable[[Sequence[Trial]], object] = lambda trials: None  # told of what rollouts chose
        self.listened: Callable[[], bool] = lambda: False  # whether anybody here wants to know each event
        self.on_effects: Callable[[Effects], object] = lambda effects: None  # told of all that is counted
        self.on_ended: Callable[[Sequence[Ended]], object] | None = None  # told of what is over, if anybody traces it
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
            self._ended(ended, minute)
        for again in effects.repeats:
            self._of_job(again.job, again.namespace, minute).add(again.what, again.count)
            self.totals[again.what] += again.count
        for waited in effects.waited:
            self._of_namespace(waited.namespace, minute).waits.add(waited.micros, waited.count)
        if self._failed:
            self.on_failed()
        if self.on_ended is not None:
            self.on_ended(effects.ended)
        self.on_effects(effects)

    def _ended(self, ended: Ended, minute: int) -> None:
        count, state = ended.hi - ended.lo, ended.state
        job = self._of_job(ended.job, ended.namespace, minute)
        if state == "success":
            job.success += count
            job.busy += ended.busy
        else:
            job.add(state, count, ended.busy)
        if state == "failed":
            self._failed.add(ended.job)
            job.steps_failed += count if ended.step else 0
        if ended.spans and state in TELLING:
            job.took(ended.spans, count)
        if ended.waited is not None:
            self._of_namespace(ended.namespace, minute).waits.add(ended.waited, count)
        self.totals[state] += count

    def cancelled(self, job: UUID, count: int) -> None:
        """Count what was cancelled before it ran."""
        if count:
            self._of_job(job, 0, self._env.now() // MINUTE).add("cancelled", count)
            self.totals["cancelled"] += count

    def fired(self, parcels: Sequence[Parcel], now: Instant) -> None:
        """Count how late fires came."""
        for parcel in parcels:
            lag = max(0, now - parcel.envelope.due_at)
            self._of_namespace(parcel.envelope.namespace, now // MINUTE).lagged(lag, len(parcel))

    def sampled(self, queued: Mapping[int, int], now: Instant) -> None:
        """So many executions stand in the queues of each namespace now."""
        for namespace, count in queued.items():
            tally = self._of_namespace(namespace, now // MINUTE)
            tally.queued = max(count, tally.queued or 0)

    def _of_job(self, job: UUID, namespace: int, minute: int) -> JobTally:
        found = self._jobs.get((job, minute))
        if found is None:
            found = self._jobs[job, minute] = JobTally()
        found.namespace = found.namespace or namespace
        return found

    def _of_namespace(self, namespace: int, minute: int) -> NamespaceTally:
        found = self._namespaces.get((namespace, minute))
        if found is None:
            found = self._namespaces[namespace, minute] = NamespaceTally()
        return found

    def events(self, effects: Effects) -> list[Event]:
        """What listeners are told of a batch: all of it where somebody listens here, else enough for other servers."""
        now, most = self._env.now(), MOST_TOLD if self.listened() else FEW_TOLD
        told = [
            *(
                Event("execution", execution_id(m.parcel, m.lo), m.state, m.namespace, now, m.job, m.hi - m.lo)
                for moved in (effects.ended, effects.moved, effects.started)
                for m in moved[:most]
            ),
            *(
                Event("log", execution_id(n.parcel, n.lo), "running", n.namespace, now, n.job)
                for n in effects.logged[:most]
            ),
            *(
                Event("step", s.execution, s.state, s.namespace, now, s.job, step=s.step)
                for s in effects.stepped[:most]
            ),
        ]
        whole = (effects.ended, effects.moved, effects.started, effects.logged, effects.stepped)
        if any(len(some) > most for some in whole):
            told += [missed(at, now) for at in {one.namespace for some in whole for one in some[most:]}]
        return told

    async def step(self) -> Wait:
        """Write what was added up."""
        await self._write_minutes()
        await self._own()
        taken, self._namespaces = self._namespaces, {}
        for (namespace, minute), happened in taken.items():
            self._namespace_spans.add(namespace, minute * MINUTE, happened)
        now = self._env.now()
        await self._namespace_spans.flush(self._store, now)
        await self._job_spans.flush(self._store, now)
        return FLUSH

    async def close(self) -> None:
        """Write all that is left."""
        await self.step()
        while self._namespace_spans.is_behind or self._job_spans.is_behind:
            await self.step()

    async def _write_minutes(self) -> None:
        if not self._jobs:
            return
        counts, self._jobs = self._jobs, {}
        try:
            await self._store.write(lambda: statistics.add(self._node, counts))
        except StoreUnavailable as error:
            if not error.fields.get("unknown"):
                self._keep(counts)
                raise
            self._widen(counts)
            raise
        self._widen(counts)

    def _keep(self, counts: Mapping[tuple[UUID, int], JobTally]) -> None:
        """Nothing of these was written: they go with the next."""
        for (job, minute), unwritten in counts.items():
            self._of_job(job, unwritten.namespace, minute).join(unwritten)

    def _widen(self, counts: Mapping[tuple[UUID, int], JobTally]) -> None:
        """Add what was counted of minutes to what is wider: hours and days of the job, and all of its namespace.

        A namespace counts a workflow that failed once: the steps that it failed by are left out.
        """
        for (job, minute), happened in counts.items():
            self._job_spans.add(job, minute * MINUTE, happened)
            if happened.namespace:
                total = self._of_namespace(happened.namespace, minute)
                Counts.join(total, happened)
                total.failed -= happened.steps_failed
            else:
                self._unowned.append((job, minute, happened))

    async def _own(self) -> None:
        """Find whose jobs they are of which something was cancelled."""
        if not self._unowned:
            return
        jobs = {job for job, _, _ in self._unowned}
        owners = await self._store.read(lambda: statistics.namespaces_of(jobs))
        unowned, self._unowned = self._unowned, []
        for job, minute, happened in unowned:
            if job in owners:
                Counts.join(self._of_namespace(owners[job], minute), happened)
