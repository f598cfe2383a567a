"""Metrics of this server's services, of the store's response times, and of the build."""

import platform
from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector

from horae.engine.server_node import ServerNode
from horae.server.metrics.families import by, counter, gauge, histogram
from horae.server.metrics.stored import StoredMetrics
from horae.version import __version__


class ServiceMetrics(Collector):
    """Counters of services."""

    def __init__(self, node: ServerNode) -> None:
        self._node = node

    def collect(self) -> Iterator[Metric]:
        node = self._node
        yield counter(
            "automatic_pauses", "Jobs that this server paused for failures in a row.", node.firing.streaks.paused
        )
        yield counter(
            "preempted_executions", "Executions that this server asked to give way.", node.admission.preemptor.requested
        )
        told = "Executions that waited for limits that had room: a few after a server was killed, more are a fault."
        yield counter("limit_repairs", told, node.admission.limit_reconciler.repaired)
        told = "Changes of circuits that this server made, by what they changed to: open, half-open or closed."
        yield counter("circuit_changes", told, by(node.admission.circuit_monitor.changes), ["state"])


class ServerInfoMetrics(Collector):
    """This server's build, and whether it trusts its clock."""

    def __init__(self, node: ServerNode) -> None:
        self._node = node

    def collect(self) -> Iterator[Metric]:
        told = (
            "Whether the clock is trusted: 0 after a jump, when nothing fires or expires until it is back or accepted."
        )
        yield gauge("clock_trusted", told, self._node.base.clock.trusted)
        build = (__version__, platform.python_version(), self._node.store.driver.dialect)
        told = "1, with what runs: its version, Python's, and the kind of store."
        yield gauge("build_info", told, {build: 1}, ["version", "python", "store"])


class StoreMetrics(Collector):
    """Response times of the store, sizes of group commits, and the epoch."""

    def __init__(self, node: ServerNode, shown: StoredMetrics) -> None:
        self._node, self._shown = node, shown

    def collect(self) -> Iterator[Metric]:
        node = self._node
        yield histogram(
            "store_seconds", "How long the store took, by operation.", by(node.store.timings.of), ["operation"]
        )
        batches = {"submit": node.submitter.batches, **node.gateway.batches}
        told = "How many requests were done by one transaction (look: by one read), by what they ask for."
        yield histogram("group_commit_size", told, by(batches), ["kind"])
        told = "Transactions that were repeated after a deadlock or a serialization failure."
        yield counter("store_repeats", told, node.store.driver.retries)
        told = "The store's epoch: a restore or a failover raises it, and ends what workers hold of the one before."
        yield gauge("store_epoch", told, node.epoch)
        yield gauge("ready", "Whether the store answers.", node.ready and not self._shown.away)
        told = "Whether this answer tells what the store knows; otherwise it is away, or takes too long to say it."
        yield gauge("store_looked", told, self._shown.sample is not None)
