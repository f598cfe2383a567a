"""Parsing of a calendar's definition as the API spells it, with an error for each mistake, and its formatting."""

from importlib import resources
from itertools import dropwhile, takewhile
from typing import Any, assert_never, get_args

import msgspec
from msgspec import Struct

from horae.errors import BadInput
from horae.model.fields.table import JoinedRows, Table
from horae.model.fields.values import NAME, a_list, a_name, an_object, refuse_unknown, shallow
from horae.model.triggers.calendars.values import (
    ACCEPTED,
    Business,
    CalendarExtras,
    CalendarHead,
    Dates,
    Exclusion,
    Hours,
    Intersection,
    Reference,
    SimpleTimes,
    Times,
    Union,
    Windows,
    count_of,
)

MOST_DEPTH = 8  # levels of nested sets, and of references between calendars
MOST_MEMBERS = 64
MOST_SETS = 100  # sets in one definition
MOST_BYTES = 64 * 1024  # bytes of a whole definition


class CalendarKind(Struct, frozen=True):
    """One kind of calendar: the field that identifies it, its struct and its field table."""

    field: str
    struct: type[SimpleTimes]
    table: Table

    @property
    def names(self) -> tuple[str, ...]:
        """The identifying field and the fields of the table that belong to it, up to the next identifying field."""
        _, *following = dropwhile(lambda row: row.name != self.field, self.table.rows)
        return (self.field, *(row.name for row in takewhile(lambda row: not row.field.tells, following)))


TABLES = {struct: Table(struct, "This calendar") for struct in get_args(SimpleTimes)}
KINDS: dict[str, CalendarKind] = {
    row.name: CalendarKind(row.name, struct, table)
    for struct, table in TABLES.items()
    for row in table.rows
    if row.field.tells
}
EXTRAS = Table(CalendarExtras, "This calendar")
FIELDS = JoinedRows((*TABLES.values(), Table(CalendarHead, "A calendar")), "A calendar")  # all fields of calendars


def read_calendar(name: str, body: Any) -> tuple[Times, str]:
    """Parse a request's definition and description.

    The definition is either the body itself or its field `definition`.
    """
    given = an_object(body, "body", 'Send {"hours": "MON-FRI 09:00-17:00", "timezone": "Europe/Paris"}.')
    given = {field: value for field, value in given.items() if value is not None}
    if given.pop("name", name) != name:
        remedy = "Remove `name`: a calendar cannot be renamed."
        raise BadInput("The name in the body is not the name in the path.", remedy, field="name")
    description = str(FIELDS["description"].kind.read(given.pop("description", ""), "description"))
    if "definition" not in given:
        return parse_times(given), description
    if len(given) > 1:
        extra = next(field for field in given if field != "definition")
        raise BadInput(f"{extra!r} is given beside definition.", "Move it into the definition.", field=extra)
    return parse_times(
        an_object(given["definition"], "definition", "Give the times at which the calendar is open.")
    ), description


def parse_times(value: Any, field: str = "", timezone: str = "", depth: int = 0) -> Times:
    """Parse a definition or refuse it with BadInput.

    `field` is its path in the request. `timezone` applies unless the definition has its own; it is passed on to nested
    definitions. `depth` is the depth of nesting.
    """
    where = field or "definition"
    if isinstance(value, str):
        return Reference(a_name(value, where, NAME))
    given = an_object(value, where, ACCEPTED)
    if not depth:
        _check_whole(given)
    if depth > MOST_DEPTH:
        remedy = "Put parts of it into calendars of their own."
        raise BadInput(f"{where} is nested more than {MOST_DEPTH} levels deep.", remedy, field=where)
    kind = _kind_of(given, field)
    prefix = f"{field}." if field else ""
    extras = EXTRAS.read(given, prefix)
    zone = extras.get("timezone", timezone)
    times = _times_of(kind, given, prefix, zone, depth)
    if "without" in extras:
        times = Exclusion(times, _members(extras["without"], f"{prefix}except", zone, depth))
    if not depth and count_of(times) > MOST_SETS:
        remedy = f"At most {MOST_SETS} are allowed; join lists of dates or hours, or put parts into other calendars."
        raise BadInput(f"This calendar is composed of {count_of(times)} sets.", remedy, field="definition")
    return times


def _check_whole(given: dict[str, Any]) -> None:
    shallow(given, "definition")
    size = len(msgspec.json.encode(given))
    if size > MOST_BYTES:
        remedy = f"At most {MOST_BYTES} are allowed; put parts of it into calendars of their own."
        raise BadInput(f"This calendar has {size} bytes.", remedy, field="definition")


def _kind_of(given: dict[str, Any], field: str) -> CalendarKind:
    """Return the kind of calendar that an object defines, by its one identifying field."""
    kinds = [kind for kind in KINDS if given.get(kind) is not None]
    prefix = f"{field}." if field else ""
    if len(kinds) > 1:
        remedy = f'Write {{"all": [{{"{kinds[0]}": ...}}, {{"{kinds[1]}": ...}}]}} to be open when both are.'
        problem = f"A calendar has only one of {', '.join(kinds[:-1])} and {kinds[-1]}."
        raise BadInput(problem, remedy, field=f"{prefix}{kinds[1]}")
    own = KINDS[kinds[0]].names if kinds else tuple(KINDS)
    refuse_unknown(given, (*own, *EXTRAS.names), "This calendar", prefix)
    if not kinds:
        raise BadInput("This calendar has no times.", ACCEPTED, field=field or "definition")
    return KINDS[kinds[0]]


def _times_of(kind: CalendarKind, given: dict[str, Any], prefix: str, zone: str, depth: int) -> Times:
    """Build the times of a kind from its fields."""
    struct, read = kind.struct, kind.table.read(given, prefix)
    if issubclass(struct, Business):
        return _business(read, kind.field, prefix, zone)
    if issubclass(struct, Dates | Hours):
        return struct(**read, timezone=zone or "UTC")
    if issubclass(struct, Union | Intersection):
        return struct(_members(read["members"], f"{prefix}{kind.field}", zone, depth))
    if issubclass(struct, Windows | Reference):
        return struct(**read)
    assert_never(struct)


def _business(read: dict[str, Any], kind: str, prefix: str, zone: str) -> Business:
    code = read[kind]
    if not zone:
        remedy = f'Add "timezone": "{_zone_of(code)}".' if kind == "country" else 'Add "timezone": "America/New_York".'
        raise BadInput(f"The business days of {code} need a time zone.", remedy, field=f"{prefix}timezone")
    if kind == "exchange":
        return Business(exchange=code, timezone=zone)
    return Business(country=code, subdivision=read.get("subdivision", "").removeprefix(f"{code}-"), timezone=zone)


def _zone_of(country: str) -> str:
    """Return one time zone of a country, as an example."""
    for line in (resources.files("tzdata") / "zoneinfo" / "zone.tab").read_text().splitlines():
        if line.startswith(f"{country}\t"):
            return line.split("\t")[2]
    return "Europe/Paris"


def _members(value: Any, where: str, zone: str, depth: int) -> tuple[Times, ...]:
    members = a_list(value if isinstance(value, list) else [value], where, ACCEPTED, MOST_MEMBERS)
    if not members:
        raise BadInput(f"{where} is empty.", "Give at least one calendar.", field=where)
    return tuple(parse_times(each, f"{where}[{i}]", zone, depth + 1) for i, each in enumerate(members))


def render_times(times: Times) -> dict[str, Any]:
    """Format times as a definition that parses to the same times."""
    if isinstance(times, Exclusion):
        return {**render_times(times.base), "except": [render_times(each) for each in times.without]}
    if isinstance(times, Union | Intersection):
        return {name: [render_times(member) for member in times.members] for name in TABLES[type(times)].names}
    zone = {"timezone": times.timezone} if isinstance(times, Business | Dates | Hours) else {}
    return {**{name: part for name, part in TABLES[type(times)].write(times).items() if part}, **zone}


def references_in(definition: Any) -> set[str]:
    """Return the names of calendars that an unparsed definition mentions."""
    if isinstance(definition, str):
        return {definition}
    if not isinstance(definition, dict):
        return set()
    found = {definition["calendar"]} if isinstance(definition.get("calendar"), str) else set()
    for name in ("any", "all", "except", "definition"):
        inner = definition.get(name)
        for each in inner if isinstance(inner, list) else [inner]:
            found |= references_in(each)
    return found
