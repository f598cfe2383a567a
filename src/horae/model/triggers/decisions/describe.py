"""Triggers in plain English."""

from horae.model.base.duration import format_duration
from horae.model.base.instant import format_instant
from horae.model.triggers.cron.lint import lint
from horae.model.triggers.cron.parse import parse_cron
from horae.model.triggers.cron.words.sentence import cron_in_words
from horae.model.triggers.decisions.external import Event, Watch, describe_event, describe_watch
from horae.model.triggers.decisions.values import Cron, Interval, Once, Trigger


def describe(trigger: Trigger) -> str:
    """One short sentence without a full stop; an expression too intricate for one is quoted."""
    if isinstance(trigger, Interval):
        return f"every {format_duration(trigger.every)}"
    if isinstance(trigger, Once):
        return f"once at {format_instant(trigger.at)}"
    if isinstance(trigger, Event):
        return describe_event(trigger)
    if isinstance(trigger, Watch):
        return describe_watch(trigger)
    x = parse_cron(trigger.expression, trigger.dialect, trigger.key)
    words = cron_in_words(x) or f'cron "{trigger.expression}"'
    return f"{words}, {trigger.timezone} time"


def warnings(trigger: Trigger) -> list[str]:
    """What is probably not meant, though it can be done."""
    if not isinstance(trigger, Cron):
        return []
    return lint(parse_cron(trigger.expression, trigger.dialect, trigger.key))
