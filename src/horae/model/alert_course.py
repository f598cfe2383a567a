"""What becomes of alerts when a rule was looked at: opened, gone on, reminded of, recovered. Pure."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.alert import Finding, Rule
from horae.model.duration import MINUTE

MOST_OPEN = 200  # alerts of one rule; what is beyond them opens when some are over
REFRESH = MINUTE  # how often what goes on is written anew


class Open(Struct, frozen=True, kw_only=True):
    """An alert that is not over."""

    id: UUID
    subject: str
    last_at: Instant
    notified_at: Instant | None = None  # when it was told last; None: the rule's rate had no room
    acknowledged: bool = False
    execution: UUID | None = None


class Course(Struct, frozen=True, kw_only=True):
    """What to write. New alerts without room are opened silently, and told when there is."""

    opened: tuple[tuple[Finding, bool], ...] = ()  # and whether it is told
    told: tuple[tuple[Open, Finding], ...] = ()  # opened before, told now for the first time
    reminded: tuple[tuple[Open, Finding], ...] = ()
    refreshed: tuple[tuple[Open, Finding], ...] = ()
    recovered: tuple[tuple[Open, bool], ...] = ()  # and whether that is told
    pace: Instant = 0

    def __bool__(self) -> bool:
        return bool(self.opened or self.told or self.reminded or self.refreshed or self.recovered)


def course(rule: Rule, found: Sequence[Finding], opened: Sequence[Open], pace: Instant, now: Instant) -> Course:
    """Compare what is so with what is open. Only what was told of its beginning is told of its end."""
    known = {alert.subject: alert for alert in opened}
    by_subject = {finding.subject: finding for finding in reversed(found)}
    new = [finding for subject, finding in sorted(by_subject.items()) if subject not in known]
    room = rule.at_most.room(pace, now)
    going_on = [(alert, by_subject[alert.subject]) for alert in opened if alert.subject in by_subject]
    untold = [one for one in going_on if one[0].notified_at is None and not one[0].acknowledged][:room]
    reminded = [one for one in going_on if _is_due(rule, one[0], now)][: room - len(untold)]
    left = room - len(untold) - len(reminded)
    made = new[: max(0, MOST_OPEN - len(going_on))]
    said = [*untold, *reminded]
    return Course(
        opened=tuple((finding, i < left) for i, finding in enumerate(made)),
        told=tuple(untold),
        reminded=tuple(reminded),
        refreshed=tuple(one for one in going_on if one not in said and now - one[0].last_at >= REFRESH),
        recovered=tuple(
            (alert, rule.recovery and alert.notified_at is not None)
            for alert in opened
            if alert.subject not in by_subject
        ),
        pace=rule.at_most.after(pace, len(said) + min(left, len(made)), now),
    )


def _is_due(rule: Rule, alert: Open, now: Instant) -> bool:
    """Whether it is time to remind somebody."""
    if rule.repeat_every is None or alert.acknowledged or alert.notified_at is None:
        return False
    return now - alert.notified_at >= rule.repeat_every
