"""Metrics of this server's services, of the store's response times, and of the build."""

import platform
from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector

from horae.engine.server_node import ServerNode
from horae.server.metrics.families import by_label, counter, gauge, histogram
from horae.server.metrics.stored import StoredMetrics
from horae.version import __version__


class ServiceMetrics(Collector):
    """Counters of services."""

    def __init__(self, node: ServerNode) -> None:
        self._node = node

    def collect(self) -> Iterator[Metric]:
        node = self._node
        yield counter(
            "automatic_pauses", "Jobs that this server paused after failures in a row.", node.firing.streaks.paused
        )
        yield counter(
            "preempted_executions",
            "Executions that this server asked to stop in favour of more urgent executions.",
            node.admission.preemptor.requested,
        )
        help_text = (
            "Executions that were found waiting although their limits had room."
            " A few are normal after a server was killed; more indicate a fault."
        )
        yield counter("missed_admissions", help_text, node.admission.limit_reconciler.repaired)
        help_text = "State changes of circuits by this server, by new state: open, half-open or closed."
        yield counter("circuit_changes", help_text, by_label(node.admission.circuit_monitor.changes), ["state"])


class ServerInfoMetrics(Collector):
    """This server's build, and whether it trusts its clock."""

    def __init__(self, node: ServerNode) -> None:
        self._node = node

    def collect(self) -> Iterator[Metric]:
        help_text = (
            "1 if this server trusts its clock; 0 after a jump."
            " Triggers do not fire and nothing expires until the clock is corrected or the jump accepted."
        )
        yield gauge("clock_trusted", help_text, self._node.base.clock.trusted)
        build = (__version__, platform.python_version(), self._node.tenancy.store_report.kind)
        help_text = "Always 1; the labels are the version, Python's version and the kind of store."
        yield gauge("build_info", help_text, {build: 1}, ["version", "python", "store"])


class StoreMetrics(Collector):
    """Response times of the store, sizes of group commits, and the epoch."""

    def __init__(self, node: ServerNode, stored: StoredMetrics) -> None:
        self._node, self._stored = node, stored

    def collect(self) -> Iterator[Metric]:
        node = self._node
        yield histogram(
            "store_operation_seconds",
            "Duration of operations of the store, by operation.",
            by_label(node.tenancy.store_report.durations),
            ["operation"],
        )
        batches = {"submit": node.submitter.batches, **node.gateway.batches}
        help_text = "Requests that share a transaction (for the kind `read`: a read), by kind."
        yield histogram("group_commit_size", help_text, by_label(batches), ["kind"])
        help_text = "Transactions retried after a deadlock or a serialization failure."
        yield counter("store_transaction_retries", help_text, node.tenancy.store_report.retries)
        help_text = "The store's epoch. A restore or a failover increases it; later attempts get greater tokens."
        yield gauge("store_epoch", help_text, node.epoch)
        yield gauge("ready", "Whether the store answers.", node.ready and not self._stored.away)
        help_text = "1 if this scrape has figures from the store; 0 if the store cannot be reached or is too slow."
        yield gauge("store_scrape_success", help_text, self._stored.sample is not None)
