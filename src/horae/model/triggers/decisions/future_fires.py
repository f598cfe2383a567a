"""Numbers of fires: future ones of a trigger in each of several time spans, and those that a calendar lets run."""

from collections.abc import Sequence
from itertools import pairwise

from horae.env import Instant
from horae.model.triggers.decisions.count import count_fires
from horae.model.triggers.decisions.decide import upcoming
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.timetable import Timetable
from horae.model.triggers.decisions.values import Trigger

FEW = 12  # up to this many fires (more if there are many time spans) are enumerated; more are counted by time span


def count_future_fires(
    trigger: Trigger,
    rules: Rules,
    decided_through: Instant,
    fired: int,
    edges: Sequence[Instant],
    timetable: Timetable | None = None,
) -> list[int]:
    """Count the undecided fires between each two consecutive `edges`.

    With a timetable, count only fires that the calendar lets run.
    """
    begin = max(decided_through, edges[0] - rules.offset - 1)
    left = fires_left(trigger, rules, fired, decided_through, begin, timetable)
    counts = _one_by_one(trigger, rules, begin, edges) if timetable is None else None
    if counts is None:
        counts = [
            _between(trigger, rules, max(begin, low - rules.offset - 1), high - rules.offset, timetable)
            for low, high in pairwise(edges)
        ]
    return counts if left is None else _at_most(counts, left)


def fires_left(
    trigger: Trigger,
    rules: Rules,
    fired: int,
    decided_through: Instant,
    at: Instant,
    timetable: Timetable | None = None,
) -> int | None:
    """Return how many fires after an instant `max_fires` still allows, or None without a limit.

    `fired` is the number of fires that ran up to `decided_through`. All fires from there to the instant are assumed to
    run; with a timetable, all that the calendar lets run.
    """
    if rules.max_fires is None or at < decided_through:
        return rules.max_fires
    return max(0, rules.max_fires - fired - _between(trigger, rules, decided_through, at + 1, timetable))


def _one_by_one(trigger: Trigger, rules: Rules, at: Instant, edges: Sequence[Instant]) -> list[int] | None:
    """Count by enumeration; return None if there are too many fires for that."""
    counts, place = [0] * (len(edges) - 1), 0
    for _ in range(max(FEW, len(counts) // 2)):
        following = upcoming(trigger, rules, at)
        if following is None or following + rules.offset >= edges[-1]:
            return counts
        while following + rules.offset >= edges[place + 1]:
            place += 1
        counts[place] += 1
        at = following
    return None


def _between(trigger: Trigger, rules: Rules, after: Instant, before: Instant, timetable: Timetable | None) -> int:
    if after >= before:
        return 0
    return count_fires(trigger, rules, after, before) if timetable is None else count_open(timetable, after, before)


def _at_most(counts: Sequence[int], left: int) -> list[int]:
    cut: list[int] = []
    for count in counts:
        cut.append(min(count, left))
        left -= cut[-1]
    return cut


def count_open(timetable: Timetable, after: Instant, before: Instant) -> int:
    """Count the fires strictly between two instants that run: those in openings, and those moved to an opening.

    The cost depends on the number of openings, not on the number of fires.
    """
    count, closed = 0, after  # the closed time before the next opening begins after the instant `closed`
    for opening in timetable.calendar.openings(after + 1, before):
        count += _moved(timetable, closed, min(opening.start, before))
        count += count_fires(
            timetable.trigger, timetable.rules, max(after, opening.start - 1), min(before, opening.end)
        )
        if opening.start > after and timetable.follows(opening.start) and _is_nominal(timetable, opening.start):
            count -= 1
        closed = opening.end - 1
    return count + _moved(timetable, max(closed, after), before)


def _moved(timetable: Timetable, after: Instant, before: Instant) -> int:
    """Count the fires of a closed time that run: none or one. The first runs, and the others are merged into it."""
    if timetable.rules.outside == "skip":
        return 0
    first = timetable.nominal_after(after)
    return int(first is not None and first < before and timetable.runs(first))


def _is_nominal(timetable: Timetable, at: Instant) -> bool:
    return timetable.nominal_after(at - 1) == at
