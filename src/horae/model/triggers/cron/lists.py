"""Parsing of a field's list: plain values become bits; day fields also have days that are counted within a month."""

from collections.abc import Callable

from horae.model.triggers.cron.days import Days, Last, LastWeekday, Nearest, Nth, Special
from horae.model.triggers.cron.fields import CronField, read_item, read_number, refuse

Counted = Callable[[CronField, str], Special | None]


def read_list(where: CronField, text: str, key: str) -> int:
    """Parse a field that has only plain values, and return them as bits; bit 0 is the value 0."""
    bits = 0
    for item in dict.fromkeys(text.split(",")):
        bits |= read_item(where, item, key)
    return bits


def read_days(where: CronField, text: str, key: str, counted: Counted) -> Days:
    """Parse a day field. `counted` parses items such as `L` or `MON#2`; it returns None for any other item."""
    bits, special = 0, []
    for item in dict.fromkeys(text.split(",")):
        if found := counted(where, item):
            special.append(found)
        else:
            bits |= read_item(where, item, key)
    return Days(bits, tuple(special))


def read_weekdays(where: CronField, text: str, key: str, counted: Counted) -> Days:
    """Parse a field of weekdays. In the result 0 is Sunday, in whichever way the dialect numbers weekdays."""
    days = read_days(where, text, key, counted)
    bits = days.plain >> where.lo
    return Days((bits | bits >> 7) & 0x7F, days.special)


def counted_in_month(where: CronField, item: str) -> Special | None:
    """Parse `L`, `LW` or `15W`; return None for any other item."""
    if item == "L":
        return Last()
    if item == "LW":
        return Nearest()
    return Nearest(read_number(where, item, item[:-1])) if item.endswith("W") else None


def counted_weekday(where: CronField, item: str) -> Special | None:
    """Parse `5L` or `MON#2`; return None for any other item."""
    weekday, hash_, nth = item.partition("#")
    if hash_:
        if nth not in ("1", "2", "3", "4", "5"):
            refuse(where, item, "# takes 1 to 5", 'For example "MON#2"; the last Monday of the month is "MONL".')
        return Nth(_weekday(where, item, weekday), int(nth))
    return LastWeekday(_weekday(where, item, item[:-1])) if item.endswith("L") else None


def _weekday(where: CronField, item: str, text: str) -> int:
    return (read_number(where, item, text) - where.lo) % 7
