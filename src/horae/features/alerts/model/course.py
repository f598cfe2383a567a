"""What becomes of alerts when a rule was looked at: opened, gone on, reminded of, recovered. Pure."""

from collections.abc import Sequence
from typing import TypeVar
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.features.alerts.model.findings import Finding
from horae.features.alerts.model.rule import Rule
from horae.model.base.duration import MINUTE

MOST_OPEN = 10_000  # alerts of one rule; what is beyond them is counted, and opens when some are over
FEW = 3  # so many are told one by one, more of them together
REFRESH = MINUTE  # how often what goes on is written anew
T = TypeVar("T")


class Open(Struct, frozen=True, kw_only=True):
    """An alert that is not over."""

    id: UUID
    subject: str
    last_at: Instant
    notified_at: Instant | None = None  # when it was told last; None: the rule's rate had no room
    acknowledged: bool = False
    execution: UUID | None = None


class End(Struct, frozen=True):
    """An alert that is over: whether that is told, and why, if it did not get well."""

    alert: Open
    told: bool
    forgotten: str = ""


class Course(Struct, frozen=True, kw_only=True):
    """What to write. New alerts without room are opened silently, and told when there is."""

    opened: tuple[tuple[Finding, bool], ...] = ()  # and whether it is told
    told: tuple[tuple[Open, Finding], ...] = ()  # opened before, told now for the first time
    reminded: tuple[tuple[Open, Finding], ...] = ()
    refreshed: tuple[tuple[Open, Finding], ...] = ()
    ended: tuple[End, ...] = ()
    beyond: int = 0  # found, and not opened
    firing: int = 0  # notices that tell of what is opened and told: as many, or one for all
    reminders: int = 0
    pace: Instant = 0
    unsaid: int = 0  # alerts that came and went without a word, since something was told

    def __bool__(self) -> bool:
        return bool(self.opened or self.told or self.reminded or self.refreshed or self.ended)


def course(
    rule: Rule, found: Sequence[Finding], opened: Sequence[Open], pace: Instant, now: Instant, unsaid: int = 0
) -> Course:
    """Compare what is so with what is open. Only what was told of its beginning is told of its end."""
    known = {alert.subject: alert for alert in opened}
    by_subject = {finding.subject: finding for finding in reversed(found)}
    gone = {subject: by_subject.pop(subject) for subject, finding in list(by_subject.items()) if finding.forgotten}
    new = [finding for subject, finding in sorted(by_subject.items()) if subject not in known]
    room = rule.at_most.room(pace, now)
    going_on = [(alert, by_subject[alert.subject]) for alert in opened if alert.subject in by_subject]
    untold = [one for one in going_on if one[0].notified_at is None and not one[0].acknowledged]
    made = new[: max(0, MOST_OPEN - len(going_on))]
    tells = bool(room and (untold or made))
    taken = notices(len(untold) + len(made), room) if tells else 0
    due = [one for one in going_on if _is_due(rule, one[0], now)]
    reminded = due if room > taken else []
    reminders = notices(len(reminded), room - taken)
    said = {alert.id for alert, _ in (*(untold if tells else ()), *reminded)}
    ended = tuple(_end(rule, alert, gone) for alert in opened if alert.subject not in by_subject)
    silent = sum(one.alert.notified_at is None and not one.alert.acknowledged for one in ended)
    return Course(
        opened=tuple((finding, tells) for finding in made),
        told=tuple(untold) if tells else (),
        reminded=tuple(reminded),
        refreshed=tuple(one for one in going_on if one[0].id not in said and now - one[0].last_at >= REFRESH),
        ended=ended,
        beyond=len(new) - len(made),
        firing=taken,
        reminders=reminders,
        pace=rule.at_most.after(pace, taken + reminders, now),
        unsaid=(0 if tells else unsaid) + silent,
    )


def notices(count: int, room: int) -> int:
    """How many notices tell of so many alerts: a few come one by one, if there is room for that."""
    return count if count <= min(FEW, room) else 1


def letters(members: Sequence[T], count: int) -> list[Sequence[T]]:
    """What is told together, in so many notices."""
    return [[one] for one in members] if count == len(members) else [members]


def _end(rule: Rule, alert: Open, gone: dict[str, Finding]) -> End:
    why = gone[alert.subject].message if alert.subject in gone else ""
    return End(alert, rule.recovery and alert.notified_at is not None, why)


def _is_due(rule: Rule, alert: Open, now: Instant) -> bool:
    """Whether it is time to remind somebody."""
    if rule.repeat_every is None or alert.acknowledged or alert.notified_at is None:
        return False
    return now - alert.notified_at >= rule.repeat_every
