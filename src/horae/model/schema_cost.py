"""How much work it is to check a value against a schema, known before the value is checked.

A schema is read as places: the parts of it, with their references written out, that apply to one place of a value,
and those that apply to the members of what lies there. References that multiply, circles that stay at one place, and
circles that double with every level make too much of a place, and are refused with the definition. A unit is one
keyword at one place.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from horae.errors import Costly

MOST_UNITS = 500_000  # of one check: some ten milliseconds
MOST_AT_A_PLACE = 10_000
MOST_PARTS = 30_000  # of all places together
MOST_PATTERNS = 200
MOST_DEEP = 200
FORMAT_UNITS = 20  # a format that we read ourselves
REMEDY = "Write less of it under allOf, anyOf and oneOf, and let fewer $refs lead to what has $refs itself."
_HERE = ("allOf", "anyOf", "oneOf")
_HERE_ONE = ("not", "if", "then", "else")
_HERE_NAMED = ("dependentSchemas", "dependencies")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_OTHERS = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_ELEMENTS = ("additionalItems", "unevaluatedItems", "contains")
_BELOW = frozenset(
    (*_HERE, *_HERE_ONE, *_HERE_NAMED, *_OTHERS, *_ELEMENTS, "properties", "patternProperties", "items", "prefixItems")
)
_SAYS_NOTHING = frozenset(
    ("$defs", "definitions", "default", "examples", "title", "description", "$comment", "$schema")
)

Part = dict[str, Any]
Parts = list[Part]


class Place(Struct):
    """What applies to one place of a value: how many units, and the places below it, by their numbers."""

    units: int
    patterns: int
    named: dict[str, int]
    other: int | None
    prefix: list[int]
    rest: int | None


def places_of(schema: Part) -> list[Place]:
    """The places of a schema, the value itself first. Raises Costly."""
    return _Reader(schema).read()


def units_of(places: list[Place], value: Any, most: int) -> int:
    """How many units it takes to check a value; at least `most` + 1 when it is more than that."""
    units, todo = 0, [(value, 0)]
    while todo and units <= most:
        here, number = todo.pop()
        place = places[number]
        units += place.units + 1
        if isinstance(here, str):
            units += place.patterns * len(here)
        elif isinstance(here, dict):
            below = ((member, place.named.get(name, place.other)) for name, member in here.items())
            todo.extend((member, number) for member, number in below if number is not None)
        elif isinstance(here, list):
            todo.extend(zip(here, place.prefix, strict=False))
            if place.rest is not None:
                todo.extend((element, place.rest) for element in here[len(place.prefix) :])
    return units


class _OfPart(Struct):
    """A part by itself: its units, its patterns, and the parts within it that apply to the same place."""

    units: int
    patterns: int
    within: Parts


class _Below:
    """The parts that apply to members of what lies at a place."""

    def __init__(self) -> None:
        self.named: dict[str, Parts] = {}
        self.others: Parts = []
        self.prefix: list[Parts] = []
        self.rest: Parts = []

    def add(self, part: Part) -> None:
        """Sort what a part says of members."""
        for name, below in _members(part.get("properties")):
            self.named.setdefault(name, []).append(below)
        self.others += (below for _, below in _members(part.get("patternProperties")))
        self.others += (part[name] for name in _OTHERS if isinstance(part.get(name), dict))
        self.rest += (part[name] for name in _ELEMENTS if isinstance(part.get(name), dict))
        items = part.get("items")
        self.rest += [items] if isinstance(items, dict) else []
        first = part.get("prefixItems", items)
        for i, below in enumerate(first if isinstance(first, list) else ()):
            if i == len(self.prefix):
                self.prefix.append([])
            self.prefix[i] += [below] if isinstance(below, dict) else []


class _Reader:
    def __init__(self, schema: Part) -> None:
        self._root = schema
        self._known: dict[frozenset[tuple[int, int]], int] = {}
        self._todo: list[Parts] = []
        self._parts: dict[int, _OfPart] = {}
        self._size = 0
        self._patterns = 0
        self._roots: dict[int, Part] = {}  # of each part, the part with an $id that its references begin at
        self._anchors: dict[tuple[int, str], Part] = {}
        self._index(schema)

    def read(self) -> list[Place]:
        self._number([self._root])
        places: list[Place] = []
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
                self._patterns += isinstance(value.get("pattern"), str) + len(_members(value.get("patternProperties")))
            todo.extend((member, root) for member in _inside(value))
        if self._patterns > MOST_PATTERNS:
            raise _too_much(f"has {self._patterns} patterns; at most {MOST_PATTERNS} are allowed")

    def _number(self, parts: Parts) -> int:
        """The number of the place to which these parts apply, each so many times."""
        self._count(len(parts))
        key = frozenset(Counter(map(id, parts)).items())
        if key not in self._known:
            self._known[key] = len(self._todo)
            self._todo.append(parts)
        return self._known[key]

    def _count(self, parts: int) -> None:
        self._size += parts
        if self._size > MOST_PARTS:
            raise _too_much(f"stands for over {MOST_PARTS} parts with its references written out")

    def _place(self, parts: Parts) -> Place:
        below, units, patterns = _Below(), 0, 0
        for part in self._here(parts):
            below.add(part)
            units += self._known_part(part).units
            patterns += self._known_part(part).patterns
            if units > MOST_AT_A_PLACE:
                raise _too_much(f"has over {MOST_AT_A_PLACE} keywords for one value with its references written out")
        return Place(
            units=units, patterns=patterns,
            named={name: self._number(found + below.others) for name, found in below.named.items()},
            other=self._number(below.others) if below.others else None,
            prefix=[self._number(found + below.rest) for found in below.prefix],
            rest=self._number(below.rest) if below.rest else None,
        )  # fmt: skip

    def _here(self, parts: Parts) -> Iterator[Part]:
        """Parts, and those within them that apply to the same place."""
        above: list[Part] = []
        todo: list[tuple[int, Part]] = [(0, part) for part in parts]
        while todo:
            depth, part = todo.pop()
            del above[depth:]
            if any(part is one for one in above):
                raise _too_much("refers to itself without a step into the value")
            if depth > MOST_DEEP:
                raise _too_much(f"has over {MOST_DEEP} references and parts within each other")
            above.append(part)
            self._count(1)
            yield part
            todo.extend((depth + 1, one) for one in self._known_part(part).within)

    def _known_part(self, part: Part) -> "_OfPart":
        """What a part is by itself, found out once."""
        known = self._parts.get(id(part))
        if known is None:
            patterns = ("pattern" in part) + len(_members(part.get("patternProperties")))
            known = _OfPart(_units(part), patterns, [*_within(part), *self._referred(part)])
            self._parts[id(part)] = known
        return known

    def _referred(self, part: Part) -> Iterator[Part]:
        for name in _REFERENCES:
            if isinstance(part.get(name), str):
                found = self._resolved(part, part[name])
                if isinstance(found, dict):
                    yield found

    def _resolved(self, part: Part, reference: str) -> Any:
        """What a reference within the document leads to."""
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
                raise Costly(f"schema refers to {reference[:100]}, which is not there.", "Put it under $defs.")
        return found

    def _any_anchor(self, name: str) -> Part:
        for (_, anchor), part in self._anchors.items():
            if anchor == name:
                return part
        raise Costly(f"schema refers to #{name[:100]}, which is not there.", "Name it with $anchor.")


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
    """How many units a part takes by itself: its keywords, and all that is to be compared with."""
    units, todo = 1, [value for name, value in part.items() if name not in _BELOW and name not in _SAYS_NOTHING]
    units += FORMAT_UNITS if "format" in part else 0
    while todo:
        units += 1
        todo.extend(_inside(todo.pop()))
    return units


def _too_much(told: str) -> Costly:
    return Costly(f"schema {told}.", REMEDY, field="schema")
