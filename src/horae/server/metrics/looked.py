"""What only the store knows, asked for each time that somebody reads the metrics."""

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import Struct, field
from prometheus_client import Metric
from prometheus_client.registry import Collector

from horae.engine.node import Node
from horae.env import SECOND
from horae.server.metrics.families import Labels, bounded, gauge
from horae.store.moves import alerts, backfills, circuit_reads, limit_reads, replays, watches
from horae.store.moves.depths import all_depths

MOST_CIRCUITS = 10_000
MOST_BACKFILLED = 1_000  # jobs and states
MOST_HOLDERS = 100_000  # that are counted
Table = Counter[Labels]


class Looked(Struct):
    """What the store said, of all namespaces: by their names and what else tells it apart."""

    namespaces: dict[int, str] = {}
    troubled: int = 0
    watches: int = 0
    holders: int = 0
    queued: Table = field(default_factory=Counter)
    oldest: dict[Labels, float] = {}
    held: Table = field(default_factory=Counter)
    used: Table = field(default_factory=Counter)
    limits: Table = field(default_factory=Counter)
    circuits: Table = field(default_factory=Counter)
    backfills: Table = field(default_factory=Counter)
    fires: Table = field(default_factory=Counter)
    replays: Table = field(default_factory=Counter)
    alerts: Table = field(default_factory=Counter)
    workers: Table = field(default_factory=Counter)
    slots: Table = field(default_factory=Counter)


class Shown(Collector):
    """The last look."""

    def __init__(self) -> None:
        self.looked = Looked()

    def collect(self) -> Iterator[Metric]:
        yield from self._queues()
        yield from self._workers()
        yield from self._limits()
        yield from self._jobs()
        looked = self.looked
        told = "Triggers that cannot be decided; they are tried again every minute, and the log and their jobs say why."
        yield gauge("troubled_triggers", told, looked.troubled)
        told = "Watched places that cannot be looked at; they are tried again, and the log says why."
        yield gauge("troubled_watches", told, looked.watches)

    def _queues(self) -> Iterator[Metric]:
        looked, labels = self.looked, ["namespace", "queue"]
        yield gauge("queued_executions", "Executions queued, by queue.", bounded(looked.queued, 2), labels)
        told = "How long the oldest of what is queued has been queued, by queue; of no queue that is empty."
        yield gauge("oldest_queued_seconds", told, bounded(looked.oldest, 2, together=max), labels)
        told = "1 for each queue of which nothing is started, by a hold or a maintenance window."
        yield gauge("held_queues", told, bounded(looked.held, 2), labels)

    def _workers(self) -> Iterator[Metric]:
        looked = self.looked
        yield gauge("workers", "Workers, by status.", bounded(looked.workers, 1), ["namespace", "status"])
        told = "Slots of workers that are there, by whether something runs in them: busy or idle."
        yield gauge("worker_slots", told, bounded(looked.slots, 1), ["namespace", "state"])

    def _limits(self) -> Iterator[Metric]:
        looked, labels = self.looked, ["namespace", "queue"]
        told = "Executions that run under the limit of a queue, or of a namespace (no queue)."
        yield gauge("limit_used", told, bounded(looked.used, 2), labels)
        told = "How many of them may run at once."
        yield gauge("limit_size", told, bounded(looked.limits, 2), labels)
        told = f"Entries of executions that hold limits by key and sequences; {MOST_HOLDERS} stands for more."
        yield gauge("limit_holders", told, looked.holders)

    def _jobs(self) -> Iterator[Metric]:
        looked, by_job = self.looked, ["namespace", "job_name", "state"]
        told = "Circuits of jobs that are open or half-open, by job and state."
        yield gauge("circuits", told, bounded(looked.circuits, 2), by_job)
        told = (
            "Backfills that are not completed, by job and state: running, paused, or cancelled with executions to end."
        )
        yield gauge("backfills", told, bounded(looked.backfills, 2), by_job)
        told = (
            "Fires of these backfills, by job and how they stand: to_come, left_alone, live, succeeded, failed or"
            " ended_otherwise."
        )
        yield gauge("backfill_fires", told, bounded(looked.fires, 2), ["namespace", "job_name", "standing"])
        told = "Replays of dead letters that go on or are paused, by state."
        yield gauge("replays", told, bounded(looked.replays, 1), ["namespace", "state"])
        told = "Alerts that are firing, by severity."
        yield gauge("alerts", told, bounded(looked.alerts, 1), ["namespace", "severity"])


async def look(node: Node) -> Looked:
    """Ask the store."""
    directory = await node.store.directory()
    names = {tenant.id: tenant.name for tenant in directory.namespaces}
    queues = {queue.id: (names.get(queue.namespace, ""), queue.name) for queue in directory.queues}
    lanes = {lane.id: queues[lane.queue] for lane in directory.lanes}
    looked = Looked(names, await node.store.troubled_triggers(), await node.store.read(watches.troubled))
    await _look_at_queues(looked, node, lanes)
    for queue in directory.queues:
        if node.hold_watch.of_queue(queue.namespace, queue.id):
            looked.held[queues[queue.id]] = 1
    await _look_at_limits(looked, node, queues)
    await _look_at_circuits(looked, node)
    await _look_at_backfills(looked, node)
    for (namespace, state), count in (await node.store.read(replays.standing)).items():
        looked.replays[names.get(namespace, ""), state] = count
    for (namespace, severity), count in (await node.store.read(alerts.firing)).items():
        looked.alerts[names.get(namespace, ""), severity] = count
    await _look_at_workers(looked, node)
    return looked


async def _look_at_queues(looked: Looked, node: Node, lanes: Mapping[int, Labels]) -> None:
    now = node.env.now()
    for lane, (count, since) in (await node.store.read(all_depths)).items():
        if lane in lanes:
            queue = lanes[lane]
            looked.queued[queue] += count
            looked.oldest[queue] = max(looked.oldest.get(queue, 0.0), max(0, now - since) / SECOND)


async def _look_at_limits(looked: Looked, node: Node, queues: Mapping[int, Labels]) -> None:
    for use in await node.store.read(limit_reads.in_use):
        label = (looked.namespaces.get(use.namespace or 0, ""), "") if use.queue is None else queues.get(use.queue)
        if label is not None:
            looked.used[label], looked.limits[label] = use.used, use.most
    looked.holders = await node.store.read(lambda: limit_reads.holders(MOST_HOLDERS))


async def _look_at_circuits(looked: Looked, node: Node) -> None:
    shut = (await node.store.read(circuit_reads.shut))[:MOST_CIRCUITS]
    jobs = await node.store.read(lambda: circuit_reads.owners({one.job for one in shut}))
    for standing in shut:
        namespace, name = jobs.get(standing.job, (0, ""))
        looked.circuits[looked.namespaces.get(namespace, ""), name, standing.state] += 1


async def _look_at_backfills(looked: Looked, node: Node) -> None:
    """How far unfinished backfills are: those of one job together."""
    for one in await node.store.read(lambda: backfills.standing(MOST_BACKFILLED)):
        whose = looked.namespaces.get(one.namespace, ""), one.job
        looked.backfills[*whose, one.state] = one.backfills
        c = one.counts
        standing = {
            "to_come": c.to_come, "left_alone": c.already + c.unknown, "live": c.live, "succeeded": c.succeeded,
            "failed": c.failed, "ended_otherwise": c.ended,
        }  # fmt: skip
        for name, count in standing.items():
            looked.fires[*whose, name] += count


async def _look_at_workers(looked: Looked, node: Node) -> None:
    counted = await node.workers.counts()
    for (namespace, status), count in counted.by_status.items():
        looked.workers[looked.namespaces.get(namespace, ""), status] = count
    for namespace, slots in counted.slots.items():
        name = looked.namespaces.get(namespace, "")
        looked.slots[name, "busy"], looked.slots[name, "idle"] = slots.busy, slots.all - slots.busy
