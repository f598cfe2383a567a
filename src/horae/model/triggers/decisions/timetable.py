"""The fires of a trigger under a calendar.

A fire outside the openings is skipped, postponed to the next opening or advanced to the last open second. If several
fires are moved to the same instant, only the first runs; the others *follow* it. The search jumps from opening to
opening, so if a calendar is closed for years, a trigger that fires every second costs no more than a daily one.
"""

from horae.env import SECOND, Instant
from horae.model.triggers.calendars.compiled import Calendar
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import DerivedFires, Trigger, next_fire, previous_fire

MOST_JUMPS = 20_000  # enough for about 50 years with one opening a day, none of which contains a fire
FAR: Instant = 1 << 62


def due_instant(calendar: Calendar, rules: Rules, at: Instant) -> Instant | None:
    """Return when a nominal fire is due: its instant, its new instant if it is moved, or None if it is skipped."""
    if calendar.is_open(at):
        return at
    if rules.outside == "postpone":
        return calendar.next_open(at)
    return calendar.last_open(at) if rules.outside == "advance" else None


class Timetable(DerivedFires):
    """The nominal fires of a trigger that its calendar lets run, in place of the trigger.

    About the fires up to `decided_through`, it knows only the instant to which the last moved fire was moved
    (`moved_to`). `horizon` limits the search into the future.
    """

    def __init__(
        self,
        trigger: Trigger,
        rules: Rules,
        calendar: Calendar,
        decided_through: Instant,
        moved_to: Instant | None = None,
        horizon: Instant = FAR,
    ) -> None:
        self.calendar, self.rules = calendar, rules
        self.trigger, self._decided, self._moved_to, self._horizon = trigger, decided_through, moved_to, horizon

    def due(self, at: Instant) -> Instant | None:
        return due_instant(self.calendar, self.rules, at)

    def nominal_after(self, after: Instant) -> Instant | None:
        """Return the first nominal fire strictly after an instant, whether it runs or not."""
        start, end = self.rules.bounds
        found = next_fire(self.trigger, after if start is None else max(after, start - 1))
        return None if found is None or (end is not None and found >= end) else found

    def nominal_before(self, before: Instant) -> Instant | None:
        start, end = self.rules.bounds
        found = previous_fire(self.trigger, before if end is None else min(before, end))
        return None if found is None or (start is not None and found < start) else found

    def runs(self, at: Instant) -> bool:
        """Return whether a nominal fire runs: it is not skipped and does not follow another fire."""
        due = self.due(at)
        if due is None or self.rules.outside == "skip":
            return due is not None
        return not self._follows(at, due) and not self._came_too_late(at, due)

    def follows(self, at: Instant) -> bool:
        """Return whether a nominal fire follows an earlier one: both are due at the same instant, and that one runs."""
        due = self.due(at)
        return due is not None and self._follows(at, due)

    def _follows(self, at: Instant, due: Instant) -> bool:
        before = self.nominal_before(at)
        if before is None or before <= self._decided:
            return due in (self._moved_to, before)
        return self.due(before) == due

    def _came_too_late(self, at: Instant, due: Instant) -> bool:
        """Return whether a fire is advanced to an instant up to `decided_through`, so that it is too late to run."""
        return due < at and due <= self._decided

    def next(self, after: Instant) -> Instant | None:
        """Return the first fire strictly after an instant that runs, or the first one beyond the horizon.

        Return None if a long search finds no such fire.
        """
        at = self.nominal_after(after)
        for _ in range(MOST_JUMPS):
            if at is None or at > self._horizon or self.runs(at):
                return at
            at = self._beyond(at)
        return None

    def previous(self, before: Instant) -> Instant | None:
        """Return the last fire strictly before an instant that runs or that is already decided.

        Return None if a long search finds no such fire.
        """
        at = self.nominal_before(before)
        for _ in range(MOST_JUMPS):
            if at is None or at <= self._decided or self.runs(at):
                return at
            at = self._back(at)
        return None

    def boundary(self, at: Instant) -> Instant:
        """Return the earliest instant whose nominal fires are due at or after `at`."""
        if self.rules.outside == "postpone" and not self.calendar.is_open(at - 1):
            return self._closed_since(at - 1)
        if self.rules.outside == "advance" and not self.calendar.is_open(at):
            opens = self.calendar.next_open(at)
            return FAR if opens is None else opens
        return at

    def _beyond(self, at: Instant) -> Instant | None:
        """Return the next nominal fire that may run, after the fire `at`, which does not run."""
        if self.calendar.is_open(at):
            return self.nominal_after(at)
        opens = self.calendar.next_open(at)
        if opens is None:
            return None
        return self.nominal_after(opens if self.rules.outside == "postpone" else opens - 1)

    def _back(self, at: Instant) -> Instant | None:
        """Return the last nominal fire that may run, before the fire `at`, which does not run.

        If `at` is in closed time, it is the first fire of that closed time, or else an earlier fire.
        """
        if self.calendar.is_open(at):
            return self.nominal_before(at)
        closed = self._closed_since(at)
        if self.rules.outside != "skip":
            first = self.nominal_after(max(closed - 1, self._decided))
            if first is not None and first < at:
                return first
        return self.nominal_before(closed)

    def _closed_since(self, at: Instant) -> Instant:
        """Return when the closed time around an instant began."""
        last = self.calendar.last_open(at)
        return -FAR if last is None else last // SECOND * SECOND + SECOND
