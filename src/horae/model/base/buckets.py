"""Buckets: how often something was how large, between fixed bounds."""

from bisect import bisect_left
from collections.abc import Sequence


class Buckets:
    """A list of counts, one for each bound and one for what lies above: counting is an addition.

    Values are so many to the unit of the bounds: microseconds are counted as they come, and told as seconds.
    """

    __slots__ = ("_own", "_total", "_unit", "bounds", "counts")

    def __init__(self, bounds: Sequence[float], unit: int = 1) -> None:
        self.bounds, self._unit = bounds, unit
        self._own = [bound * unit for bound in bounds]
        self.counts = [0] * (len(bounds) + 1)
        self._total: float = 0

    @property
    def total(self) -> float:
        """All values together, in the unit of the bounds."""
        return self._total / self._unit

    def add(self, value: float, times: int = 1) -> None:
        """Count a value, so many times; none is less than nothing."""
        if value > 0:
            self._total += value * times
        self.counts[bisect_left(self._own, value)] += times
