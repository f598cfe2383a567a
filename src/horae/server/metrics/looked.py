"""What only the store knows, asked for each time that somebody reads the metrics."""

import asyncio
from collections import Counter
from collections.abc import Mapping

from msgspec import Struct, field

from horae.engine.node import Node
from horae.env import SECOND
from horae.errors import Busy, StoreUnavailable
from horae.features.alerts.store import alerts
from horae.features.backfills.store import backfills
from horae.features.dead_letters.store import replays
from horae.features.events.store import watches
from horae.server.http.promptly import heard
from horae.server.metrics.families import Labels
from horae.store.admission import circuit_reads, limit_reads
from horae.store.executions.reads import depths

MOST_CIRCUITS = 10_000
MOST_BACKFILLED = 1_000  # jobs and states
MOST_HOLDERS = 100_000  # that are counted
PATIENCE = 5.0  # seconds that the store has to say it all; Prometheus itself waits for ten
LITTLE_PATIENCE = 1.0  # if it is known to be away
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


class Look:
    """Asks the store, once for all who read at the same time."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._going: asyncio.Task[Looked] | None = None

    async def now(self) -> Looked | None:
        """What the store says; None if it takes longer than readers wait. Raises StoreUnavailable."""
        if self._going is None or self._going.done():
            self._going = asyncio.create_task(look(self._node), name="horae-metrics")
            self._going.add_done_callback(heard)
        going = self._going
        await asyncio.wait({going}, timeout=PATIENCE if self._node.ready else LITTLE_PATIENCE)
        if not going.done():
            return None
        try:
            return going.result()
        except StoreUnavailable:
            raise
        except Busy:
            return None


async def look(node: Node) -> Looked:
    """Ask the store."""
    names = await node.store.read(depths.names)
    looked = Looked(names, await node.store.troubled_triggers(), await node.store.read(watches.troubled))
    queues = await _look_at_queues(looked, node)
    await _look_at_limits(looked, node, queues)
    await _look_at_circuits(looked, node)
    await _look_at_backfills(looked, node)
    for (namespace, state), count in (await node.store.read(replays.standing)).items():
        looked.replays[names.get(namespace, ""), state] = count
    for (namespace, severity), count in (await node.store.read(alerts.firing)).items():
        looked.alerts[names.get(namespace, ""), severity] = count
    await _look_at_workers(looked, node)
    return looked


async def _look_at_queues(looked: Looked, node: Node) -> Mapping[int, Labels]:
    """What is queued, and what is held; returns the queues' labels. Queues of deleted namespaces are none."""
    now, queues = node.env.now(), dict[int, Labels]()
    for one in await node.store.read(depths.all_depths):
        if one.namespace in looked.namespaces:
            label = queues[one.queue] = looked.namespaces[one.namespace], one.name
            looked.queued[label] = one.items
            looked.oldest[label] = 0.0 if one.since is None else max(0, now - one.since) / SECOND
            if node.hold_watch.known and node.hold_watch.of_queue(one.namespace, one.queue):
                looked.held[label] = 1
    return queues


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
    looked.workers.update({(name, "live"): 0 for name in looked.namespaces.values()})
    counted = await node.workers.counts()
    for (namespace, status), count in counted.by_status.items():
        looked.workers[looked.namespaces.get(namespace, ""), status] = count
    for namespace, slots in counted.slots.items():
        name = looked.namespaces.get(namespace, "")
        looked.slots[name, "busy"], looked.slots[name, "idle"] = slots.busy, slots.all - slots.busy
