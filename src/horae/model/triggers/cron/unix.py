"""The unix dialect: five fields, or six with seconds first, as Vixie's and Debian's cron read them."""

from horae.errors import BadInput
from horae.model.triggers.cron import fields as f
from horae.model.triggers.cron.days import Special, month_days, never
from horae.model.triggers.cron.fields import CronField, refuse
from horae.model.triggers.cron.lists import counted_in_month, counted_weekday, read_days, read_list, read_weekdays
from horae.model.triggers.cron.wall import CronExpression, ticks

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


def parse_unix(text: str, job_key: str) -> CronExpression:
    """Parse an expression. Refuse one that is ambiguous, wrong or never fires, with the reason and a suggestion."""
    parts = _split(text)
    second, minute, hour, dom, month, dow = parts
    months = read_list(f.MONTH_FIELD, month, job_key)
    days_of_month = read_days(f.DAY_OF_MONTH_FIELD, dom, job_key, _counted_in_month)
    days_of_week = read_weekdays(f.DAY_OF_WEEK_FIELD, dow, job_key, _counted_weekday)
    both = dom.startswith(("*", "?")) or dow.startswith(("*", "?"))
    days = month_days(days_of_month, days_of_week, both=both)
    if never(months, days):
        raise BadInput(
            f'"{text}" never fires: no month has such a day (day-of-month {dom}, month {month}, day-of-week {dow}).',
            'Choose a day the month has, or "L" for its last day.',
            field="schedule",
        )
    return CronExpression(
        text=text,
        fields=parts,
        seconds=ticks(read_list(f.SECOND_FIELD, second, job_key), 60),
        minutes=ticks(read_list(f.MINUTE_FIELD, minute, job_key), 60),
        hours=ticks(read_list(f.HOUR_FIELD, hour, job_key), 24),
        months=months,
        days=days,
        wild=any(part.startswith(("*", "?")) for part in (second, minute, hour)),
        dom=days_of_month,
        dow=days_of_week,
        both=both,
    )


def _split(text: str) -> tuple[str, str, str, str, str, str]:
    """Split into six upper-case fields; a five-field expression has second 0."""
    if text.startswith("@"):
        text = _macro(text)
    parts = text.upper().split()
    if len(parts) == 5:
        parts = ["0", *parts]
    if len(parts) != 6:
        count = "1 field" if len(parts) == 1 else f"{len(parts)} fields"
        raise BadInput(f'"{text}" has {count}; cron has 5, or 6 with seconds first.', _count(parts), field="schedule")
    second, minute, hour, dom, month, dow = parts
    return second, minute, hour, dom, month, dow


def _macro(text: str) -> str:
    if text.lower() in MACROS:
        return MACROS[text.lower()]
    if text.lower() == "@reboot":
        remedy = "Trigger the job from a script that runs when the machine starts."
        raise BadInput('"@reboot" has no meaning for a cluster.', remedy, field="schedule")
    known = ", ".join(MACROS)
    raise BadInput(f'"{text}" is not a known macro.', f'The macros are {known} and "@every 5m".', field="schedule")


def _count(parts: list[str]) -> str:
    if len(parts) == 7:
        return 'Remove the year, or write {"cron": ..., "dialect": "quartz"} if it is a Quartz expression.'
    if len(parts) == 4:
        return f'{f.ORDER} For every day of the week add "*": "{" ".join(parts)} *".'
    if len(parts) == 1:
        return f'{f.ORDER} An interval is {{"every": "5m"}}, a single instant {{"at": "2026-11-15T08:00:00Z"}}.'
    return f.ORDER


def _counted_in_month(where: CronField, item: str) -> Special | None:
    if item.startswith("L-"):
        refuse(where, item, "counting back from the last day belongs to the quartz dialect", 'Write "L" or a day.')
    return counted_in_month(where, item)


def _counted_weekday(where: CronField, item: str) -> Special | None:
    if item == "L":
        refuse(where, item, "L does not say which weekday", 'Write "6" for Saturday or "5L" for the last Friday.')
    return counted_weekday(where, item)
