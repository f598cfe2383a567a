"""Calendars by name: references are followed, cycles are refused, and each instant is judged by the valid version."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from msgspec import Struct

from horae.env import SECOND, Instant
from horae.errors import BadInput
from horae.model.triggers.calendars.business import check
from horae.model.triggers.calendars.compiled import Calendar, compile_times
from horae.model.triggers.calendars.intervals import intersection_of, union_of
from horae.model.triggers.calendars.read import MOST_DEPTH
from horae.model.triggers.calendars.values import Business, Exclusion, Intersection, Times, Union, references_of

Definitions = Mapping[str, Times]


class Version(Struct, frozen=True, kw_only=True):
    """One version of a calendar, valid in [valid_from, valid_to)."""

    name: str
    version: int
    times: Times
    valid_from: Instant
    valid_to: Instant | None = None

    def holds_at(self, at: Instant) -> bool:
        return self.valid_from <= at and (self.valid_to is None or at < self.valid_to)


def current_calendar(name: str, definitions: Definitions) -> Calendar:
    """Compile a calendar and all calendars that it refers to. Raises BadInput for a cycle or an unknown calendar."""
    return _Resolver(definitions).find(name, ())


class _Resolver:
    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._found: dict[str, Calendar] = {}

    def find(self, name: str, path: tuple[str, ...]) -> Calendar:
        if name in path:
            circle = " -> ".join((*path[path.index(name) :], name))
            raise BadInput(
                f"These calendars refer to each other in a circle: {circle}.", "Remove one of the references."
            )
        if len(path) > MOST_DEPTH:
            remedy = "Let it refer to the calendars at the end of that chain."
            raise BadInput(f'"{path[0]}" refers to calendars more than {MOST_DEPTH} deep.', remedy)
        if name not in self._definitions:
            raise no_such_calendar(name, self._definitions)
        if name not in self._found:
            times = self._definitions[name]
            others = {other: self.find(other, (*path, name)) for other in sorted(references_of(times))}
            self._found[name] = compile_times(times, others, name)
        return self._found[name]


def no_such_calendar(name: str, names: Iterable[str]) -> BadInput:
    """Return the error for a definition that refers to a calendar that does not exist."""
    near = get_close_matches(name, names, n=1, cutoff=0.7)
    create = f"Create it first: `horae calendars set {name} ...` or PUT /api/v1/calendars/{name}."
    remedy = f'Did you mean "{near[0]}"? {create}' if near else create
    return BadInput(f'There is no calendar named "{name}".', remedy, calendar=name)


def calendar_through_time(name: str, versions: Sequence[Version]) -> Calendar:
    """Return a calendar that judges each instant by the versions that were valid at that instant.

    `versions` are those of the calendar and of the calendars it refers to. Before the calendar's first version, that
    first version applies. While the calendar was deleted, it is closed. Versions change at whole seconds: the second in
    which a change happens still uses the old version.
    """
    own = [each for each in versions if each.name == name]
    if not own:
        return current_calendar(name, {})
    begin = min(each.valid_from for each in own)
    changes = sorted({begin, *(at for each in versions for at in _ends(each) if at > begin)})
    pieces = [(start, _present_at(name, versions, start)) for start in changes]
    if len(pieces) == 1 and pieces[0][1] is not None:
        return pieces[0][1]
    return _joined_in_time(name, pieces)


def _ends(version: Version) -> tuple[Instant, ...]:
    return (version.valid_from,) if version.valid_to is None else (version.valid_from, version.valid_to)


def _present_at(name: str, versions: Sequence[Version], at: Instant) -> Calendar | None:
    """Return the calendar as it was defined at an instant, or None if it did not exist.

    If `versions` has only later versions of a referenced calendar, the earliest of them is used.
    """
    definitions: dict[str, Times] = {}
    for each in sorted(versions, key=lambda each: -each.valid_from):
        if each.holds_at(at) or (each.name != name and each.valid_from > at):
            definitions[each.name] = each.times
    return current_calendar(name, definitions) if name in definitions else None


def _joined_in_time(name: str, pieces: Sequence[tuple[Instant, Calendar | None]]) -> Calendar:
    starts = [-(-start // SECOND) for start, _ in pieces]
    bounds = list(zip([-(1 << 62), *starts[1:]], [*starts[1:], 1 << 62], strict=True))

    def part(bucket: int) -> tuple[tuple[int, int], ...]:
        return union_of(
            interval
            for (_, calendar), bound in zip(pieces, bounds, strict=True)
            if calendar is not None
            for interval in intersection_of((bound,), calendar.bucket(bucket))
        )

    return Calendar(part, name)


def users_of(names: Iterable[str], definitions: Definitions) -> frozenset[str]:
    """Return these calendars and all that refer to them, directly or indirectly."""
    found = set(names)
    grown = True
    while grown:
        more = {name for name, times in definitions.items() if name not in found and references_of(times) & found}
        grown = bool(more)
        found |= more
    return frozenset(found)


def check_times(times: Times, field: str = "") -> None:
    """Refuse unknown countries, subdivisions and exchanges."""
    if isinstance(times, Business):
        kind = "exchange" if times.exchange else "country"
        check(times, f"{field}.{kind}" if field else kind)
    for member, step in _inside(times):
        check_times(member, f"{field}.{step}".strip("."))


def _inside(times: Times) -> Iterator[tuple[Times, str]]:
    """Yield the members of a composed set, each with its path in the definition."""
    if isinstance(times, Exclusion):
        yield times.base, ""
        yield from ((member, f"except[{i}]") for i, member in enumerate(times.without))
    elif isinstance(times, Union | Intersection):
        name = "any" if isinstance(times, Union) else "all"
        yield from ((member, f"{name}[{i}]") for i, member in enumerate(times.members))


def check_opens(name: str, calendar: Calendar, now: Instant) -> None:
    """Refuse a calendar that is never open, neither in the past nor in the future."""
    if calendar.next_open(now) is None and calendar.last_open(now) is None:
        remedy = "Check that its parts overlap, and that `except` leaves something."
        raise BadInput(f'Calendar "{name}" would never be open.', remedy, field="definition")
