"""Counts of values in buckets with fixed bounds."""

from bisect import bisect_left
from collections.abc import Sequence


class Buckets:
    """The number of values in each bucket: a bucket for each upper bound, and one for values above all bounds.

    Values may be given in a smaller unit than the bounds; `unit` says how many of that unit make one unit of the
    bounds. For example, values in microseconds and bounds in seconds need a `unit` of 1,000,000.
    """

    __slots__ = ("_own", "_total", "_unit", "bounds", "counts")

    def __init__(self, bounds: Sequence[float], unit: int = 1) -> None:
        self.bounds, self._unit = bounds, unit
        self._own = [bound * unit for bound in bounds]
        self.counts = [0] * (len(bounds) + 1)
        self._total: float = 0

    @property
    def total(self) -> float:
        """Return the sum of all values, in the unit of the bounds."""
        return self._total / self._unit

    def add(self, value: float, times: int = 1) -> None:
        """Count a value `times` times; a negative value counts as 0."""
        if value > 0:
            self._total += value * times
        self.counts[bisect_left(self._own, value)] += times
