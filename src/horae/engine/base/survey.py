"""A survey of all namespaces for the metrics: numbers that only the store knows."""

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct, field

from horae.engine.admission.hold_watch import HoldWatch
from horae.engine.fleet.workers import Workers
from horae.env import SECOND, Env
from horae.store.admission import circuit_reads, limit_reads
from horae.store.contract import Store
from horae.store.executions.reads import depths

MOST_CIRCUITS = 10_000
MOST_HOLDERS = 100_000  # held keys to count
Labels = tuple[str, ...]  # the name of a namespace, then of an object in it
Table = Counter[Labels]


class Survey(Struct):
    """Numbers about an installation at one moment, without those of features."""

    namespaces: dict[int, str] = {}
    troubled: int = 0  # triggers whose next fire cannot be computed
    holders: int = 0  # rows of held keys, at most MOST_HOLDERS
    queued: Table = field(default_factory=Counter)  # executions by queue
    oldest: dict[Labels, float] = {}  # seconds that the oldest execution has been queued, by queue
    held: Table = field(default_factory=Counter)  # 1 for each held queue
    used: Table = field(default_factory=Counter)  # running executions, by queue or namespace with a limit
    limits: Table = field(default_factory=Counter)  # the limit, by queue or namespace
    circuits: Table = field(default_factory=Counter)  # circuits that are not closed, by job and state
    workers: Table = field(default_factory=Counter)  # workers by namespace and status
    slots: Table = field(default_factory=Counter)  # slots of workers, by namespace and "busy" or "idle"


class Surveyor:
    """Reads a survey from the store."""

    def __init__(self, env: Env, store: Store, hold_watch: HoldWatch, workers: Workers) -> None:
        self._env, self._store, self._hold_watch, self._workers = env, store, hold_watch, workers

    async def survey(self) -> Survey:
        """Count everything once."""
        found = Survey(await self._store.read(depths.names), await self._store.troubled_triggers())
        queues = await self._look_at_queues(found)
        await self._look_at_limits(found, queues)
        await self._look_at_circuits(found)
        await self._look_at_workers(found)
        return found

    async def _look_at_queues(self, found: Survey) -> Mapping[int, Labels]:
        """Count queued executions and held queues; return the labels of queues, without deleted namespaces."""
        now, queues = self._env.now(), dict[int, Labels]()
        for depth in await self._store.read(depths.all_depths):
            if depth.namespace in found.namespaces:
                label = queues[depth.queue] = found.namespaces[depth.namespace], depth.name
                found.queued[label] = depth.items
                found.oldest[label] = 0.0 if depth.since is None else max(0, now - depth.since) / SECOND
                if self._hold_watch.not_ended and self._hold_watch.hold_of_queue(depth.namespace, depth.queue):
                    found.held[label] = 1
        return queues

    async def _look_at_limits(self, found: Survey, queues: Mapping[int, Labels]) -> None:
        for use in await self._store.read(limit_reads.limit_uses):
            label = (found.namespaces.get(use.namespace or 0, ""), "") if use.queue is None else queues.get(use.queue)
            if label is not None:
                found.used[label], found.limits[label] = use.used, use.most
        found.holders = await self._store.read(lambda: limit_reads.count_holders(MOST_HOLDERS))

    async def _look_at_circuits(self, found: Survey) -> None:
        shut = (await self._store.read(circuit_reads.shut))[:MOST_CIRCUITS]
        jobs = await self._store.read(lambda: circuit_reads.owners({circuit.job for circuit in shut}))
        for circuit in shut:
            namespace, name = jobs.get(circuit.job, (0, ""))
            found.circuits[found.namespaces.get(namespace, ""), name, circuit.state] += 1

    async def _look_at_workers(self, found: Survey) -> None:
        found.workers.update({(name, "live"): 0 for name in found.namespaces.values()})
        counted = await self._workers.counts()
        for (namespace, status), count in counted.by_status.items():
            found.workers[found.namespaces.get(namespace, ""), status] = count
        for namespace, slots in counted.slots.items():
            name = found.namespaces.get(namespace, "")
            found.slots[name, "busy"], found.slots[name, "idle"] = slots.busy, slots.all - slots.busy
