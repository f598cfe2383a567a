"""Sets of whole seconds, as ordered half-open intervals that neither overlap nor touch."""

from collections.abc import Iterable

Interval = tuple[int, int]
Intervals = tuple[Interval, ...]


def union_of(intervals: Iterable[Interval]) -> Intervals:
    """Return the union of intervals; empty intervals are ignored."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if start >= end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return tuple(found)


def intersection_of(one: Intervals, other: Intervals) -> Intervals:
    """Return the intersection of two sets."""
    found: list[Interval] = []
    i = j = 0
    while i < len(one) and j < len(other):
        start, end = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if start < end:
            found.append((start, end))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def difference_of(within: Interval, taken: Intervals) -> Intervals:
    """Return the part of an interval outside a set."""
    edges = [within[0], *(edge for interval in intersection_of((within,), taken) for edge in interval), within[1]]
    return tuple((edges[i], edges[i + 1]) for i in range(0, len(edges), 2) if edges[i] < edges[i + 1])
