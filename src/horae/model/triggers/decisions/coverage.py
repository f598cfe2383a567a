"""The check that ledger rows cover each nominal fire of a trigger exactly once; flaws are reported as spans of fires.

It also checks that wall times skipped by clock changes are recorded, by a row of their own or by a row around them.
"""

from typing import Literal

from msgspec import Struct

from horae.env import Instant
from horae.model.triggers.decisions.count import count_fires
from horae.model.triggers.decisions.decide import latest, upcoming
from horae.model.triggers.decisions.lost_times import first_lost_time, lost_times_between
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Trigger

FlawKind = Literal["uncovered", "duplicate", "unexpected"]


class FireSpan(Struct, frozen=True, order=True):
    """All nominal fires from the first to the last, inclusive."""

    first: Instant
    last: Instant


class Flaw(Struct, frozen=True):
    """A flaw of the ledger: fires that no row covers (uncovered) or two rows cover (duplicate), or an unexpected row.

    A row is unexpected if its first or last instant is not a nominal fire.
    """

    kind: FlawKind
    span: FireSpan


class CoverageCheck:
    """Checks the ledger rows of one trigger, given in the order of their last fires.

    Nominal fires after `begun` must be covered; earlier fires may be covered, because a backfill adds rows for them.
    Only fires from `since` to `until`, both included, are checked, even if a row begins earlier or ends later.
    """

    def __init__(self, trigger: Trigger, rules: Rules, begun: Instant, since: Instant, until: Instant) -> None:
        self._trigger, self._rules, self._begun = trigger, rules, begun
        self._since, self._until = since, until
        self._reached = since - 1  # all fires up to this instant are checked
        self._holes: list[FireSpan] = []  # fires up to `_reached` that no row has covered so far
        self._duplicate: list[FireSpan] = []
        self._unexpected: list[FireSpan] = []
        lost = lost_times_between(trigger, rules, max(begun, since - 1), until + 1)
        self._lost_rows = dict.fromkeys((one.at for one in lost), 0)  # the number of rows that cover each lost time

    def add(self, first: Instant, last: Instant) -> None:
        """Check the next row; a row that begins after `until` is ignored."""
        if first > self._until:
            return
        if first == last and self._since <= first and upcoming(self._trigger, self._rules, self._reached) == first:
            self._reached = first  # the common case: exactly the next expected fire
            return
        self._check_ends(first, last)
        self._lost_rows.update({at: times + 1 for at, times in self._lost_rows.items() if first <= at <= last})
        first, last = max(first, self._since), min(last, self._until)
        if first <= self._reached:
            self._overlap(first, min(last, self._reached))
        self._find_hole(first)
        self._reached = max(self._reached, last)

    def add_lost(self, at: Instant) -> None:
        """Check a row for skipped wall times, in order among the other rows."""
        if at > self._until:
            return
        if at in self._lost_rows:
            self._lost_rows[at] += 1
        elif first_lost_time(self._trigger, self._rules, at - 1, at + 1) is None:
            self._unexpected.append(FireSpan(at, at))

    def finish(self) -> list[Flaw]:
        """Return all flaws in the order of time; no row may be added afterwards."""
        self._find_hole(self._until + 1)
        needed = (self._fires(max(hole.first - 1, self._begun), hole.last + 1) for hole in self._holes)
        found = [Flaw("uncovered", span) for span in needed if span is not None]
        found += [
            Flaw("duplicate" if times else "uncovered", FireSpan(at, at))
            for at, times in self._lost_rows.items()
            if times != 1
        ]
        found += [Flaw("duplicate", span) for span in self._duplicate]
        found += [Flaw("unexpected", span) for span in self._unexpected]
        return sorted(found, key=lambda flaw: flaw.span)

    def _check_ends(self, first: Instant, last: Instant) -> None:
        begins = upcoming(self._trigger, self._rules, first - 1)
        ends = begins if first == last else latest(self._trigger, self._rules, last + 1)
        if first > last or begins != first or ends != last:
            self._unexpected.append(FireSpan(first, last))

    def _find_hole(self, before: Instant) -> None:
        span = self._fires(self._reached, before)
        if span is not None:
            self._holes.append(span)

    def _fires(self, after: Instant, before: Instant) -> FireSpan | None:
        """Return the nominal fires strictly between two instants, or None without any."""
        first = upcoming(self._trigger, self._rules, after) if after + 1 < before else None
        if first is None or first >= before:
            return None
        return FireSpan(first, latest(self._trigger, self._rules, before) or first)

    def _overlap(self, first: Instant, last: Instant) -> None:
        """Handle the part of a row before the end of earlier rows: it fills holes; its other fires are doubled."""
        holes: list[FireSpan] = []
        at = first
        for hole in self._holes:
            if hole.last < first or hole.first > last:
                holes.append(hole)
                continue
            self._double(at, hole.first)
            at = hole.last + 1
            holes += filter(None, (self._fires(hole.first - 1, first), self._fires(last, hole.last + 1)))
        self._double(at, last + 1)
        self._holes = holes

    def _double(self, since: Instant, before: Instant) -> None:
        span = self._fires(since - 1, before)
        if span is not None:
            self._duplicate.append(span)


def name_fires(trigger: Trigger, rules: Rules, span: FireSpan, most: int) -> tuple[list[Instant], int]:
    """Return the first nominal fires of a span, at most `most`, and the number of all its fires."""
    named: list[Instant] = []
    at = upcoming(trigger, rules, span.first - 1)
    while at is not None and at <= span.last and len(named) < most:
        named.append(at)
        at = upcoming(trigger, rules, at)
    return named, count_fires(trigger, rules, span.first - 1, span.last + 1)
