"""The router: it finds the route for a path and a method.

A path without parameters is looked up as a whole; the parts of any other path are followed one by one. A literal part
has precedence over a parameter, and `{file}` matches all remaining parts of a path.
"""

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")
REST = "{file}"


class _Part(Generic[T]):
    """A node of the tree of paths: the parts that may follow, and the values of the path that ends here, by method."""

    __slots__ = ("here", "literals", "parameter", "parts", "rest")

    def __init__(self) -> None:
        self.literals: dict[str, _Part[T]] = {}
        self.parts: _Part[T] | None = None  # the parts after a parameter
        self.parameter = ""
        self.rest: dict[str, T] | None = None  # the values of a path that ends with `{file}` here
        self.here: dict[str, T] = {}


Found = tuple[Mapping[str, T], dict[str, str]]


class Router(Generic[T]):
    """Finds the values registered for a path."""

    def __init__(self, places: Iterable[tuple[str, str, T]]) -> None:
        """Take tuples of method, path and value."""
        self._whole: dict[str, dict[str, T]] = {}
        self._root: _Part[T] = _Part()
        for method, path, what in places:
            here = self._at(path) if "{" in path else self._whole.setdefault(path, {})
            here[method] = what

    def find(self, path: str) -> Found[T] | None:
        """Return the values at a path by method, and the path's parameters; None if there are none."""
        whole = self._whole.get(path)
        if whole is not None:
            return whole, {}
        part, parameters = self._root, dict[str, str]()
        parts = path.split("/")[1:]
        for at, text in enumerate(parts):
            if (literal := part.literals.get(text)) is not None:
                part = literal
            elif part.rest is not None:
                return part.rest, {**parameters, REST[1:-1]: "/".join(parts[at:])}
            elif part.parts is not None and text:
                parameters[part.parameter] = text
                part = part.parts
            else:
                return None
        return (part.here, parameters) if part.here else None

    def _at(self, path: str) -> dict[str, T]:
        part = self._root
        for text in path.split("/")[1:]:
            if text == REST:
                part.rest = part.rest if part.rest is not None else {}
                return part.rest
            if text.startswith("{"):
                part.parameter = text[1:-1]
                part.parts = part.parts or _Part()
                part = part.parts
            else:
                part = part.literals.setdefault(text, _Part())
        return part.here
