"""The paths that an expression uses, and the values at those paths in a scope."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

Path = tuple[str, ...]
Branches: TypeAlias = "dict[str, Branches | None]"  # None: the whole value is needed

_NAME = r"[A-Za-z_]\w*"
# Comments and strings, which contain no paths, lexed as in the evaluator. Each quote is closed: a search is linear.
PASSED = (
    r"""//[^\n]*|\"\"\"(?:\\(?s:.)|[^\\])*?\"\"\"|'''(?:\\(?s:.)|[^\\])*?'''"""
    r"""|"(?:\\(?s:.)|[^"\\\n])*"|'(?:\\(?s:.)|[^'\\\n])*'"""
)
_KEY = r'\[\s*(?:"[^"\\]*"|\'[^\'\\]*\')\s*\]'
_PATH = rf"{_NAME}(?:\s*\.\s*{_NAME}|\s*{_KEY})*"
_WHOLE = re.compile(_PATH)
_FOUND = re.compile(rf"{PASSED}|(?<![\w.])({_PATH})\s*(\(?)")
_PART = re.compile(rf"{_NAME}|\"[^\"]*\"|'[^']*'")
MISSING = object()


class RemoteValue(dict[str, Any]):
    """A placeholder for a value stored elsewhere: an expression may return it as a whole, but cannot read inside it."""

    def __init__(self, stands: Mapping[str, Any], why: str) -> None:
        super().__init__(stands)
        self.why = why


def plain_path(source: str) -> Path | None:
    """Return the path if the expression is nothing but a path, such as `steps.extract.result`."""
    return tuple(_parts(source)) if _WHOLE.fullmatch(source) else None


def _parts(path: str) -> list[str]:
    """Return the names in a path, including names in brackets."""
    return [part if part[0].isidentifier() else part[1:-1] for part in _PART.findall(path)]


def value_at(scope: Mapping[str, Any], path: Path) -> Any:
    """Return the value at a path, or MISSING."""
    value: Any = scope
    for name in path:
        if not isinstance(value, Mapping) or name not in value or value.__class__ is RemoteValue:
            return MISSING
        value = value[name]
    return value


@lru_cache(maxsize=4096)
def branches_of(source: str) -> Branches:
    """Return the paths that an expression may read, as a tree."""
    tree: Branches = {}
    for found in _FOUND.finditer(source):
        if found[1]:
            path = _parts(found[1])
            _add(tree, path[:-1] if found[2] and len(path) > 1 else path)  # the last one is a method
    return tree


def _add(tree: Branches, path: Iterable[str]) -> None:
    *above, last = path
    for name in above:
        below = tree.setdefault(name, {})
        if below is None:
            return
        tree = below
    tree[last] = None


def remote_path(scope: Mapping[str, Any], tree: Branches) -> str | None:
    """Return the first of these paths that reaches a remote value, with the reason that it is remote."""
    for name, below in tree.items():
        value = scope.get(name)
        if isinstance(value, RemoteValue):
            return f"{name} {value.why}"
        if below and isinstance(value, Mapping) and (found := remote_path(value, below)):
            return f"{name}.{found}"
    return None


def null_above(scope: Mapping[str, Any], tree: Branches) -> str | None:
    """Return the first path that is null although the expression reads below it."""
    for name, below in tree.items():
        value = scope.get(name, MISSING) if below else MISSING
        if value is None:
            return name
        if below and isinstance(value, Mapping) and (found := null_above(value, below)):
            return f"{name}.{found}"
    return None
