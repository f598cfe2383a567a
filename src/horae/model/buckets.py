"""Buckets: how often something was how large, between fixed bounds."""

from bisect import bisect_left
from collections.abc import Sequence


class Buckets:
    """A list of counts, one for each bound and one for what lies above: counting is an addition."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float, times: int = 1) -> None:
        """Count a value, so many times."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times
