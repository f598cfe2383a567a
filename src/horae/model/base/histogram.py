"""Histograms of durations: the number of values in each of a fixed series of buckets.

Larger values have wider buckets, so that a histogram stays small. All histograms have the same buckets, so that they
can be added up. Between a number and its double are 16 buckets. A value that is read from a histogram is off by at most
1/32 of it, however many histograms were added up.
"""

from collections.abc import Iterable
from math import ceil
from struct import pack, unpack

from msgspec import Struct

from horae.env import Micros

FINE = 16  # buckets between a number and its double
_BITS = FINE.bit_length()
_MOST = 0xFFFF_FFFF  # the largest count of a stored bucket


def bucket_of(value: Micros) -> int:
    """Return the number of the bucket of a value; each value below FINE has a bucket of its own."""
    if value < FINE:
        return max(0, value)
    shift = value.bit_length() - _BITS
    return shift * FINE + (value >> shift)


def bounds_of(bucket: int) -> tuple[Micros, Micros]:
    """Return the least value of a bucket, and the least value of the next bucket."""
    if bucket < FINE:
        return bucket, bucket + 1
    shift = bucket // FINE - 1
    low = (FINE + bucket % FINE) << shift
    return low, low + (1 << shift)


class Histogram(Struct):
    """The number of values in each bucket."""

    counts: dict[int, int] = {}

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def sum(self) -> float:
        """Return the approximate sum of all values."""
        return sum(_middle(bucket) * count for bucket, count in self.counts.items())

    def add(self, value: Micros, count: int = 1) -> None:
        bucket = bucket_of(value)
        self.counts[bucket] = self.counts.get(bucket, 0) + count

    def join(self, other: "Histogram") -> None:
        """Add the counts of another histogram."""
        counts = self.counts
        for bucket, count in other.counts.items():
            counts[bucket] = counts.get(bucket, 0) + count

    def percentile(self, share: float) -> float | None:
        """Return the least value such that this share (0 to 1) of all values is not above it; None without values."""
        return self.percentiles((share,))[0]

    def percentiles(self, shares: Iterable[float]) -> list[float | None]:
        """Return several percentiles at once; the shares must be in rising order."""
        total, below, bucket = self.total, 0, 0
        found: list[float | None] = []
        buckets = iter(sorted(self.counts))
        for share in shares:
            rank = max(1, ceil(share * total))
            while total and below < rank:
                bucket = next(buckets)
                below += self.counts[bucket]
            found.append(_middle(bucket) if total else None)
        return found

    def packed(self) -> bytes | None:
        """Encode the histogram for the store; None when it is empty."""
        if not self.counts:
            return None
        buckets = sorted(self.counts)
        counts = [min(self.counts[bucket], _MOST) for bucket in buckets]
        return pack(f"<{len(buckets)}H{len(buckets)}I", *buckets, *counts)

    def join_packed(self, stored: bytes | None) -> None:
        """Add the counts of a stored histogram."""
        if not stored:
            return
        size = len(stored) // 6
        numbers = unpack(f"<{size}H{size}I", stored)
        counts = self.counts
        if not counts:
            counts.update(zip(numbers[:size], numbers[size:], strict=True))
            return
        for bucket, count in zip(numbers[:size], numbers[size:], strict=True):
            counts[bucket] = counts.get(bucket, 0) + count


def _middle(bucket: int) -> float:
    low, high = bounds_of(bucket)
    return float(low) if high - low == 1 else (low + high) / 2
