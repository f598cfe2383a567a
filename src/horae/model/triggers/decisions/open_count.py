"""The number of nominal fires between two instants that a calendar lets run, computed per opening, not per fire."""

from horae.env import Instant
from horae.model.triggers.decisions.count import count_fires
from horae.model.triggers.decisions.timetable import Timetable


def count_open(timetable: Timetable, after: Instant, before: Instant) -> int:
    """Count the fires strictly between two instants that run: those in openings, and those moved to an opening."""
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
