"""Triggers in plain English."""

from horae.model.cron import Expression, parse_cron
from horae.model.cron.wall import Ticks
from horae.model.duration import format_duration
from horae.model.instant import format_instant
from horae.model.trigger.values import Interval, Once, Trigger

_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_MOST_TIMES = 4


def describe(trigger: Trigger) -> str:
    """One short sentence without a full stop; an expression too intricate for one is quoted."""
    if isinstance(trigger, Interval):
        return f"every {format_duration(trigger.every)}"
    if isinstance(trigger, Once):
        return f"once at {format_instant(trigger.at)}"
    x = parse_cron(trigger.expression, trigger.dialect, trigger.key)
    time, days = _time(x), _days(x)
    if time is None or days is None:
        return f'cron "{trigger.expression}", {trigger.timezone} time'
    return f"{time}{days}{_months(x)}, {trigger.timezone} time"


def _time(x: Expression) -> str | None:
    second, minute, hour = x.fields[:3]
    if second == "*" and minute == "*" and hour == "*":
        return "every second"
    if second != "0":
        return None
    if hour == "*":
        return _within_the_hour(minute, x.minutes)
    times = [f"{h:02d}:{m:02d}" for h in _values(x.hours) for m in _values(x.minutes)]
    return f"at {_listed(times)}" if len(times) <= _MOST_TIMES else None


def _within_the_hour(minute: str, ticks: Ticks) -> str | None:
    if minute == "*":
        return "every minute"
    base, slash, step = minute.partition("/")
    if base == "*" and slash and "," not in minute and 60 % int(step) == 0:
        return "every minute" if step == "1" else f"every {step} minutes"
    values = [f":{m:02d}" for m in _values(ticks)]
    return f"every hour at {_listed(values)}" if len(values) <= _MOST_TIMES else None


def _days(x: Expression) -> str | None:
    dom, dow = (text.replace("?", "*") for text in (x.fields[3], x.fields[5]))
    if dom == dow == "*":
        return "" if x.fields[2] == "*" else " every day"
    if dow == "*" and dom == "L":
        return " on the last day of the month"
    if dow == "*" and dom.isdigit():
        return f" on day {int(dom)} of the month"
    return _weekdays(dow) if dom == "*" else None


def _weekdays(dow: str) -> str | None:
    names = {name[:3].upper(): name for name in _WEEKDAYS} | {str(n): _WEEKDAYS[n % 7] for n in range(8)}
    first, dash, last = dow.partition("-")
    if dash:
        return f" from {names[first]} to {names[last]}" if first in names and last in names else None
    days = dow.split(",")
    return f" on {_listed([names[day] for day in days])}" if all(day in names for day in days) else None


def _months(x: Expression) -> str:
    if x.fields[4] in ("*", "?"):
        return ""
    return f" in {_listed([name for n, name in enumerate(_MONTHS, 1) if x.months >> n & 1])}"


def _values(ticks: Ticks) -> list[int]:
    return [value for value in range(60) if ticks.bits >> value & 1]


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
