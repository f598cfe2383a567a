"""What a calendar is: a set of times, said by days, dates, hours or windows, or put together of other sets.

Frozen values without behaviour: `read` makes them of what people write, `compiled` answers questions about them.
"""

from datetime import date

from msgspec import Struct

from horae.env import Instant


class Business(Struct, frozen=True, kw_only=True):
    """The working days of a country, one of its subdivisions, or an exchange: whole days of a zone."""

    country: str = ""
    subdivision: str = ""
    exchange: str = ""
    timezone: str


class Period(Struct, frozen=True):
    """Days from the first to the last, both included."""

    first: date
    last: date


class Yearly(Struct, frozen=True):
    """A day of every year that has it."""

    month: int
    day: int


class Dates(Struct, frozen=True, kw_only=True):
    """Whole days of a zone, by their dates."""

    periods: tuple[Period, ...] = ()
    yearly: tuple[Yearly, ...] = ()
    timezone: str = "UTC"


class Weekly(Struct, frozen=True):
    """Seconds of the day on weekdays (0 is Monday); an end beyond the day lies on the next one."""

    weekdays: tuple[int, ...]
    start: int
    end: int


class Hours(Struct, frozen=True, kw_only=True):
    """Times of the week as a zone's clock shows them."""

    weekly: tuple[Weekly, ...]
    timezone: str = "UTC"


class Window(Struct, frozen=True):
    """From one instant to before another."""

    start: Instant
    end: Instant


class Windows(Struct, frozen=True):
    """Single stretches of time."""

    windows: tuple[Window, ...]


class Reference(Struct, frozen=True):
    """Another calendar, by its name."""

    name: str


class Union(Struct, frozen=True):
    """Open when any of these is."""

    members: "tuple[Times, ...]"


class Intersection(Struct, frozen=True):
    """Open when all of these are."""

    members: "tuple[Times, ...]"


class Exclusion(Struct, frozen=True):
    """Open when the first is and none of the others."""

    base: "Times"
    without: "tuple[Times, ...]"


Times = Business | Dates | Hours | Windows | Reference | Union | Intersection | Exclusion


def members_of(times: Times) -> "tuple[Times, ...]":
    """What a composed set is put together of; nothing for a plain one."""
    if isinstance(times, Union | Intersection):
        return times.members
    return (times.base, *times.without) if isinstance(times, Exclusion) else ()


def count_of(times: Times) -> int:
    """How many sets a definition is put together of, itself included."""
    return 1 + sum(count_of(member) for member in members_of(times))


def references_of(times: Times) -> frozenset[str]:
    """The names of the calendars that a definition refers to."""
    if isinstance(times, Reference):
        return frozenset({times.name})
    return frozenset(name for member in members_of(times) for name in references_of(member))
