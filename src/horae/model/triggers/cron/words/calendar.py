"""The calendar of an expression in plain English: its days, months and years."""

from collections.abc import Iterable

from horae.model.triggers.cron.days import Days, Last, LastWeekday, Nearest, Nth, Special
from horae.model.triggers.cron.wall import CronExpression
from horae.model.triggers.cron.words.clock import time_in_words
from horae.model.triggers.cron.words.lists import listed, ordinal, progression, ranges, round_ranges

WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

_EVERY_DAY = (1 << 32) - 2
_EVERY_WEEKDAY = (1 << 7) - 1
_NTH = ("", "first", "second", "third", "fourth", "fifth")
_MOST_NAMES = 6  # names in one list; longer lists make the sentence too complex


def days_in_words(x: CronExpression) -> str | None:
    """Describe the days. Return an empty text if every day matches, None if the days are too complex for words."""
    every = (x.dom.plain == _EVERY_DAY, x.dow.plain == _EVERY_WEEKDAY)
    if all(every) or (any(every) and not x.both):
        return ""
    dom, dow = None if every[0] else _of_month(x.dom), None if every[1] else _of_week(x.dow)
    if (dom is None and not every[0]) or (dow is None and not every[1]):
        return None
    if dom is None or dow is None:
        return f" {dom or dow}"
    return f" {dow}, only {dom}" if x.both else f" {dom} or {dow}"


def _of_month(days: Days) -> str | None:
    plain = [day for day in range(1, 32) if days.plain >> day & 1]
    steps = progression(plain)
    if steps and steps.step > 1 and steps.last + steps.step > 31 and not days.special:
        return f"on every {ordinal(steps.step)} day of the month from day {steps.first}"
    parts = ranges(plain, str)
    numbered = [f"{'day' if len(plain) == 1 else 'days'} {listed(parts)}"] if parts else []
    words = [*numbered, *map(_special, days.special)]
    return f"on {listed(words)} of the month" if len(parts) + len(days.special) <= _MOST_NAMES else None


def _special(special: Special) -> str:
    match special:
        case Last(before):
            return "the last day" if not before else f"the {ordinal(before + 1)} last day"
        case Nearest(None, before):
            return "the last weekday" if not before else f"the weekday nearest to the {ordinal(before + 1)} last day"
        case Nearest(day):
            return f"the weekday nearest to day {day}"
        case Nth(weekday, nth):
            return f"the {_NTH[nth]} {WEEKDAYS[weekday]}"
        case LastWeekday(weekday):
            return f"the last {WEEKDAYS[weekday]}"
    raise TypeError(special)


def _of_week(days: Days) -> str | None:
    plain = [day for day in range(7) if days.plain >> day & 1]
    counted = [f"on {listed([_special(each) for each in days.special])} of the month"] if days.special else []
    if len(days.special) > _MOST_NAMES:
        return None
    return listed([*_plain_weekdays(plain), *counted]) if plain else counted[0]


def _plain_weekdays(plain: list[int]) -> Iterable[str]:
    if not plain:
        return []
    runs = round_ranges(plain, 7, WEEKDAYS.__getitem__)
    if len(runs) == 1 and " to " in runs[0]:
        return [f"from {runs[0]}"]
    return [f"on {listed([WEEKDAYS[day] for day in sorted(plain, key=lambda day: (day - 1) % 7)])}"]


def months_in_words(x: CronExpression) -> str:
    months = [month for month in range(1, 13) if x.months >> month & 1]
    if len(months) == 12:
        return ""
    runs = round_ranges([month - 1 for month in months], 12, MONTHS.__getitem__)
    if len(runs) == 1 and " to " in runs[0] and len(months) > 3:
        return f" from {runs[0]}"
    return f" in {listed([MONTHS[month - 1] for month in months])}"


def years_in_words(x: CronExpression) -> str:
    if x.years is None:
        return ""
    steps = progression(x.years)
    if steps and steps.step > 1:
        return f" in every {ordinal(steps.step)} year from {steps.first} to {steps.last}"
    return f" in {listed(ranges(x.years, str))}"


def cron_in_words(x: CronExpression) -> str | None:
    """Describe an expression in one short sentence without a full stop, or return None if it is too complex."""
    time, days = time_in_words(x), days_in_words(x)
    if time is None or days is None:
        return None
    if not days and time.startswith("at "):
        days = " every day"
    return f"{time}{days}{months_in_words(x)}{years_in_words(x)}"
