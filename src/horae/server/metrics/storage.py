"""What this server has to do with the store."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector

from horae.engine.node import Node
from horae.server.metrics.families import by, counter, gauge, histogram
from horae.server.metrics.shown import Shown


class Storage(Collector):
    """How long the store takes, how much is committed together, and which epoch it is in."""

    def __init__(self, node: Node, shown: Shown) -> None:
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
        yield gauge("store_looked", told, self._shown.looked is not None)
