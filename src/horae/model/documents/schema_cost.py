"""The cost of checking a value against a schema, computed before the check.

A *part* is a subschema. A *place* holds all parts, with references resolved, that apply to one position of a value; it
links to the places of the members below. A *unit* of cost is one keyword at one place. Some schemas have too many parts
for one place: references multiply them, or a cycle of references stays at one position or doubles them at every level.
Such a schema is refused when it is defined.
"""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from horae.errors import Costly
from horae.model.expressions.patterns import pattern_matcher

MOST_UNITS = 500_000  # units of one check: about ten milliseconds
MOST_AT_A_PLACE = 10_000  # units of one place
MOST_PARTS = 30_000  # parts of all places together
MOST_PATTERNS = 200
MOST_DEEP = 200  # parts and references nested within each other at one place
FORMAT_UNITS = 20  # units for a format, which Horae's own parser checks
PATTERN_UNITS = 4  # units for each character of a text or name in which a pattern is searched
# A pattern with lookaround or back references may read the text again for each character of the text. So the square of
# the text's length counts; this is the part of it that costs one unit.
SQUARES_A_UNIT = 8
UNIQUE_UNITS = 2  # units for each value within a list with `uniqueItems`, whose elements are compared
REMEDY = "Use fewer parts under allOf, anyOf and oneOf, and fewer $refs to parts with $refs of their own."
# Keywords with parts that apply to the same position: lists of parts, single parts, and parts by name.
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
    """The cost of one position of a value, and the numbers (indexes in the list of places) of the places below it."""

    units: int
    each: int  # additional units for each member or element, if there is a keyword `unevaluated...`
    patterns: int  # patterns that are searched in a text at this place
    squares: int  # those of `patterns` with lookaround or back references
    name_patterns: int  # patterns that are searched in the names of members
    name_squares: int  # those of `name_patterns` with lookaround or back references
    unique: int  # parts with `uniqueItems`
    named: dict[str, int]  # the places of members, by name
    other: int | None  # the place of all other members
    names: int | None  # the place of the names of members
    prefix: list[int]  # the places of the first elements
    rest: int | None  # the place of all other elements

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
    """Return the maximum number of lists with `uniqueItems` in which a value can be nested.

    Return None if a cycle of references makes it unlimited.
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


class _Below:
    """The parts that apply to members and elements of the value: those that one part contains, or all of a place."""

    def __init__(self, part: Part) -> None:
        items = part.get("items")
        first = part.get("prefixItems", items)
        first = first if isinstance(first, list) else []
        self.named = {name: [below] for name, below in _members(part.get("properties"))}
        self.others = [below for _, below in _members(part.get("patternProperties"))] + _singles(part, _OTHERS)
        self.names = _singles(part, ("propertyNames",))
        self.prefix = {i: [below] for i, below in enumerate(first) if isinstance(below, dict)}
        self.prefix_length = len(first)
        self.rest = _singles(part, (*_ELEMENTS, "items"))

    @property
    def count(self) -> int:
        """The number of all these parts."""
        return sum(map(len, (self.others, self.names, self.rest, *self.named.values(), *self.prefix.values())))

    def add(self, more: "_Below", times: int) -> None:
        """Add the parts of a part that is evaluated `times` times."""
        for name, below in more.named.items():
            self.named.setdefault(name, []).extend(below * times)
        for i, below in more.prefix.items():
            self.prefix.setdefault(i, []).extend(below * times)
        self.prefix_length = max(self.prefix_length, more.prefix_length)
        self.others += more.others * times
        self.names += more.names * times
        self.rest += more.rest * times


class _OfPart(Struct):
    """The analysis of one part: its units, its patterns, the parts nested in it, and those for what is below."""

    units: int
    patterns: int
    squares: int
    name_patterns: int
    name_squares: int
    is_unique: bool
    within: Parts  # these apply to the same place
    below: _Below
    below_count: int


class _Reader:
    def __init__(self, schema: Part) -> None:
        self._root = schema
        self._known: dict[frozenset[tuple[int, int]], int] = {}
        self._todo: list[Parts] = []
        self._parts: dict[int, _OfPart] = {}
        self._size = 0
        self._patterns = 0
        # By the Python id of a part: the enclosing part with an $id, to which references in the part are relative.
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
        """Return the number of the place with exactly these parts; add the place if it is new."""
        self._count(len(parts))
        key = frozenset(Counter(map(id, parts)).items())
        if key not in self._known:
            self._known[key] = len(self._todo)
            self._todo.append(parts)
        return self._known[key]

    def _count(self, parts: int, expected: int = 0) -> None:
        """Count parts. Raises Costly if there are too many, also together with `expected` ones that follow."""
        self._size += parts
        if self._size + expected > MOST_PARTS:
            raise _too_much(f"has over {MOST_PARTS} parts with its references resolved")

    def _place(self, parts: Parts) -> SchemaPlace:
        below, units, each, patterns, squares, names, name_squares, unique = _Below({}), 0, 0, 0, 0, 0, 0, 0
        expected = 0
        for part, times, is_asked_for_each in self._here(parts):
            known = self._known_part(part)
            units += known.units * times
            if units > MOST_AT_A_PLACE:
                raise _too_much(f"has over {MOST_AT_A_PLACE} keywords for one value with its references resolved")
            expected += known.below_count * times
            self._count(0, expected)
            below.add(known.below, times)
            each += known.units * times if is_asked_for_each else 0
            patterns, squares = patterns + known.patterns * times, squares + known.squares * times
            names, name_squares = names + known.name_patterns * times, name_squares + known.name_squares * times
            unique += times if known.is_unique else 0
        return SchemaPlace(
            units=units, each=each, patterns=patterns, squares=squares, name_patterns=names,
            name_squares=name_squares, unique=unique, names=self._number(below.names) if below.names else None,
            named={name: self._number(found + below.others) for name, found in below.named.items()},
            other=self._number(below.others) if below.others else None,
            prefix=[self._number(below.prefix.get(i, []) + below.rest) for i in range(below.prefix_length)],
            rest=self._number(below.rest) if below.rest else None,
        )  # fmt: skip

    def _here(self, parts: Parts) -> Iterator[tuple[Part, int, bool]]:
        """Yield the parts of a place, and the parts nested in them that apply to the same place.

        Each comes with the number of its evaluations, and whether it is evaluated again for each member.
        """
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
            below = _Below(part)
            known = _OfPart(
                _units(part), len(own), sum(map(_looks_around, own)),
                len(_patterns(part)), sum(map(_looks_around, _patterns(part))),
                part.get("uniqueItems") is True, [*_within(part), *self._referred(part)], below, below.count,
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
    """Return the patterns that a part applies to the names of members."""
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
    yield from _singles(part, _HERE_ONE)
    for name in _HERE_NAMED:
        yield from (one for _, one in _members(part.get(name)))


def _members(value: Any) -> list[tuple[str, Part]]:
    return [(name, one) for name, one in value.items() if isinstance(one, dict)] if isinstance(value, dict) else []


def _singles(part: Part, names: tuple[str, ...]) -> Parts:
    return [part[name] for name in names if isinstance(part.get(name), dict)]


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
