"""The unix dialect: five fields, or six with seconds first, as Vixie's and Debian's cron read them."""

from horae.errors import BadInput
from horae.model.cron import fields as f
from horae.model.cron.days import Days, Last, LastWeekday, Nearest, Nth, Special, month_days, never
from horae.model.cron.fields import Field, read_item, read_number, refuse
from horae.model.cron.wall import Expression, Ticks

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


def parse_unix(text: str, key: str) -> Expression:
    """Read an expression; what is ambiguous, wrong or never fires is refused with the reason and a suggestion."""
    parts = _split(text)
    second, minute, hour, dom, month, dow = parts
    months = _plain(f.MONTH, month, key)
    days = month_days(
        _days(f.DOM, dom, key), _days(f.DOW, dow, key), both=dom.startswith(("*", "?")) or dow.startswith(("*", "?"))
    )
    if never(months, days):
        raise BadInput(
            f'"{text}" never fires: no month has such a day (day-of-month {dom}, month {month}, day-of-week {dow}).',
            'Choose a day the month has, or "L" for its last day.',
            field="schedule",
        )
    return Expression(
        text=text,
        fields=parts,
        seconds=Ticks(_plain(f.SECOND, second, key), 60),
        minutes=Ticks(_plain(f.MINUTE, minute, key), 60),
        hours=Ticks(_plain(f.HOUR, hour, key), 24),
        months=months,
        days=days,
        wild=any(part.startswith(("*", "?")) for part in (second, minute, hour)),
    )


def _split(text: str) -> tuple[str, str, str, str, str, str]:
    """The six fields in capitals; a five-field expression has second 0."""
    if text.startswith("@"):
        text = _macro(text)
    if text.upper().startswith(("TZ=", "CRON_TZ=")):
        remedy = 'Write {"cron": "0 9 * * *", "timezone": "Europe/Paris"}.'
        raise BadInput("A time zone does not stand inside the expression.", remedy, field="schedule")
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
        raise BadInput('"@reboot" has no meaning for a cluster.', "Trigger the job at start.", field="schedule")
    known = ", ".join(MACROS)
    raise BadInput(f'"{text}" is not a known macro.', f'There are {known} and "@every 5m".', field="schedule")


def _count(parts: list[str]) -> str:
    if len(parts) == 7:
        return 'Leave the year out, or say dialect "quartz" if it is a Quartz expression.'
    if len(parts) == 4:
        return f'{f.ORDER} For every day of the week add "*": "{" ".join(parts)} *".'
    if len(parts) == 1:
        return f'{f.ORDER} An interval is {{"every": "5m"}}, a single instant {{"at": "2026-11-15T08:00:00Z"}}.'
    return f.ORDER


def _plain(where: Field, text: str, key: str) -> int:
    bits = 0
    for item in text.split(","):
        bits |= read_item(where, item, key)
    return bits


def _days(where: Field, text: str, key: str) -> Days:
    """A day field: plain values and what is counted within the month."""
    bits, special = 0, []
    for item in text.split(","):
        counted = _special_dom(item) if where is f.DOM else _special_dow(item)
        if counted:
            special.append(counted)
        else:
            bits |= read_item(where, item, key)
    if where is f.DOW:
        bits = (bits | bits >> 7) & 0x7F
    return Days(bits, tuple(special))


def _special_dom(item: str) -> Special | None:
    """`L`, `LW` or `15W`."""
    if item == "L":
        return Last()
    if item == "LW":
        return Nearest()
    if item.startswith("L-"):
        refuse(f.DOM, item, "counting back from the last day belongs to the quartz dialect", 'Write "L" or a day.')
    if item.endswith("W"):
        return Nearest(read_number(f.DOM, item, item[:-1]))
    return None


def _special_dow(item: str) -> Special | None:
    """`5L` or `MON#2`."""
    if item == "L":
        refuse(f.DOW, item, "it does not say which weekday", 'Write "6" for Saturday or "5L" for the last Friday.')
    weekday, hash_, nth = item.partition("#")
    if hash_:
        if nth not in ("1", "2", "3", "4", "5"):
            refuse(f.DOW, item, "# takes 1 to 5", 'For example "MON#2"; the last Monday of the month is "MONL".')
        return Nth(read_number(f.DOW, item, weekday) % 7, int(nth))
    if item.endswith("L"):
        return LastWeekday(read_number(f.DOW, item, item[:-1]) % 7)
    return None
