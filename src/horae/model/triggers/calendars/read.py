"""A calendar's definition as the API spells it: read with every mistake named, and written back."""

from collections.abc import Callable
from datetime import timedelta
from importlib import resources
from typing import Any

import msgspec

from horae.errors import BadInput
from horae.model.base.instant import format_instant, parse_instant
from horae.model.fields.values import NAME, a_list, a_name, a_text, an_object, refuse_unknown, shallow
from horae.model.triggers.calendars.dates import parse_day, render_days
from horae.model.triggers.calendars.hours import parse_hours, render_hours
from horae.model.triggers.calendars.values import (
    Business,
    Dates,
    Exclusion,
    Hours,
    Intersection,
    Period,
    Reference,
    Times,
    Union,
    Window,
    Windows,
    Yearly,
    count_of,
)
from horae.model.triggers.cron.zone import load as load_zone

MOST_DEPTH = 8  # sets within sets, and calendars that refer to calendars
MOST_MEMBERS = 64
MOST_ENTRIES = 4096  # of one list of dates or windows
MOST_HOURS = 100  # of one list of weekly hours: each is every week's
MOST_SETS = 100  # in one definition
MOST_BYTES = 64 * 1024  # of a whole definition
MOST_TEXT = 120

KINDS = {
    "country": ("country", "subdivision"),
    "exchange": ("exchange",),
    "dates": ("dates",),
    "hours": ("hours",),
    "windows": ("windows",),
    "calendar": ("calendar",),
    "any": ("any",),
    "all": ("all",),
}
_BESIDE = ("timezone", "except")
ACCEPTED = (
    'Write {"country": "FR", "timezone": "Europe/Paris"}, {"hours": "MON-FRI 09:00-17:00"}, {"dates": ["2026-12-24"]}, '
    '{"all": [...]}, {"any": [...]} or {"calendar": "name"}, with "except": [...] for what is left out.'
)


def parse_times(value: Any, field: str = "", timezone: str = "", depth: int = 0) -> Times:
    """Read a definition or refuse it with BadInput. A zone holds for everything inside that has none of its own."""
    where = field or "definition"
    if isinstance(value, str):
        return Reference(a_name(value, where, NAME))
    given = an_object(value, where, ACCEPTED)
    if not depth:
        _check_whole(given)
    if depth > MOST_DEPTH:
        raise BadInput(f"{where} is nested deeper than {MOST_DEPTH}.", "Give parts of it a name.", field=where)
    kinds = [kind for kind in KINDS if given.get(kind) is not None]
    if len(kinds) > 1:
        remedy = f'Write {{"all": [{{"{kinds[0]}": ...}}, {{"{kinds[1]}": ...}}]}} to be open when both are.'
        raise BadInput(f"A calendar has one of {' and '.join(kinds)}, not both.", remedy, field=_at(field, kinds[1]))
    known = (*(KINDS[kinds[0]] if kinds else KINDS), *_BESIDE)
    refuse_unknown(given, known, "This calendar", f"{field}." if field else "")
    if not kinds:
        raise BadInput("Nothing says when this calendar is open.", ACCEPTED, field=where)
    zone = _zone(given, field) or timezone
    times = _PARSERS[kinds[0]](given, field, zone, depth)
    if given.get("except") is not None:
        times = Exclusion(times, _members(given, "except", field, zone, depth))
    if not depth and count_of(times) > MOST_SETS:
        remedy = f"At most {MOST_SETS} are allowed; list dates and hours together, or give parts of it a name."
        raise BadInput(f"This calendar is put together of {count_of(times)} sets.", remedy, field="definition")
    return times


def _check_whole(given: dict[str, Any]) -> None:
    shallow(given, "definition")
    size = len(msgspec.json.encode(given))
    if size > MOST_BYTES:
        remedy = f"At most {MOST_BYTES} are allowed; put parts of it into calendars of their own."
        raise BadInput(f"This calendar has {size} bytes.", remedy, field="definition")


def _business(given: dict[str, Any], field: str, zone: str, depth: int) -> Times:
    kind = "country" if given.get("country") is not None else "exchange"
    code = a_text(given[kind], _at(field, kind), most=MOST_TEXT, least=1).strip()
    code = code.upper() if len(code) <= 4 else code
    if not zone:
        remedy = f'Add "timezone": "{_zone_of(code)}".' if kind == "country" else 'Add "timezone": "America/New_York".'
        raise BadInput(f"Days of {code} begin and end in a time zone.", remedy, field=_at(field, "timezone"))
    if kind == "exchange":
        return Business(exchange=code, timezone=zone)
    subdivision = given.get("subdivision") or ""
    subdivision = a_text(subdivision, _at(field, "subdivision"), most=MOST_TEXT).strip()
    return Business(country=code, subdivision=subdivision.removeprefix(f"{code}-"), timezone=zone)


def _zone_of(country: str) -> str:
    """A zone of a country, as an example."""
    for line in (resources.files("tzdata") / "zoneinfo" / "zone.tab").read_text().splitlines():
        if line.startswith(f"{country}\t"):
            return line.split("\t")[2]
    return "Europe/Paris"


def _dates(given: dict[str, Any], field: str, zone: str, depth: int) -> Times:
    days = _entries(given, "dates", field, parse_day)
    yearly = sorted({day for day in days if isinstance(day, Yearly)}, key=lambda day: (day.month, day.day))
    periods = _apart([day for day in days if isinstance(day, Period)])
    return Dates(periods=periods, yearly=tuple(yearly), timezone=zone or "UTC")


def _apart(periods: list[Period]) -> tuple[Period, ...]:
    """The same days in order, each in one period."""
    found: list[Period] = []
    for period in sorted(periods, key=lambda period: period.first):
        if found and period.first <= found[-1].last + timedelta(days=1):
            found[-1] = Period(found[-1].first, max(found[-1].last, period.last))
        else:
            found.append(period)
    return tuple(found)


def _hours(given: dict[str, Any], field: str, zone: str, depth: int) -> Times:
    return Hours(weekly=tuple(_entries(given, "hours", field, parse_hours)), timezone=zone or "UTC")


def _windows(given: dict[str, Any], field: str, zone: str, depth: int) -> Times:
    return Windows(tuple(_entries(given, "windows", field, _window)))


def _window(value: object, field: str) -> Window:
    example = 'Write "2026-12-01T22:00:00Z/2026-12-02T02:00:00Z".'
    text = a_text(value, field, most=MOST_TEXT)
    first, slash, last = text.partition("/")
    if not slash:
        raise BadInput(f"{text!r} is not a window.", example, field=field)
    start, end = parse_instant(first.strip(), field=field), parse_instant(last.strip(), field=field)
    if end <= start:
        raise BadInput(f"{text!r} ends before it begins.", example, field=field)
    return Window(start, end)


def _reference(given: dict[str, Any], field: str, zone: str, depth: int) -> Times:
    return Reference(a_name(given["calendar"], _at(field, "calendar"), NAME))


def _any(given: dict[str, Any], field: str, zone: str, depth: int) -> Times:
    return Union(_members(given, "any", field, zone, depth))


def _all(given: dict[str, Any], field: str, zone: str, depth: int) -> Times:
    return Intersection(_members(given, "all", field, zone, depth))


_PARSERS: dict[str, Callable[[dict[str, Any], str, str, int], Times]] = {
    "country": _business,
    "exchange": _business,
    "dates": _dates,
    "hours": _hours,
    "windows": _windows,
    "calendar": _reference,
    "any": _any,
    "all": _all,
}


def _members(given: dict[str, Any], name: str, field: str, zone: str, depth: int) -> tuple[Times, ...]:
    where = _at(field, name)
    value = given[name] if isinstance(given[name], list) else [given[name]]
    members = a_list(value, where, ACCEPTED, MOST_MEMBERS)
    if not members:
        raise BadInput(f"{where} is empty.", "Give at least one calendar.", field=where)
    return tuple(parse_times(each, f"{where}[{i}]", zone, depth + 1) for i, each in enumerate(members))


def _entries(given: dict[str, Any], name: str, field: str, read: Callable[[object, str], Any]) -> list[Any]:
    """A list, or a single text."""
    where = _at(field, name)
    value = [given[name]] if isinstance(given[name], str) else given[name]
    entries = a_list(value, where, ACCEPTED, MOST_HOURS if name == "hours" else MOST_ENTRIES)
    if not entries:
        raise BadInput(f"{where} is empty, so this is never open.", "Give at least one entry.", field=where)
    for i, entry in enumerate(entries):
        a_text(entry, f"{where}[{i}]", most=MOST_TEXT, least=1)
    return [read(entry, f"{where}[{i}]") for i, entry in enumerate(entries)]


def _zone(given: dict[str, Any], field: str) -> str:
    if given.get("timezone") is None:
        return ""
    where = _at(field, "timezone")
    zone = a_text(given["timezone"], where, most=MOST_TEXT, least=1)
    try:
        load_zone(zone)
    except BadInput as error:
        raise BadInput(error.detail, error.remedy, field=where) from None
    return zone


def _at(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name


def render_times(times: Times) -> Any:
    """The definition that reads as this."""
    if isinstance(times, Reference):
        return {"calendar": times.name}
    if isinstance(times, Union | Intersection):
        name = "any" if isinstance(times, Union) else "all"
        return {name: [render_times(member) for member in times.members]}
    if isinstance(times, Exclusion):
        return {**render_times(times.base), "except": [render_times(each) for each in times.without]}
    if isinstance(times, Windows):
        return {"windows": [f"{format_instant(each.start)}/{format_instant(each.end)}" for each in times.windows]}
    if isinstance(times, Dates):
        return {"dates": render_days(times), "timezone": times.timezone}
    if isinstance(times, Hours):
        return {"hours": [render_hours(each) for each in times.weekly], "timezone": times.timezone}
    if times.exchange:
        return {"exchange": times.exchange, "timezone": times.timezone}
    subdivision = {"subdivision": times.subdivision} if times.subdivision else {}
    return {"country": times.country, **subdivision, "timezone": times.timezone}
