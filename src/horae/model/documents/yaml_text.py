"""YAML documents read as JSON values, within bounds; each error has its line and column.

The size of a text with its aliases expanded is counted from the parser's events, before any value is built, because a
few lines of aliases can expand to more than the memory.
"""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from horae.errors import BadInput
from horae.model.executions.parcel import MAX_DEPTH

if TYPE_CHECKING:
    import yaml

_MERGE = "tag:yaml.org,2002:merge"
_PLAIN = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_LEAST, _MOST = -(2**63), 2**64 - 1  # the range of whole numbers that JSON readers keep exactly
_MOST_PLACES = 10_000
_LONG = 32  # every so many characters of a string count as one more value, so that aliases of long strings count more


class Bounds(Struct, frozen=True):
    """The maximum length of a text, and the maximum number of its values with aliases expanded."""

    characters: int
    values: int


REQUEST = Bounds(256 * 1024, 100_000)
FILE = Bounds(64 * 1024 * 1024, 10_000_000)


class Document(Struct, frozen=True):
    """A value, and the line and column (from 1) of each member, by its path as errors spell it: `steps[0].name`."""

    value: Any
    places: dict[str, tuple[int, int]]


def read_documents(text: str, bounds: Bounds = REQUEST) -> list[Document]:
    """Parse the documents of a text.

    Invalid YAML, a text over the bounds, a repeated name, and values without a JSON form are refused.
    """
    import yaml

    if len(text) > bounds.characters:
        remedy = f"At most {bounds.characters} characters are read; cut it into parts."
        raise BadInput(f"The text has {len(text)} characters.", remedy, field="text")
    try:
        _measure(text, bounds)
        return list(_documents(text))
    except yaml.MarkedYAMLError as error:
        what = ": ".join(part for part in (error.context, error.problem) if part)
        raise _wrong(what, error.problem_mark or error.context_mark, "Check this line and the one before.") from None
    except yaml.YAMLError as error:  # characters that no YAML text may contain
        place = getattr(error, "position", 0)
        before = text[:place] if isinstance(place, int) else ""
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        problem = f"Line {line}, column {column}: a character that YAML does not allow."
        raise BadInput(problem, "Take it out, or write it as an escape in quotes.", **_at(line, column)) from None


def _at(line: int, column: int) -> dict[str, Any]:
    return {"field": "text", "line": line, "column": column}


def _wrong(what: str, mark: Any, remedy: str) -> BadInput:
    line, column = (1, 1) if mark is None else (mark.line + 1, mark.column + 1)
    return BadInput(f"Line {line}, column {column}: {what}.", remedy, **_at(line, column))


def _loader() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _measure(text: str, bounds: Bounds) -> None:
    """Refuse a text that is too large or nested too deeply, from the events of the parser."""
    import yaml

    known: dict[str, tuple[int, int]] = {}  # by anchor: the number of values that it stands for, and their depth
    within: list[tuple[str, int]] = []  # for each open collection: its anchor, and the number of values before it
    deepest: list[int] = [0]  # the depth of the document, and below each open collection
    total = 0
    for event in yaml.parse(text, Loader=_loader()):
        values, deep, anchor = 0, 0, getattr(event, "anchor", None) or ""
        if isinstance(event, yaml.DocumentStartEvent):
            known.clear()
        elif isinstance(event, yaml.AliasEvent):
            if any(name == anchor for name, _ in within):
                raise _wrong(f"*{anchor} contains itself", event.start_mark, "JSON has no cycles.")
            values, deep = known.get(anchor, (1, 0))  # an unknown alias is refused by the reader
        elif isinstance(event, yaml.ScalarEvent):
            values = 1 + len(event.value) // _LONG
            known.update({anchor: (values, 0)} if anchor else {})
        elif isinstance(event, yaml.CollectionStartEvent):
            within.append((anchor, total))
            deepest.append(0)
            values = 1
        elif isinstance(event, yaml.CollectionEndEvent):
            (name, before), deep = within.pop(), deepest.pop() + 1
            known.update({name: (total - before, deep)} if name else {})
        total, deepest[-1] = total + values, max(deepest[-1], deep)
        if total > bounds.values:
            remedy = "Shorten the text, or use fewer aliases."
            raise _wrong(f"this expands to more than {bounds.values} values", event.start_mark, remedy)
        if len(within) + deep > MAX_DEPTH:
            raise _wrong(f"this is nested more than {MAX_DEPTH} levels deep", event.start_mark, "Nest it less.")


def _documents(text: str) -> Iterator[Document]:
    loader = _loader()(text)
    try:
        while loader.check_node():
            yield _Builder(loader).document(loader.get_node())
    finally:
        loader.dispose()


class _Builder:
    """Builds the value of one document from its nodes. A node with several aliases is built once."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._made: dict[int, Any] = {}
        self._places: dict[str, tuple[int, int]] = {}

    def document(self, node: "yaml.Node") -> Document:
        return Document(self._value(node, ""), self._places)

    def _value(self, node: Any, path: str) -> Any:
        if len(self._places) < _MOST_PLACES:
            self._places.setdefault(path, (node.start_mark.line + 1, node.start_mark.column + 1))
        if id(node) not in self._made:
            self._made[id(node)] = self._make(node, path)
        return self._made[id(node)]

    def _make(self, node: Any, path: str) -> Any:
        if isinstance(node.value, str):
            return self._scalar(node)
        if node.tag not in _PLAIN:
            raise _wrong(f"the tag {node.tag} is not supported", node.start_mark, "Remove the tag.")
        if node.id == "sequence":
            return [self._value(one, f"{path}[{at}]") for at, one in enumerate(node.value)]
        self._refuse_repeated_names(node)
        self._loader.flatten_mapping(node)
        members: dict[str, Any] = {}
        for key, value in node.value:
            name = self._name(key)
            where = f"{path}.{name}" if path else name
            if len(self._places) < _MOST_PLACES:
                self._places[where] = (key.start_mark.line + 1, key.start_mark.column + 1)
            members[name] = self._value(value, where)
        return members

    def _refuse_repeated_names(self, node: Any) -> None:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag == _MERGE:
                continue
            name = self._name(key)
            if name in seen:
                raise _wrong(f"the key {name!r} occurs twice", key.start_mark, "Remove one of them.")
            seen.add(name)

    def _name(self, key: Any) -> str:
        value = self._scalar(key) if isinstance(key.value, str) else None
        if isinstance(value, str):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(key.value)
        raise _wrong("a name is not a text", key.start_mark, "Put it in quotes.")

    def _scalar(self, node: Any) -> Any:
        try:
            value = self._loader.construct_object(node)
        except (ValueError, OverflowError, LookupError, AttributeError, TypeError) as error:  # PyYAML lets them through
            raise _wrong(f"{node.value[:40]!r} cannot be read: {error}", node.start_mark, "Put it in quotes.") from None
        lost = isinstance(value, float) and not math.isfinite(value)
        if lost or (isinstance(value, int) and not _LEAST <= value <= _MOST):
            raise _wrong("JSON has no such number", node.start_mark, "Put it in quotes if it is a text.")
        return value if isinstance(value, str | int | float | None) else msgspec.to_builtins(value)
