"""The pure decision after an evaluation of a rule: which alerts open, continue or end, and which notices are sent."""

from collections.abc import Sequence
from typing import TypeVar
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.features.alerts.model.findings import RuleFinding
from horae.features.alerts.model.rule import Rule
from horae.model.base.duration import MINUTE

MOST_OPEN = 10_000  # open alerts of a rule; further findings are only counted until other alerts end
MOST_SINGLE = 3  # up to so many alerts get a notice each; more alerts share one notice
REFRESH = MINUTE  # the pause between two updates of the row of a continuing alert
T = TypeVar("T")


class OpenAlert(Struct, frozen=True, kw_only=True):
    """The data about an open alert that the decision needs."""

    id: UUID
    subject: str
    last_at: Instant  # when its row was last updated
    notified_at: Instant | None = None  # the last notice; None: the rule's rate limit had no room for the first one
    acknowledged: bool = False
    execution: UUID | None = None


class EndedAlert(Struct, frozen=True):
    """An alert that ends."""

    alert: OpenAlert
    notified: bool  # whether a notice about the end is sent
    forgotten: str = ""  # the reason why it ends although the subject did not recover; empty if it did


class AlertChanges(Struct, frozen=True, kw_only=True):
    """The changes of alerts to write, and the notices to send.

    While the rule's rate limit of notices has no room, new alerts open without a notice. They get one when it has room.
    """

    opened: tuple[tuple[RuleFinding, bool], ...] = ()  # findings that open an alert, and whether a notice is sent now
    notified: tuple[tuple[OpenAlert, RuleFinding], ...] = ()  # alerts that opened before and get their first notice now
    reminded: tuple[tuple[OpenAlert, RuleFinding], ...] = ()  # alerts for which a reminder is sent
    refreshed: tuple[tuple[OpenAlert, RuleFinding], ...] = ()  # alerts that continue, and whose row is updated
    ended: tuple[EndedAlert, ...] = ()
    overflow: int = 0  # findings that open no alert, because the rule has MOST_OPEN alerts
    firing_notices: int = 0  # the number of notices about new alerts: one for each alert, or one for all
    reminder_notices: int = 0  # the number of reminders: one for each alert, or one for all
    pace: Instant = 0  # the new state of the rule's rate limit, see `model.admission.rate`
    unnotified: int = 0  # alerts that opened and ended without a notice, since the last notice about new alerts

    def __bool__(self) -> bool:
        return bool(self.opened or self.notified or self.reminded or self.refreshed or self.ended)


def decide_changes(
    rule: Rule,
    found: Sequence[RuleFinding],
    opened: Sequence[OpenAlert],
    pace: Instant,
    now: Instant,
    unnotified: int = 0,
) -> AlertChanges:
    """Compare the findings of a rule with its open alerts (`opened`), and decide what changes.

    A notice about the end of an alert is sent only if one was sent about its beginning. Without channels there are no
    notices; alerts that are still open when the rule gets a channel are notified then. `pace` is the state of the
    rule's rate limit of notices.
    """
    open_subjects = {alert.subject for alert in opened}
    by_subject = {finding.subject: finding for finding in reversed(found)}
    gone = {subject: by_subject.pop(subject) for subject, finding in list(by_subject.items()) if finding.forgotten}
    new = [finding for subject, finding in sorted(by_subject.items()) if subject not in open_subjects]
    room = rule.at_most.room(pace, now) if rule.channels else 0
    continuing = [(alert, by_subject[alert.subject]) for alert in opened if alert.subject in by_subject]
    without_notice = [pair for pair in continuing if pair[0].notified_at is None and not pair[0].acknowledged]
    to_open = new[: max(0, MOST_OPEN - len(continuing))]
    notify = bool(room and (without_notice or to_open))
    firing_notices = notice_count(len(without_notice) + len(to_open), room) if notify else 0
    reminded = [pair for pair in continuing if _is_due(rule, pair[0], now)] if room > firing_notices else []
    reminder_notices = notice_count(len(reminded), room - firing_notices)
    in_notices = {alert.id for alert, _ in (*(without_notice if notify else ()), *reminded)}
    ended = tuple(_end(rule, alert, gone) for alert in opened if alert.subject not in by_subject)
    silent = sum(end.alert.notified_at is None and not end.alert.acknowledged for end in ended)
    return AlertChanges(
        opened=tuple((finding, notify) for finding in to_open),
        notified=tuple(without_notice) if notify else (),
        reminded=tuple(reminded),
        refreshed=tuple(
            (alert, finding)
            for alert, finding in continuing
            if alert.id not in in_notices and now - alert.last_at >= REFRESH
        ),
        ended=ended,
        overflow=len(new) - len(to_open),
        firing_notices=firing_notices,
        reminder_notices=reminder_notices,
        pace=rule.at_most.after(pace, firing_notices + reminder_notices, now),
        unnotified=(0 if notify else unnotified) + silent if rule.channels else 0,
    )


def notice_count(count: int, room: int) -> int:
    """Return the number of notices for `count` alerts.

    Each alert gets its own notice if there are at most MOST_SINGLE and the rate limit has room for all (`room`);
    otherwise all alerts share one notice.
    """
    return count if count <= min(MOST_SINGLE, room) else 1


def group(members: Sequence[T], count: int) -> list[Sequence[T]]:
    """Distribute the members over `count` notices: one for each member, or all in one."""
    return [[one] for one in members] if count == len(members) else [members]


def _end(rule: Rule, alert: OpenAlert, gone: dict[str, RuleFinding]) -> EndedAlert:
    why = gone[alert.subject].message if alert.subject in gone else ""
    return EndedAlert(alert, rule.recovery and alert.notified_at is not None, why)


def _is_due(rule: Rule, alert: OpenAlert, now: Instant) -> bool:
    """Return whether a reminder of an alert is due."""
    if rule.repeat_every is None or alert.acknowledged or alert.notified_at is None:
        return False
    return now - alert.notified_at >= rule.repeat_every
