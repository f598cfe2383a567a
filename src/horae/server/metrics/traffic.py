"""Metrics of this server's work: answered requests, exchanges with workers, and executions from submission to end."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import get_args

from prometheus_client import Metric
from prometheus_client.registry import Collector

from horae.engine.server_node import ServerNode
from horae.model.base.buckets import Buckets
from horae.model.fleet.protocol import FailureKind
from horae.server.metrics.families import Labels, by, counter, gauge, histogram, named

BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class RequestMetrics(Collector):
    """Answered requests and their durations: plain numbers, because only the event loop's thread counts them."""

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
        yield counter("http_requests", "Requests answered, by route and status.", counts, ["route", "status"])
        yield histogram("http_request_seconds", "How long answers took.", by(self._took), ["route"])


class ExchangeMetrics(Collector):
    """Claims, and the exchanges that requested them."""

    def __init__(self, node: ServerNode) -> None:
        self._node = node

    def collect(self) -> Iterator[Metric]:
        counted = self._node.base.counters
        claims = {"granted": counted.claims, "empty": counted.claims_in_vain}
        yield counter(
            "claims", "Claims that were made for workers, by whether they brought something.", by(claims), ["result"]
        )
        told = "Executions of which an exchange brought the outcome, of those that brought any."
        yield histogram("exchange_reported_executions", told, counted.reported)
        told = "Executions that the answer to an exchange gave to its worker, of those that gave any."
        yield histogram("exchange_granted_executions", told, counted.granted)
        yield counter("exchange_answer_bytes", "Bytes of answers to exchanges.", counted.answer_bytes)
        yield gauge("parked_exchanges", "Exchanges that wait here for work.", len(self._node.fleet.parking_lot))


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
        """Take the node, and the names of all namespaces known by now."""
        self._node, self._names = node, names

    def collect(self) -> Iterator[Metric]:
        yield from self._asked()
        yield from self._tried()
        yield from self._ended()

    def _asked(self) -> Iterator[Metric]:
        counted = self._node.base.counters
        yield counter("submitted_executions", "Executions that were submitted to this server.", counted.accepted)
        told = "Executions of submissions that a key stood for already: answered with what there is, nothing was made."
        yield counter("deduplicated_executions", told, counted.deduplicated)
        yield counter(
            "fired_executions",
            "Executions that this server made for fires of triggers.",
            self._node.firing.scheduler.fired,
        )
        told = "How long after the instant that a trigger's fire was due at its execution was made."
        yield histogram("schedule_lag_seconds", told, counted.lags)

    def _tried(self) -> Iterator[Metric]:
        counted = self._node.base.counters
        told = "How long executions stood in a queue before this server gave them to a worker."
        yield histogram("queue_wait_seconds", told, counted.waits)
        told = "Attempts that failed and are to be tried again, as their jobs say."
        yield counter("retries", told, self._node.base.counters.totals["retried"])
        yield counter("repeated_attempts", "Attempts after an execution's first that were begun.", counted.repeated)
        told = "Attempts that failed, by class: job (its own), timeout, worker_lost or platform."
        failures = {word: counted.failures[kind] for kind, word in CLASSES.items()}
        yield counter("failed_attempts", told, by(failures), ["class"])
        told = "Executions in reports of attempts or sessions that were over by then: refused, they changed nothing."
        yield counter("stale_reports", told, counted.stale)

    def _ended(self) -> Iterator[Metric]:
        totals = self._node.base.counters.totals
        outcomes = {state: totals[state] for state in ENDS}
        yield counter("outcomes", "Executions that ended, by what became of them.", by(outcomes), ["outcome"])
        told = "How long the last attempts of executions ran, by outcome; of those that ran together, their mean."
        yield histogram("execution_seconds", told, by(self._node.base.counters.runs), ["outcome"])
        dead = named(self._node.base.counters.dead, self._names)
        yield counter(
            "dead_letters", "Executions that failed for good, without steps of workflows.", by(dead), ["namespace"]
        )
