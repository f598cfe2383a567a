"""What every family is made of, and how its labels are bounded."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import accumulate
from typing import NamedTuple, TypeVar

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from horae.engine.server_node import ServerNode
from horae.model.base.buckets import Buckets

K = TypeVar("K", bound=str)
V = TypeVar("V")
Labels = tuple[str, ...]
MOST_SERIES = 500  # of one family that users' own names tell apart
OTHERS = "(others)"


def by(values: Mapping[K, V]) -> Mapping[Labels, V]:
    """What one label tells apart."""
    return {(own,): value for own, value in values.items()}


def counter(name: str, told: str, values: float | Mapping[Labels, float], labels: Sequence[str] = ()) -> Metric:
    """What only grows while this server runs."""
    if not isinstance(values, Mapping):
        return CounterMetricFamily(f"horae_{name}", told, value=values)
    family = CounterMetricFamily(f"horae_{name}", told, labels=labels)
    for own, value in values.items():
        family.add_metric(own, value)
    return family


def gauge(name: str, told: str, values: float | Mapping[Labels, float], labels: Sequence[str] = ()) -> Metric:
    """What is so now."""
    if not isinstance(values, Mapping):
        return GaugeMetricFamily(f"horae_{name}", told, value=values)
    family = GaugeMetricFamily(f"horae_{name}", told, labels=labels)
    for own, value in values.items():
        family.add_metric(own, value)
    return family


def histogram(name: str, told: str, values: Buckets | Mapping[Labels, Buckets], labels: Sequence[str] = ()) -> Metric:
    """How often something was how large."""
    family = HistogramMetricFamily(f"horae_{name}", told, labels=labels)
    for own, buckets in (values if isinstance(values, Mapping) else {(): values}).items():
        bounds = [*map(str, buckets.bounds), "+Inf"]
        family.add_metric(own, list(zip(bounds, accumulate(buckets.counts), strict=True)), buckets.total)
    return family


class Gauge(NamedTuple):
    """A family that only the store knows, as a feature declares it; no labels: one number."""

    name: str
    told: str
    labels: Sequence[str] = ()
    names: int = 0  # so many of the first labels are users' own names


class FeatureMetrics:
    """The metrics of a feature in one server."""

    gauges: Sequence[Gauge] = ()

    def __init__(self, node: ServerNode) -> None:
        self.node = node

    def collect(self) -> Iterator[Metric]:
        """Yield what this server counted."""
        yield from ()

    async def look(self, names: Mapping[int, str]) -> Mapping[str, Mapping[Labels, float]]:
        """Ask the store for the gauges, by their names; `names` are those of namespaces. Raises StoreUnavailable."""
        return {}


def _sum(one: float, other: float) -> float:
    return one + other


def named(counts: Mapping[int, float], names: Mapping[int, str], most: int = MOST_SERIES) -> Mapping[str, float]:
    """What was counted for namespaces, by their names: of the first so many; the rest together, as `(others)`.

    Names are only ever added, so nothing is told under another one later: no counter goes down. What has no name yet
    is told when it has one.
    """
    kept: dict[str, float] = {}
    for place, (namespace, own) in enumerate(names.items()):
        name = own if place < most else OTHERS
        kept[name] = kept.get(name, 0) + counts.get(namespace, 0)
    return kept


def bounded(
    values: Mapping[Labels, float],
    names: int,
    most: int = MOST_SERIES,
    together: Callable[[float, float], float] = _sum,
    order: Mapping[Labels, float] | None = None,
) -> Mapping[Labels, float]:
    """The largest of what users' names tell apart, or those of greatest `order`; the rest together, as `(others)`.

    The first so many labels are names; those after them are words of ours.
    """
    if len(values) <= most:
        return values
    greatest = values if order is None else order
    kept = {own: values[own] for own in nlargest(most, values, key=greatest.__getitem__)}
    rest: dict[Labels, float] = {}
    for own, value in values.items():
        if own not in kept:
            others = (OTHERS,) * names + own[names:]
            rest[others] = together(rest.get(others, 0), value)
    return kept | rest
