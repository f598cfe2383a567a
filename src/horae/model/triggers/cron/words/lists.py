"""Lists of values in plain English: joined, as ranges, and as regular steps."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple


class Progression(NamedTuple):
    """Equally spaced values."""

    first: int
    step: int
    last: int


def listed(words: Sequence[str]) -> str:
    """Join words as `a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def ordinal(number: int) -> str:
    """Format a number as `2nd`, `3rd`, `11th`."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def progression(values: Sequence[int]) -> Progression | None:
    """Return ordered values as a progression, or None if there are fewer than three or their distances differ."""
    if len(values) < 3:
        return None
    step = values[1] - values[0]
    if any(b - a != step for a, b in pairwise(values)):
        return None
    return Progression(values[0], step, values[-1])


def ranges(values: Sequence[int], name: Callable[[int], str]) -> list[str]:
    """Name ordered values; three or more consecutive values become `a to c`."""
    return _named(_runs(values), name)


def round_ranges(values: Sequence[int], size: int, name: Callable[[int], str]) -> list[str]:
    """Do the same as `ranges`, but treat the value 0 as the one after `size - 1`, as on a clock."""
    runs = _runs(values)
    if len(runs) > 1 and runs[0][0] == 0 and runs[-1][-1] == size - 1:
        runs[0] = runs.pop() + runs[0]
    return _named(runs, name)


def _named(runs: list[list[int]], name: Callable[[int], str]) -> list[str]:
    words: list[str] = []
    for run in runs:
        words += [f"{name(run[0])} to {name(run[-1])}"] if len(run) > 2 else map(name, run)
    return words


def _runs(values: Sequence[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return runs
