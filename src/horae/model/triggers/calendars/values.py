"""Calendar definitions: sets of times given by days, dates, hours or windows, or composed of other sets.

Each kind is a struct, and the struct's annotations are the table of its own fields. `read` parses definitions into
these structs and `compiled` evaluates them; mypy reports a kind that either of them does not handle.
"""

from typing import Annotated, Any

from msgspec import Struct

from horae.env import Instant
from horae.errors import BadInput
from horae.model.base.instant import format_instant, parse_instant
from horae.model.fields.kinds import Custom, Kind, ListOf, Name, Text, as_given
from horae.model.fields.table import Document, Field, Group
from horae.model.fields.values import a_text
from horae.model.triggers.calendars.dates import Period, Yearly, merge_periods, parse_day, render_day
from horae.model.triggers.calendars.hours import WeeklyHours, parse_hours, render_hours
from horae.model.triggers.cron.zone import ZONE

MOST_ENTRIES = 4096  # entries of one list of dates or windows
MOST_HOURS = 100  # entries of one list of weekly hours; fewer, because each entry repeats every week
MOST_TEXT = 120
MOST_DESCRIPTION = 4_096
ACCEPTED = (
    'Write {"country": "FR", "timezone": "Europe/Paris"}, {"hours": "MON-FRI 09:00-17:00"}, {"dates": ["2026-12-24"]}, '
    '{"all": [...]}, {"any": [...]} or {"calendar": "name"}, with "except": [...] for what is left out.'
)
_WINDOW = 'Write "2026-12-01T22:00:00Z/2026-12-02T02:00:00Z".'


class Window(Struct, frozen=True):
    """An interval from `start` to before `end`."""

    start: Instant
    end: Instant


def _read_code(value: Any, at: str) -> str:
    code = a_text(value, at, most=MOST_TEXT, least=1).strip()
    return code.upper() if len(code) <= 4 else code


def _read_subdivision(value: Any, at: str) -> str:
    return a_text(value or "", at, most=MOST_TEXT).strip()


def _read_window(value: Any, at: str) -> Window:
    text = a_text(value, at, most=MOST_TEXT, least=1)
    first, slash, last = text.partition("/")
    if not slash:
        raise BadInput(f"{text!r} is not a window.", _WINDOW, field=at)
    start, end = parse_instant(first.strip(), field=at), parse_instant(last.strip(), field=at)
    if end <= start:
        raise BadInput(f"{text!r} ends before it begins.", _WINDOW, field=at)
    return Window(start, end)


def _write_window(window: Window) -> str:
    return f"{format_instant(window.start)}/{format_instant(window.end)}"


def _not_empty(entries: tuple[Any, ...], at: str) -> None:
    if not entries:
        raise BadInput(f"{at} is empty, so this is never open.", "Give at least one entry.", field=at)


def _entry(read: Any, write: Any) -> Custom:
    return Custom(lambda value, at: read(a_text(value, at, most=MOST_TEXT, least=1), at), str, "str", write)


def _read_dates(given: Document, prefix: str) -> dict[str, Any]:
    days = DATES.read(given["dates"], f"{prefix}dates")
    yearly = sorted({day for day in days if isinstance(day, Yearly)}, key=lambda day: (day.month, day.day))
    return {"periods": merge_periods(day for day in days if isinstance(day, Period)), "yearly": tuple(yearly)}


def _write_dates(dates: "Dates") -> dict[str, Any]:
    return {"dates": DATES.write([*dates.periods, *dates.yearly])}


def _entries(item: Kind, most: int = MOST_ENTRIES) -> ListOf:
    return ListOf(item, most, ACCEPTED, str, _not_empty)


CODE = Text(MOST_TEXT, 1, _read_code)
DATES = _entries(_entry(parse_day, render_day))
DATES_GROUP = Group(_read_dates, _write_dates)
_MEMBER = str | dict[str, Any]
MEMBERS = Custom(as_given, _MEMBER | list[_MEMBER], "Sequence[str | Mapping[str, Any]]", option="repeated")


class Business(Struct, frozen=True, kw_only=True):
    """The working days of a country, one of its subdivisions, or an exchange, as whole days in a time zone."""

    country: Annotated[
        str,
        Field(
            CODE,
            "The business days of a country; needs the extra `calendar`.",
            example="FR",
            metavar="CODE",
            tells="country",
        ),
    ] = ""
    subdivision: Annotated[
        str, Field(Text(MOST_TEXT, 0, _read_subdivision), "A part of the country.", example="BY", metavar="CODE")
    ] = ""
    exchange: Annotated[
        str,
        Field(
            CODE,
            "The days on which an exchange trades; needs the extra `calendar`.",
            example="XNYS",
            metavar="CODE",
            tells="exchange",
        ),
    ] = ""
    timezone: str


class Dates(Struct, frozen=True, kw_only=True):
    """Whole days in a time zone, given by date."""

    periods: Annotated[
        tuple[Period, ...],
        DATES_GROUP,
        Field(
            DATES,
            "Whole days, all days from one to another, or days of every year.",
            name="dates",
            example=["2026-12-24", "12-25"],
            flag="date",
            metavar="DATE[/DATE]|MM-DD",
            tells="dates",
        ),
    ] = ()
    yearly: tuple[Yearly, ...] = ()
    timezone: str = "UTC"


class Hours(Struct, frozen=True, kw_only=True):
    """Hours of the week, on the clock of a time zone."""

    weekly: Annotated[
        tuple[WeeklyHours, ...],
        Field(
            _entries(_entry(parse_hours, render_hours), MOST_HOURS),
            "Hours of weekdays, or of every day.",
            name="hours",
            example=["MON-FRI 09:00-17:00"],
            metavar="HOURS",
            tells="hours",
        ),
    ]
    timezone: str = "UTC"


class Windows(Struct, frozen=True):
    """Single intervals of time."""

    windows: Annotated[
        tuple[Window, ...],
        Field(
            _entries(_entry(_read_window, _write_window)),
            "Intervals, each from an instant to before another.",
            example=["2026-12-01T22:00:00Z/2026-12-02T02:00:00Z"],
            flag="window",
            metavar="FROM/TO",
            tells="windows",
        ),
    ]


class Reference(Struct, frozen=True):
    """Another calendar, by its name."""

    name: Annotated[
        str, Field(Name(), "Open when this calendar is.", name="calendar", example="work-days", tells="calendar")
    ]


class Union(Struct, frozen=True):
    """Open when any of its members is open."""

    members: Annotated[
        "tuple[Times, ...]",
        Field(
            MEMBERS,
            "Open when any of these is.",
            name="any",
            example=["work-days", {"dates": "2026-12-24"}],
            flag="",
            tells="any",
        ),
    ]


class Intersection(Struct, frozen=True):
    """Open when all of its members are open."""

    members: Annotated[
        "tuple[Times, ...]",
        Field(
            MEMBERS,
            "Open when all of these are.",
            name="all",
            example=["work-days", {"hours": "09:00-17:00"}],
            flag="",
            tells="all",
        ),
    ]


class Exclusion(Struct, frozen=True):
    """Open when `base` is open and none of `without` is."""

    base: "Times"
    without: "tuple[Times, ...]"


class CalendarExtras(Struct, frozen=True, kw_only=True):
    """Fields that calendars of every kind accept in addition to their times."""

    timezone: Annotated[
        str,
        Field(
            ZONE,
            "The time zone of its days and hours; UTC by default.",
            example="Europe/Paris",
            flag="tz",
            metavar="ZONE",
        ),
    ] = ""
    without: Annotated[
        Any, Field(MEMBERS, "Closed when one of these is open.", name="except", example=[{"dates": "2026-12-24"}])
    ] = ()


class CalendarHead(CalendarExtras, frozen=True, kw_only=True):
    """Fields of a request for a calendar in addition to its times."""

    name: Annotated[str, Field(Name(), "Its name.", example="work-days", flag="")]
    description: Annotated[str, Field(Text(MOST_DESCRIPTION), "What it is for.")] = ""
    definition: Annotated[
        Any,
        Field(
            Custom(as_given, dict[str, Any], "Mapping[str, Any]"),
            "Its times as one object, in place of the fields for times.",
            flag="",
        ),
    ] = None


# Each kind is identified by a field of its own.
SimpleTimes = Business | Dates | Hours | Windows | Reference | Union | Intersection
Times = SimpleTimes | Exclusion


def members_of(times: Times) -> "tuple[Times, ...]":
    """Return the sets that a composed set consists of; empty for any other kind."""
    if isinstance(times, Union | Intersection):
        return times.members
    return (times.base, *times.without) if isinstance(times, Exclusion) else ()


def count_of(times: Times) -> int:
    """Return the number of sets in a definition, including itself."""
    return 1 + sum(count_of(member) for member in members_of(times))


def references_of(times: Times) -> frozenset[str]:
    """Return the names of the calendars that a definition refers to."""
    if isinstance(times, Reference):
        return frozenset({times.name})
    return frozenset(name for member in members_of(times) for name in references_of(member))
