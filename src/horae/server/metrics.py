"""Metrics: what this server measured, and what the store says when it is asked."""

from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import get_args

from msgspec import Struct, field
from prometheus_client import CollectorRegistry, Gauge, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from horae.engine.hooks import Told
from horae.engine.node import Node
from horae.model.circuit import CircuitState
from horae.server.call import Call
from horae.server.route import Route
from horae.store.moves import backfills, circuit_reads, replays, watches
from horae.store.moves.depths import all_depths
from horae.version import __version__

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4.encode()
MOST_CIRCUITS = 10_000
Labels = tuple[str, ...]
MOST_BACKFILLED = 1_000  # jobs and states
BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Outcomes(Collector):
    """What became of the attempts that were reported to this server."""

    def __init__(self, totals: Mapping[str, int]) -> None:
        self._totals = totals

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily("horae_outcomes", "Executions by what became of them.", labels=["outcome"])
        for outcome, count in self._totals.items():
            family.add_metric([outcome], count)
        yield family


class Deliveries(Collector):
    """What became of calls of webhooks at this server."""

    def __init__(self, counts: Mapping[Told, int]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        told = "Calls of webhooks, by what became of them: accepted, repeated, unsigned, unknown or unreadable."
        family = CounterMetricFamily("horae_webhooks", told, labels=["outcome"])
        for outcome in get_args(Told):
            family.add_metric([outcome], self._counts.get(outcome, 0))
        yield family


class CircuitChanges(Collector):
    """What this server changed circuits to."""

    def __init__(self, counts: Mapping[CircuitState, int]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        told = "Changes of circuits that this server made, by what they changed to: open, half-open or closed."
        family = CounterMetricFamily("horae_circuit_changes", told, labels=["state"])
        for state, count in self._counts.items():
            family.add_metric([state], count)
        yield family


class Counted(Collector):
    """What this server's services count as they go."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def collect(self) -> Iterator[Metric]:
        node = self._node
        started, retried = node.backfiller.started, node.replayer.retried
        yield _counter("backfill_executions", "Executions that this server started for backfills.", started)
        yield _counter("replayed_executions", "Dead letters that this server ran again in replays.", retried)
        yield _counter("automatic_pauses", "Jobs that this server paused for failures in a row.", node.streaks.paused)
        yield _counter("preempted_executions", "Executions that this server asked to give way.", node.preemptor.asked)
        told = "Executions that waited for limits that had room: a few after a server was killed, more are a fault."
        yield _counter("limit_repairs", told, node.limits.repaired)


def _counter(name: str, told: str, count: int) -> Metric:
    return CounterMetricFamily(f"horae_{name}", told, value=count)


class Answers(Collector):
    """Requests answered, and how long that took: plain numbers, because only the event loop's thread counts them."""

    def __init__(self) -> None:
        self._counts: Tally[tuple[str, int]] = Tally()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}

    def add(self, route: str, status: int, seconds: float) -> None:
        self._counts[route, status] += 1
        buckets = self._buckets.get(route)
        if buckets is None:
            buckets = self._buckets[route] = [0] * (len(BUCKETS) + 1)
            self._seconds[route] = 0.0
        buckets[bisect_left(BUCKETS, seconds)] += 1
        self._seconds[route] += seconds

    def collect(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "horae_http_requests", "Requests answered, by route and status.", labels=["route", "status"]
        )
        for (route, status), count in self._counts.items():
            requests.add_metric([route, str(status)], count)
        yield requests
        took = HistogramMetricFamily("horae_http_request_seconds", "How long answers took.", labels=["route"])
        bounds = [*map(str, BUCKETS), "+Inf"]
        for route, buckets in self._buckets.items():
            took.add_metric([route], list(zip(bounds, accumulate(buckets), strict=True)), self._seconds[route])
        yield took


class Metrics:
    """The instruments of one server."""

    def __init__(self, node: Node) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(Outcomes(node.statistics.totals))
        self.registry.register(Deliveries(node.hooks.counts))
        self.registry.register(CircuitChanges(node.circuits.changes))
        self._answers = Answers()
        self.registry.register(self._answers)
        self.queued = Gauge(
            "horae_queued_executions", "Executions queued, by queue.", ["namespace", "queue"], registry=self.registry
        )
        self.held = Gauge(
            "horae_held_queues",
            "1 for each queue of which nothing is started, by a hold or a maintenance window.",
            ["namespace", "queue"],
            registry=self.registry,
        )
        self.circuits = Gauge(
            "horae_circuits",
            "Circuits of jobs that are open or half-open, by job and state.",
            ["namespace", "job", "state"],
            registry=self.registry,
        )
        self.backfills = Gauge(
            "horae_backfills",
            "Backfills that are not completed, by job and state: running, paused, or cancelled with executions to end.",
            ["namespace", "job", "state"],
            registry=self.registry,
        )
        self.backfill_fires = Gauge(
            "horae_backfill_fires",
            "Fires of these backfills, by job and how they stand: to_come, left_alone, live, succeeded, failed or"
            " ended_otherwise.",
            ["namespace", "job", "standing"],
            registry=self.registry,
        )
        self.replays = Gauge(
            "horae_replays", "Replays of dead letters that go on or are paused, by state.", ["namespace", "state"],
            registry=self.registry,
        )  # fmt: skip
        self.registry.register(Counted(node))
        self.workers = Gauge("horae_workers", "Workers, by status.", ["namespace", "status"], registry=self.registry)
        self.ready = Gauge("horae_ready", "Whether the store answers.", registry=self.registry)
        self.troubled = Gauge(
            "horae_troubled_triggers",
            "Triggers that cannot be decided; they are tried again every minute, and the log and their jobs say why.",
            registry=self.registry,
        )
        self.watches_in_trouble = Gauge(
            "horae_troubled_watches",
            "Watched places that cannot be looked at; they are tried again, and the log says why.",
            registry=self.registry,
        )
        trusted = Gauge(
            "horae_clock_trusted",
            "Whether the clock is trusted: 0 after a jump, when nothing fires or expires until it is back or accepted.",
            registry=self.registry,
        )
        trusted.set_function(lambda: node.clock.trusted)
        build = Gauge("horae_build", "The version that runs.", ["version"], registry=self.registry)
        build.labels(__version__).set(1)

    def answered(self, route: Route, status: int, seconds: float) -> None:
        """A request was answered."""
        self._answers.add(route.name, status, seconds)


async def exposition(call: Call) -> bytes:
    """The text Prometheus reads."""
    metrics: Metrics = call.scope["app"].metrics
    node = call.node
    looked = await _look(node)
    # From here on nobody else looks: what two write at once would be told twice.
    metrics.ready.set(node.ready)
    metrics.troubled.set(looked.troubled)
    metrics.watches_in_trouble.set(looked.watches)
    gauges: tuple[tuple[Gauge, Mapping[Labels, float]], ...] = (
        (metrics.queued, looked.queued),
        (metrics.held, looked.held),
        (metrics.circuits, looked.circuits),
        (metrics.backfills, looked.backfills),
        (metrics.backfill_fires, looked.fires),
        (metrics.replays, looked.replays),
        (metrics.workers, looked.workers),
    )
    for gauge, values in gauges:
        gauge.clear()
        for labels, value in values.items():
            gauge.labels(*labels).set(value)
    return generate_latest(metrics.registry)


class Looked(Struct):
    """What only the store knows, of all namespaces: by their names and what else tells it apart."""

    troubled: int
    watches: int
    queued: Tally[Labels] = field(default_factory=Tally)
    held: Tally[Labels] = field(default_factory=Tally)
    circuits: Tally[Labels] = field(default_factory=Tally)
    backfills: Tally[Labels] = field(default_factory=Tally)
    fires: Tally[Labels] = field(default_factory=Tally)
    replays: Tally[Labels] = field(default_factory=Tally)
    workers: Tally[Labels] = field(default_factory=Tally)


async def _look(node: Node) -> Looked:
    directory = await node.store.directory()
    names = {tenant.id: tenant.name for tenant in directory.namespaces}
    queues = {queue.id: (names.get(queue.namespace, ""), queue.name) for queue in directory.queues}
    lanes = {lane.id: lane.queue for lane in directory.lanes}
    looked = Looked(await node.store.troubled_triggers(), await node.store.read(watches.troubled))
    for lane, count in (await node.store.read(all_depths)).items():
        if lane in lanes:
            looked.queued[queues[lanes[lane]]] += count
    for queue in directory.queues:
        if node.hold_watch.of_queue(queue.namespace, queue.id):
            looked.held[queues[queue.id]] = 1
    shut = (await node.store.read(circuit_reads.shut))[:MOST_CIRCUITS]
    jobs = await node.store.read(lambda: circuit_reads.owners({one.job for one in shut}))
    for standing in shut:
        namespace, name = jobs.get(standing.job, (0, ""))
        looked.circuits[names.get(namespace, ""), name, standing.state] += 1
    await _look_at_backfills(looked, node, names)
    for (namespace, state), count in (await node.store.read(replays.standing)).items():
        looked.replays[names.get(namespace, ""), state] = count
    for (namespace, status), count in (await node.workers.counts()).items():
        looked.workers[names.get(namespace, ""), status] = count
    return looked


async def _look_at_backfills(looked: Looked, node: Node, names: Mapping[int, str]) -> None:
    """How far unfinished backfills are: those of one job together."""
    for one in await node.store.read(lambda: backfills.standing(MOST_BACKFILLED)):
        whose = names.get(one.namespace, ""), one.job
        looked.backfills[*whose, one.state] = one.backfills
        c = one.counts
        standing = {
            "to_come": c.to_come, "left_alone": c.already + c.unknown, "live": c.live, "succeeded": c.succeeded,
            "failed": c.failed, "ended_otherwise": c.ended,
        }  # fmt: skip
        for name, count in standing.items():
            looked.fires[*whose, name] += count
