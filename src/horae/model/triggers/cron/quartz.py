"""The quartz dialect: seconds first, 1 is Sunday, `?` in one day field, and an optional year.

It accepts the syntax that Quartz documents, including ranges that continue at the beginning of a field (`22-2`,
`NOV-FEB`). Like the unix dialect, it produces a `CronExpression`.
"""

import re
from contextlib import suppress
from dataclasses import replace

from horae.errors import BadInput
from horae.model.triggers.cron import fields as f
from horae.model.triggers.cron.days import Last, Nearest, Special, month_days
from horae.model.triggers.cron.fields import CronField, refuse
from horae.model.triggers.cron.lists import counted_in_month, counted_weekday, read_days, read_list, read_weekdays
from horae.model.triggers.cron.unix import MACROS, parse_unix
from horae.model.triggers.cron.wall import CronExpression, ceil_wall, ticks

ORDER = "The fields are: second minute hour day-of-month month day-of-week [year]."

SECOND_FIELD, MINUTE_FIELD, HOUR_FIELD, DAY_OF_MONTH_FIELD, MONTH_FIELD = (
    replace(each, order=ORDER, wraps=True)
    for each in (f.SECOND_FIELD, f.MINUTE_FIELD, f.HOUR_FIELD, f.DAY_OF_MONTH_FIELD, f.MONTH_FIELD)
)
DAY_OF_WEEK_FIELD = CronField(
    "dow", "day-of-week", 1, 7, (1, 7), {name: day + 1 for name, day in f.WEEKDAYS.items()}, ORDER, wraps=True
)
YEAR_FIELD = CronField("year", "year", 1970, 2099, None, order=ORDER)

_LAST_OFFSET = re.compile(r"L-(\d{1,2})(W?)", re.ASCII)
_NO_BASE = re.compile(r"(^|,)/")
_LAST_OF_WEEK = re.compile(r"(^|,)L(?=,|$)")


def parse_quartz(text: str, job_key: str) -> CronExpression:
    """Parse an expression. Refuse one that is ambiguous, wrong or never fires, with the reason and a suggestion."""
    *parts, year = _split(text)
    second, minute, hour, dom, month, dow = parts
    _refuse_questions(second, minute, hour, month, year)
    _require_question(text, parts, year)
    days_of_month = read_days(DAY_OF_MONTH_FIELD, dom, job_key, _counted_in_month)
    days_of_week = read_weekdays(DAY_OF_WEEK_FIELD, _LAST_OF_WEEK.sub(r"\1SAT", dow), job_key, counted_weekday)
    x = CronExpression(
        text=text,
        fields=tuple(parts),
        seconds=ticks(read_list(SECOND_FIELD, second, job_key), 60),
        minutes=ticks(read_list(MINUTE_FIELD, minute, job_key), 60),
        hours=ticks(read_list(HOUR_FIELD, hour, job_key), 24),
        months=read_list(MONTH_FIELD, month, job_key),
        days=month_days(days_of_month, days_of_week, both=True),
        wild=any(part.startswith("*") for part in (second, minute, hour)),
        dom=days_of_month,
        dow=days_of_week,
        both=True,
        years=_years(year, job_key),
        dialect="quartz",
    )
    if ceil_wall(x, 0) is None:  # search from 1970, since no expression names an earlier year
        _refuse_never(x, year)
    return x


def _split(text: str) -> list[str]:
    """Split into seven upper-case fields; a missing year means every year."""
    if text.startswith("@"):
        _refuse_macro(text)
    parts = [_NO_BASE.sub(r"\1*/", part) for part in text.upper().split()]
    if len(parts) == 6:
        parts.append("*")
    if len(parts) != 7:
        count = "1 field" if len(parts) == 1 else f"{len(parts)} fields"
        reason = f'"{text}" has {count}; the quartz dialect has 6, or 7 with the year last.'
        raise BadInput(reason, _count(text, parts), field="schedule")
    return parts


def _count(text: str, parts: list[str]) -> str:
    if len(parts) != 5:
        return ORDER
    with suppress(BadInput):
        parse_unix(text, "any/key")
        return f"It is valid in the unix dialect: remove the field `dialect`{_translated(['0', *parts])}."
    return ORDER


def _refuse_macro(text: str) -> None:
    instead = ""
    if text.lower() in MACROS:
        instead = _translated(["0", *MACROS[text.lower()].split()])
    reason = f'"{text}" is not allowed: the quartz dialect has no macros.'
    raise BadInput(reason, f"Remove the field `dialect`{instead}.", field="schedule")


def _translated(parts: list[str]) -> str:
    """Return the end of a remedy: the quartz spelling of a unix expression, whose five fields follow a seconds field.

    If weekdays are numbered, return advice about their numbers instead. If both day fields are restricted, quartz has
    no spelling, and the end is empty.
    """
    *clock, dom, month, dow = parts
    if dow == "0":
        dow = "SUN"
    if any(each.isdigit() for each in dow):
        return ", or number the weekdays from 1 for Sunday, as the quartz dialect does"
    if "*" not in (dom, dow):
        return ""
    days = [dom, month, "?"] if dow == "*" else ["?", month, dow]
    return f', or write "{" ".join([*clock, *days])}"'


def _refuse_questions(*parts: str) -> None:
    for where, part in zip((SECOND_FIELD, MINUTE_FIELD, HOUR_FIELD, MONTH_FIELD, YEAR_FIELD), parts, strict=True):
        if "?" in part:
            refuse(where, part, "? is allowed in a day field only", 'Write "*" for every value.')


def _require_question(text: str, parts: list[str], year: str) -> None:
    """Require `?` in exactly one day field, because Quartz does not define the meaning of two restricted day fields."""
    dom, dow = parts[3], parts[5]
    if "?" in (dom, dow) and (dom + dow).count("?") == 1:
        return
    dom, dow = _without_question(dom), _without_question(dow)
    if "*" in (dom, dow):
        days = [dom, parts[4], "?"] if dow == "*" else ["?", parts[4], dow]
        remedy = f'Write "{" ".join([*parts[:3], *days, *([] if year == "*" else [year])])}".'
    else:
        remedy = "Make two triggers, or use the unix dialect, which fires on days that match either."
    reason = f'"{text}" needs "?" in exactly one of day-of-month and day-of-week.'
    raise BadInput(reason, remedy, field="schedule")


def _without_question(text: str) -> str:
    return ",".join(item for item in text.split(",") if "?" not in item) or "*"


def _counted_in_month(where: CronField, item: str) -> Special | None:
    """Parse `L-3` and `L-3W` as well as `L`, `LW` and `15W`."""
    if not item.startswith("L-"):
        return counted_in_month(where, item)
    found = _LAST_OFFSET.fullmatch(item)
    if found is None or int(found.group(1)) > 30:
        refuse(where, item, "after L- comes a number of days before the month's last day, up to 30", 'Write "L-3".')
    before = int(found.group(1))
    return Nearest(before=before) if found.group(2) else Last(before)


def _years(text: str, key: str) -> tuple[int, ...] | None:
    if text == "*":
        return None
    bits = read_list(YEAR_FIELD, text, key)
    return tuple(year for year in range(YEAR_FIELD.lo, YEAR_FIELD.hi + 1) if bits >> year & 1)


def _refuse_never(x: CronExpression, year: str) -> None:
    dom, month, dow = x.fields[3:]
    when = "no month has such a day" if x.years is None else f"there is no such day in {year[:40]}"
    raise BadInput(
        f'"{x.text}" never fires: {when} (day-of-month {dom}, month {month}, day-of-week {dow}).',
        'Choose a day the month has, or "L" for its last day.',
        field="schedule",
    )
