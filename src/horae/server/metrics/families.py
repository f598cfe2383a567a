"""Building blocks of metric families, and limits on their labels."""

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
MOST_SERIES = 500  # series of one family with labels that users chose
OTHERS = "(others)"


def by_label(values: Mapping[K, V]) -> Mapping[Labels, V]:
    """Convert each key to a tuple with this one label."""
    return {(own,): value for own, value in values.items()}


def counter(name: str, help_text: str, values: float | Mapping[Labels, float], labels: Sequence[str] = ()) -> Metric:
    """Return a family of counters, which only grow while this server runs."""
    if not isinstance(values, Mapping):
        return CounterMetricFamily(f"horae_{name}", help_text, value=values)
    family = CounterMetricFamily(f"horae_{name}", help_text, labels=labels)
    for own, value in values.items():
        family.add_metric(own, value)
    return family


def gauge(name: str, help_text: str, values: float | Mapping[Labels, float], labels: Sequence[str] = ()) -> Metric:
    """Return a family of present values."""
    if not isinstance(values, Mapping):
        return GaugeMetricFamily(f"horae_{name}", help_text, value=values)
    family = GaugeMetricFamily(f"horae_{name}", help_text, labels=labels)
    for own, value in values.items():
        family.add_metric(own, value)
    return family


def histogram(
    name: str, help_text: str, values: Buckets | Mapping[Labels, Buckets], labels: Sequence[str] = ()
) -> Metric:
    """Return a family with a distribution of sizes."""
    family = HistogramMetricFamily(f"horae_{name}", help_text, labels=labels)
    for own, buckets in (values if isinstance(values, Mapping) else {(): values}).items():
        bounds = [*map(str, buckets.bounds), "+Inf"]
        family.add_metric(own, list(zip(bounds, accumulate(buckets.counts), strict=True)), buckets.total)
    return family


class Gauge(NamedTuple):
    """A gauge that a feature reads from the store. Without labels it is a single number."""

    name: str
    help_text: str
    labels: Sequence[str] = ()
    chosen_labels: int = 0  # number of leading labels with values that users chose, such as names of queues


class FeatureMetrics:
    """The metrics of a feature in one server."""

    gauges: Sequence[Gauge] = ()

    def __init__(self, node: ServerNode) -> None:
        self.node = node

    def collect(self) -> Iterator[Metric]:
        """Yield the figures that this server counted."""
        yield from ()

    async def read_gauges(self, names: Mapping[int, str]) -> Mapping[str, Mapping[Labels, float]]:
        """Read the values of the gauges from the store, by the gauge's name. Raises StoreUnavailable.

        `names` maps the ids of namespaces to their names.
        """
        return {}


def _sum(one: float, other: float) -> float:
    return one + other


def counts_by_name(
    counts: Mapping[int, float], names: Mapping[int, str], most: int = MOST_SERIES
) -> Mapping[str, float]:
    """Return counts by the names of namespaces instead of their ids.

    The first `most` names in `names` get a count each; the counts of all others are added up as `(others)`. Callers
    only append to `names`, so a namespace never moves to `(others)` later, and no counter decreases. A namespace
    without a name is left out until it has one.
    """
    kept: dict[str, float] = {}
    for place, (namespace, own) in enumerate(names.items()):
        name = own if place < most else OTHERS
        kept[name] = kept.get(name, 0) + counts.get(namespace, 0)
    return kept


def limit_series(
    values: Mapping[Labels, float],
    chosen_labels: int,
    most: int = MOST_SERIES,
    combine: Callable[[float, float], float] = _sum,
    sort_values: Mapping[Labels, float] | None = None,
) -> Mapping[Labels, float]:
    """Return the `most` series with the largest values, or with the largest numbers in `sort_values`.

    The other series get `(others)` for their first `chosen_labels` labels, which are names that users chose, such as
    queues and jobs; equal series are then added up by `combine`. The labels after these are fixed words, such as
    states, and are kept.
    """
    if len(values) <= most:
        return values
    greatest = values if sort_values is None else sort_values
    kept = {own: values[own] for own in nlargest(most, values, key=greatest.__getitem__)}
    rest: dict[Labels, float] = {}
    for own, value in values.items():
        if own not in kept:
            others = (OTHERS,) * chosen_labels + own[chosen_labels:]
            rest[others] = combine(rest.get(others, 0), value)
    return kept | rest
