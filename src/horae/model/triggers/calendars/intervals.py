"""Sets of whole seconds as intervals from a start to before an end: in order, and none touches another."""

from collections.abc import Iterable

Interval = tuple[int, int]
Intervals = tuple[Interval, ...]


def joined(intervals: Iterable[Interval]) -> Intervals:
    """The set that any intervals cover together; empty ones add nothing."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if start >= end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return tuple(found)


def common(one: Intervals, other: Intervals) -> Intervals:
    """What two sets have in common."""
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


def rest(within: Interval, taken: Intervals) -> Intervals:
    """What a set leaves of an interval."""
    edges = [within[0], *(edge for interval in common((within,), taken) for edge in interval), within[1]]
    return tuple((edges[i], edges[i + 1]) for i in range(0, len(edges), 2) if edges[i] < edges[i + 1])
