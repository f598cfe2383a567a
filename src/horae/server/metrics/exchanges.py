"""What this server has to do with workers."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector

from horae.engine.node import Node
from horae.server.metrics.families import by, counter, gauge, histogram


class Exchanges(Collector):
    """Claims, and the exchanges that they are made for."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def collect(self) -> Iterator[Metric]:
        counted = self._node.counters
        claims = {"granted": counted.claims, "empty": counted.claims_in_vain}
        yield counter(
            "claims", "Claims that were made for workers, by whether they brought something.", by(claims), ["result"]
        )
        told = "Executions of which an exchange brought the outcome, of those that brought any."
        yield histogram("exchange_reported_executions", told, counted.reported)
        told = "Executions that the answer to an exchange gave to its worker, of those that gave any."
        yield histogram("exchange_granted_executions", told, counted.granted)
        yield counter("exchange_answer_bytes", "Bytes of answers to exchanges.", counted.answer_bytes)
        yield gauge("parked_exchanges", "Exchanges that wait here for work.", len(self._node.gateway.lot))
