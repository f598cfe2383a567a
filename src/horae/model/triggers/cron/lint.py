"""Warnings about valid expressions that probably do not mean what their author intended."""

from collections.abc import Iterator

from horae.model.triggers.cron import fields as f
from horae.model.triggers.cron.fields import CronField
from horae.model.triggers.cron.wall import CronExpression

_CYCLES = {"second": 60, "minute": 60, "hour": 24}
_LENGTHS = {month: 30 if month in (4, 6, 9, 11) else 31 for month in range(1, 13)} | {2: 29}
_UNRESTRICTED = ("*", "?")


def lint(x: CronExpression) -> list[str]:
    """Return warnings about an expression, as sentences for users."""
    return [*_steps(x), *_often(x), *_either_or_both(x), *_short_months(x), *_other_dialect(x)]


def _steps(x: CronExpression) -> Iterator[str]:
    for where, text in zip(
        (f.SECOND_FIELD, f.MINUTE_FIELD, f.HOUR_FIELD, f.DAY_OF_MONTH_FIELD, f.MONTH_FIELD, f.DAY_OF_WEEK_FIELD),
        x.fields,
        strict=True,
    ):
        for item in text.split(","):
            base, slash, step = item.partition("/")
            if slash and base == "*":
                yield from _step(where, item, int(step))


def _step(where: CronField, item: str, step: int) -> Iterator[str]:
    cycle = _CYCLES.get(where.name)
    first = "Sunday" if where.name == "dow" else where.lo
    if step > where.hi - where.lo or (where.name == "dow" and step == 7):  # 0 and 7 are the same day
        yield f'The step of "{item}" in the {where.title} field is longer than the field, so it means {first} only.'
    elif cycle and cycle % step:
        yield f'"{item}" in the {where.title} field starts again at 0, so its last step is shorter than the others.'
    elif where.name == "dom" and step > 1:
        yield f'"{item}" in the {where.title} field starts again on day 1 of each month, so its last step is shorter.'


def _often(x: CronExpression) -> Iterator[str]:
    second, minute, hour = x.fields[:3]
    if second == "*":
        fields = "; with five fields there are no seconds" if x.dialect == "unix" else ""
        yield f"It fires every second of each matching minute{fields}."
    elif minute == "*" and hour != "*":
        yield f'It fires every minute of each matching hour; for once an hour write "0" instead of "*" before "{hour}".'


def _either_or_both(x: CronExpression) -> Iterator[str]:
    dom, dow = x.fields[3], x.fields[5]
    if dom in _UNRESTRICTED or dow in _UNRESTRICTED:
        return
    if x.both:
        yield "Day-of-month and day-of-week must both match, because one of them starts with *."
    else:
        yield "Day-of-month and day-of-week are both restricted: it fires on days that match either."


def _short_months(x: CronExpression) -> Iterator[str]:
    """Warn about days that only some months have."""
    dom, dow = x.fields[3], x.fields[5]
    if dow not in _UNRESTRICTED or dom not in ("29", "30", "31", "29W", "30W", "31W"):
        return
    day = int(dom.removesuffix("W"))
    months = [month for month in range(1, 13) if x.months >> month & 1]
    if day == 29 and months == [2]:
        yield 'February has a day 29 in leap years only; "L" is its last day in every year.'
    elif any(_LENGTHS[month] < day for month in months) or (day == 29 and 2 in months):
        yield f'Months without a day {day} are left out; "L" is the last day of every month.'


def _other_dialect(x: CronExpression) -> Iterator[str]:
    """Warn about numbered weekdays if the expression looks like the other dialect, which counts differently."""
    dow = x.fields[5]
    numbered = any(item[:1].isdigit() for item in dow.split(","))
    if x.dialect == "unix" and numbered and "?" in x.fields:
        yield f'"?" is Quartz syntax. In that dialect, weekdays count from 1 for Sunday; here, in "{dow}", from 0.'
    if x.dialect == "quartz" and dow == "1-5":
        yield 'In the quartz dialect "1-5" is Sunday to Thursday; from Monday to Friday is "2-6" or "MON-FRI".'
    if x.dialect == "quartz" and dow == "L":
        yield 'In the day-of-week field "L" alone is Saturday; the last Friday of the month is "FRIL".'
