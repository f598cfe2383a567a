"""The cost of checking a value against a schema, computed before the check.

A schema is converted to places. A place holds all parts of the schema, with references resolved, that apply to one
position of a value; it links to the places of its members. Some schemas produce too much for one place: multiplying
references, cycles that stay at one position, and cycles that double with every level. Such schemas are refused with the
definition. A unit is one keyword at one place.
"""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from horae.errors import Costly
from horae.model.expressions.patterns import pattern_matcher

MOST_UNITS = 500_000  # for one check: some ten milliseconds
MOST_AT_A_PLACE = 10_000
MOST_PARTS = 30_000  # for all places together
MOST_PATTERNS = 200
MOST_DEEP = 200
FORMAT_UNITS = 20  # for a format with our own parser
PATTERN_UNITS = 4  # for each character of a text or name that a pattern is searched in
SQUARES_A_UNIT = 8  # a pattern with lookaround or back references may read the text again for each of its characters
UNIQUE_UNITS = 2  # for each value within a list whose elements are compared
REMEDY = "Use fewer parts under allOf, anyOf and oneOf, and fewer $refs to parts with $refs of their own."
_HERE = ("allOf", "anyOf", "oneOf")
_HERE_ONE = ("not", "if", "then", "else")
_HERE_NAMED = ("dependentSchemas", "dependencies")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_OTHERS = ("additionalProperties", "unevaluatedProperties")
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")  # keywords next to these are evaluated twice
_ELEMENTS = ("additionalItems", "unevaluatedItems", "contains")
_BELOW = frozenset(
    (
        *(*_HERE, *_HERE_ONE, *_HERE_NAMED, *_OTHERS, *_ELEMENTS),
        *("properties", "patternProperties", "propertyNames", "items", "prefixItems"),
    )
)
_SAYS_NOTHING = frozenset(
    ("$defs", "definitions", "default", "examples", "title", "description", "$comment", "$schema")
)

Part = dict[str, Any]
Parts = list[Part]


class SchemaPlace(Struct):
    """The cost of one position of a value in units, and the numbers of the places below it."""

    units: int
    each: int  # additional units per member or element, for parts next to `unevaluated...`
    patterns: int
    squares: int  # patterns with lookaround or back references
    name_patterns: int
    name_squares: int
    unique: int  # lists here whose elements are compared
    named: dict[str, int]
    other: int | None
    names: int | None
    prefix: list[int]
    rest: int | None

    def below(self) -> Iterator[int]:
        """Yield the numbers of the places below this one."""
        yield from (*self.named.values(), *self.prefix)
        yield from (number for number in (self.other, self.names, self.rest) if number is not None)


NOWHERE = SchemaPlace(
    units=0, each=0, patterns=0, squares=0, name_patterns=0, name_squares=0, unique=0,
    named={}, other=None, names=None, prefix=[], rest=None,
)  # fmt: skip


def places_of(schema: Part) -> list[SchemaPlace]:
    """Return the places of a schema; the first one is for the value itself. Raises Costly."""
    return _Reader(schema).read()


def units_of(places: list[SchemaPlace], value: Any, most: int) -> int:
    """Compute the units to check a value; the count may stop early at a number above `most`."""
    todo: list[tuple[Any, int | None, int]] = [(value, 0, 0)]
    units = 0
    while todo and units <= most:
        here, number, unique = todo.pop()
        place = NOWHERE if number is None else places[number]
        units += place.units + 1 + UNIQUE_UNITS * unique
        if isinstance(here, str):
            units += text_units(len(here), place.patterns, place.squares)
        elif isinstance(here, dict):
            units += place.each * len(here)
            if place.name_patterns:
                units += sum(text_units(len(name), place.name_patterns, place.name_squares) for name in here)
            if place.names is not None:
                todo.extend((name, place.names, 0) for name in here)
            below = ((member, place.named.get(name, place.other)) for name, member in here.items())
            todo.extend((member, number, unique) for member, number in below if number is not None or unique)
        elif isinstance(here, list):
            units += place.each * len(here)
            unique += place.unique
            first, after = here[: len(place.prefix)], here[len(place.prefix) :]
            todo.extend((element, number, unique) for element, number in zip(first, place.prefix, strict=False))
            if place.rest is not None or unique:
                todo.extend((element, place.rest, unique) for element in after)
    return units


def text_units(length: int, patterns: int, squares: int) -> int:
    """Return the units to search patterns in a text; some patterns cost the square of its length."""
    return PATTERN_UNITS * patterns * length + squares * length * length // SQUARES_A_UNIT


def within_unique(places: list[SchemaPlace]) -> int | None:
    """Return the maximum number of nested lists with compared elements around a value.

    None means that cycles make it unlimited.
    """
    if not any(place.unique for place in places):
        return 0
    above = Counter(number for place in places for number in place.below())
    most, free = [0] * len(places), [number for number in range(len(places)) if not above[number]]
    done = 0
    while free:
        number = free.pop()
        done += 1
        for below in places[number].below():
            most[below] = max(most[below], most[number] + places[number].unique)
            above[below] -= 1
            if not above[below]:
                free.append(below)
    return None if done < len(places) else max(most[n] + place.unique for n, place in enumerate(places))


class _OfPart(Struct):
    """A part on its own: its units, its patterns, and nested parts that apply to the same place."""

    units: int
    patterns: int
    squares: int
    name_patterns: int
    name_squares: int
    is_unique: bool
    within: Parts


class _Below:
    """The parts that apply to members of the value at a place."""

    def __init__(self) -> None:
        self.named: dict[str, Parts] = {}
        self.others: Parts = []
        self.names: Parts = []
        self.prefix: list[Parts] = []
        self.rest: Parts = []

    def add(self, part: Part, times: int) -> None:
        """Add the parts for members from a part that is evaluated `times` times."""
        for name, below in _members(part.get("properties")):
            self.named.setdefault(name, []).extend([below] * times)
        self.others += [below for _, below in _members(part.get("patternProperties"))] * times
        self.others += [part[name] for name in _OTHERS if isinstance(part.get(name), dict)] * times
        self.names += [part["propertyNames"]] * times if isinstance(part.get("propertyNames"), dict) else []
        self.rest += [part[name] for name in _ELEMENTS if isinstance(part.get(name), dict)] * times
        items = part.get("items")
        self.rest += [items] * times if isinstance(items, dict) else []
        first = part.get("prefixItems", items)
        for i, below in enumerate(first if isinstance(first, list) else ()):
            if i == len(self.prefix):
                self.prefix.append([])
            self.prefix[i] += [below] * times if isinstance(below, dict) else []


class _Reader:
    def __init__(self, schema: Part) -> None:
        self._root = schema
        self._known: dict[frozenset[tuple[int, int]], int] = {}
        self._todo: list[Parts] = []
        self._parts: dict[int, _OfPart] = {}
        self._size = 0
        self._patterns = 0
        # Per part, the enclosing part with the $id that its references are relative to.
        self._roots: dict[int, Part] = {}
        self._anchors: dict[tuple[int, str], Part] = {}
        self._index(schema)

    def read(self) -> list[SchemaPlace]:
        self._number([self._root])
        places: list[SchemaPlace] = []
        while len(places) < len(self._todo):
            places.append(self._place(self._todo[len(places)]))
        return places

    def _index(self, schema: Part) -> None:
        todo: list[tuple[Any, Part]] = [(schema, schema)]
        while todo:
            value, root = todo.pop()
            if isinstance(value, dict):
                root = value if isinstance(value.get("$id"), str) else root
                self._roots[id(value)] = root
                for name in ("$anchor", "$dynamicAnchor"):
                    if isinstance(value.get(name), str):
                        self._anchors[id(root), value[name]] = value
                self._patterns += isinstance(value.get("pattern"), str) + len(_patterns(value))
            todo.extend((member, root) for member in _inside(value))
        if self._patterns > MOST_PATTERNS:
            raise _too_much(f"has {self._patterns} patterns; at most {MOST_PATTERNS} are allowed")

    def _number(self, parts: Parts) -> int:
        """Return the number of the place with these parts, each counted as often as it occurs."""
        self._count(len(parts))
        key = frozenset(Counter(map(id, parts)).items())
        if key not in self._known:
            self._known[key] = len(self._todo)
            self._todo.append(parts)
        return self._known[key]

    def _count(self, parts: int) -> None:
        self._size += parts
        if self._size > MOST_PARTS:
            raise _too_much(f"has over {MOST_PARTS} parts with its references resolved")

    def _place(self, parts: Parts) -> SchemaPlace:
        below, units, each, patterns, squares, names, name_squares, unique = _Below(), 0, 0, 0, 0, 0, 0, 0
        for part, times, is_asked_for_each in self._here(parts):
            known = self._known_part(part)
            units += known.units * times
            if units > MOST_AT_A_PLACE:
                raise _too_much(f"has over {MOST_AT_A_PLACE} keywords for one value with its references resolved")
            below.add(part, times)
            each += known.units * times if is_asked_for_each else 0
            patterns, squares = patterns + known.patterns * times, squares + known.squares * times
            names, name_squares = names + known.name_patterns * times, name_squares + known.name_squares * times
            unique += times if known.is_unique else 0
        return SchemaPlace(
            units=units, each=each, patterns=patterns, squares=squares, name_patterns=names,
            name_squares=name_squares, unique=unique, names=self._number(below.names) if below.names else None,
            named={name: self._number(found + below.others) for name, found in below.named.items()},
            other=self._number(below.others) if below.others else None,
            prefix=[self._number(found + below.rest) for found in below.prefix],
            rest=self._number(below.rest) if below.rest else None,
        )  # fmt: skip

    def _here(self, parts: Parts) -> Iterator[tuple[Part, int, bool]]:
        """Yield parts and nested parts at the same place: how often each applies, and whether once more per member."""
        above: list[Part] = []
        todo: list[tuple[int, Part, int, bool]] = [(0, part, 1, False) for part in parts]
        while todo:
            depth, part, times, each = todo.pop()
            del above[depth:]
            if any(part is one for one in above):
                raise _too_much("refers to itself without a step into the value")
            if depth > MOST_DEEP:
                raise _too_much(f"has over {MOST_DEEP} references and parts within each other")
            above.append(part)
            self._count(1)
            yield part, times, each
            if any(name in part for name in _UNEVALUATED):
                times, each = 2 * times, True
            todo.extend((depth + 1, one, times, each) for one in self._known_part(part).within)

    def _known_part(self, part: Part) -> "_OfPart":
        """Analyse a part on its own, once."""
        known = self._parts.get(id(part))
        if known is None:
            own = [part["pattern"]] if isinstance(part.get("pattern"), str) else []
            known = _OfPart(
                _units(part), len(own), sum(map(_looks_around, own)),
                len(_patterns(part)), sum(map(_looks_around, _patterns(part))),
                part.get("uniqueItems") is True, [*_within(part), *self._referred(part)],
            )  # fmt: skip
            self._parts[id(part)] = known
        return known

    def _referred(self, part: Part) -> Iterator[Part]:
        for name in _REFERENCES:
            if isinstance(part.get(name), str):
                found = self._resolved(part, part[name])
                if isinstance(found, dict):
                    yield found

    def _resolved(self, part: Part, reference: str) -> Any:
        """Return the target of a reference within the document."""
        root, fragment = self._roots[id(part)], reference.removeprefix("#")
        if fragment and not fragment.startswith("/"):
            return self._anchors.get((id(root), fragment)) or self._any_anchor(fragment)
        found: Any = root
        for step in fragment.split("/")[1:]:
            step = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and step.isdigit() and int(step) < len(found):
                found = found[int(step)]
            elif isinstance(found, dict) and step in found:
                found = found[step]
            else:
                raise Costly(f"schema refers to {reference[:100]}, which does not exist.", "Put it under $defs.")
        return found

    def _any_anchor(self, name: str) -> Part:
        for (_, anchor), part in self._anchors.items():
            if anchor == name:
                return part
        raise Costly(f"schema refers to #{name[:100]}, which does not exist.", "Name it with $anchor.")


def _patterns(part: Part) -> list[str]:
    """Return the patterns that a part applies to names."""
    found = part.get("patternProperties")
    return list(found) if isinstance(found, dict) else []


@lru_cache(maxsize=1024)
def _looks_around(pattern: str) -> bool:
    """Return whether a pattern has lookaround or back references, and so needs more than linear time."""
    try:
        pattern_matcher(pattern, len(pattern))
    except ValueError:
        return True
    return False


def _within(part: Part) -> Iterator[Part]:
    for name in _HERE:
        found = part.get(name)
        yield from (one for one in (found if isinstance(found, list) else ()) if isinstance(one, dict))
    yield from (part[name] for name in _HERE_ONE if isinstance(part.get(name), dict))
    for name in _HERE_NAMED:
        yield from (one for _, one in _members(part.get(name)))


def _members(value: Any) -> list[tuple[str, Part]]:
    return [(name, one) for name, one in value.items() if isinstance(one, dict)] if isinstance(value, dict) else []


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _units(part: Part) -> int:
    """Count the units of a part on its own: its keywords and the values it compares with."""
    units, todo = 1, [value for name, value in part.items() if name not in _BELOW and name not in _SAYS_NOTHING]
    units += FORMAT_UNITS if "format" in part else 0
    while todo:
        units += 1
        todo.extend(_inside(todo.pop()))
    return units


def _too_much(problem: str) -> Costly:
    return Costly(f"schema {problem}.", REMEDY, field="schema")
