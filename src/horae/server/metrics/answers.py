"""Requests that this server answered."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector

from horae.model.base.buckets import Buckets
from horae.server.metrics.families import Labels, by, counter, histogram

BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Answers(Collector):
    """Requests answered, and how long that took: plain numbers, because only the event loop's thread counts them."""

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
