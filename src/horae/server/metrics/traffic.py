"""Metrics of this server's work: answered requests, exchanges with workers, and executions from submission to end."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import get_args

from prometheus_client import Metric
from prometheus_client.registry import Collector

from horae.engine.server_node import ServerNode
from horae.model.base.buckets import Buckets
from horae.model.fleet.protocol import FailureKind
from horae.server.metrics.families import Labels, by_label, counter, counts_by_name, gauge, histogram

BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class RequestMetrics(Collector):
    """Answered requests and their durations. They are plain numbers, because only the event loop's thread counts."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, int]] = Counter()
        self._took: dict[str, Buckets] = {}

    def add(self, route: str, status: int, seconds: float) -> None:
        self._counts[route, status] += 1
        took = self._took.get(route)
        if took is None:
            took = self._took[route] = Buckets(BUCKETS)
        took.add(seconds)

    def collect(self) -> Iterator[Metric]:
        counts: dict[Labels, int] = {(route, str(status)): count for (route, status), count in self._counts.items()}
        yield counter("http_requests", "Answered requests, by route and status.", counts, ["route", "status"])
        yield histogram("http_request_seconds", "Duration of answers, by route.", by_label(self._took), ["route"])


class ExchangeMetrics(Collector):
    """Claims, and the exchanges that requested them."""

    def __init__(self, node: ServerNode) -> None:
        self._node = node

    def collect(self) -> Iterator[Metric]:
        counted = self._node.base.counters
        claims = {"granted": counted.claims, "empty": counted.claims_in_vain}
        yield counter("claims", "Claims for workers, by result: granted or empty.", by_label(claims), ["result"])
        help_text = "Reported outcomes per exchange, without the exchanges that reported none."
        yield histogram("exchange_reported_executions", help_text, counted.reported)
        help_text = "Granted executions per exchange, without the exchanges that got none."
        yield histogram("exchange_granted_executions", help_text, counted.granted)
        yield counter("exchange_answer_bytes", "Bytes of answers to exchanges.", counted.answer_bytes)
        yield gauge(
            "parked_exchanges", "Exchanges that wait for work on this server.", len(self._node.fleet.parking_lot)
        )


# The names of failure classes in metrics.
CLASSES: Mapping[FailureKind, str] = {
    "error": "job",
    "timeout": "timeout",
    "lost": "worker_lost",
    "platform": "platform",
}
ENDS = ("success", "failed", "cancelled", "skipped")
assert set(CLASSES) == set(get_args(FailureKind))


class ExecutionMetrics(Collector):
    """Executions from submission to end."""

    def __init__(self, node: ServerNode, names: Mapping[int, str]) -> None:
        """Take the node, and the mapping of namespaces to names, which grows while the server runs."""
        self._node, self._names = node, names

    def collect(self) -> Iterator[Metric]:
        yield from self._asked()
        yield from self._tried()
        yield from self._ended()

    def _asked(self) -> Iterator[Metric]:
        counted = self._node.base.counters
        yield counter("submitted_executions", "Executions submitted to this server.", counted.accepted)
        help_text = "Submissions answered with an existing execution of the same key."
        yield counter("deduplicated_executions", help_text, counted.deduplicated)
        yield counter(
            "fired_executions",
            "Executions that this server created for fires of triggers.",
            self._node.firing.scheduler.fired,
        )
        help_text = "Time from a trigger's nominal fire to the creation of its execution."
        yield histogram("schedule_lag_seconds", help_text, counted.lags)

    def _tried(self) -> Iterator[Metric]:
        counted = self._node.base.counters
        help_text = "Time that executions were queued before this server granted them to a worker."
        yield histogram("queue_wait_seconds", help_text, counted.waits)
        help_text = "Failed attempts that are retried by the policies of their jobs."
        yield counter("retries_scheduled", help_text, self._node.base.counters.totals["retried"])
        yield counter("retries_started", "Started attempts, without the first of each execution.", counted.repeated)
        help_text = "Failed attempts, by class: job (its own failure), timeout, worker_lost or platform."
        failures = {word: counted.failures[kind] for kind, word in CLASSES.items()}
        yield counter("failed_attempts", help_text, by_label(failures), ["class"])
        help_text = (
            "Executions in reports that came after their attempt or session had ended;"
            " such reports are refused and have no effect."
        )
        yield counter("stale_reports", help_text, counted.stale)

    def _ended(self) -> Iterator[Metric]:
        totals = self._node.base.counters.totals
        outcomes = {state: totals[state] for state in ENDS}
        yield counter("ended_executions", "Ended executions, by outcome.", by_label(outcomes), ["outcome"])
        help_text = (
            "Duration of the last attempts of executions, by outcome;"
            " executions that ran together count with their mean duration."
        )
        yield histogram("execution_seconds", help_text, by_label(self._node.base.counters.runs), ["outcome"])
        dead = counts_by_name(self._node.base.counters.dead, self._names)
        yield counter(
            "dead_letters", "Executions that failed for good, except steps of workflows.", by_label(dead), ["namespace"]
        )
