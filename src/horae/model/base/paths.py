"""The paths that an expression speaks of, and what lies at them in a scope."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

Path = tuple[str, ...]
Branches: TypeAlias = "dict[str, Branches | None]"  # None: all below is needed

_NAME = r"[A-Za-z_]\w*"
# What no path stands in, read as the evaluator reads it: each quote that it begins at is closed, so a search is linear.
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
    """What stands for a value that is not here: it can be handed on as it is, and nothing can be read in it."""

    def __init__(self, stands: Mapping[str, Any], why: str) -> None:
        super().__init__(stands)
        self.why = why


def plain_path(source: str) -> Path | None:
    """The path that an expression is, if it is nothing else: `steps.extract.result`."""
    return tuple(_parts(source)) if _WHOLE.fullmatch(source) else None


def _parts(path: str) -> list[str]:
    """The names of a path, also of those that stand in brackets."""
    return [part if part[0].isidentifier() else part[1:-1] for part in _PART.findall(path)]


def value_at(scope: Mapping[str, Any], path: Path) -> Any:
    """What lies at a path, or MISSING."""
    value: Any = scope
    for name in path:
        if not isinstance(value, Mapping) or name not in value or value.__class__ is RemoteValue:
            return MISSING
        value = value[name]
    return value


@lru_cache(maxsize=4096)
def branches_of(source: str) -> Branches:
    """The paths that an expression may look at, as a tree."""
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


def far_at(scope: Mapping[str, Any], tree: Branches) -> str | None:
    """The first of these paths that leads to a value which is far, or through it, and why it is."""
    for name, below in tree.items():
        value = scope.get(name)
        if isinstance(value, RemoteValue):
            return f"{name} {value.why}"
        if below and isinstance(value, Mapping) and (found := far_at(value, below)):
            return f"{name}.{found}"
    return None


def null_above(scope: Mapping[str, Any], tree: Branches) -> str | None:
    """The first path that is null though something below it is asked for."""
    for name, below in tree.items():
        value = scope.get(name, MISSING) if below else MISSING
        if value is None:
            return name
        if below and isinstance(value, Mapping) and (found := null_above(value, below)):
            return f"{name}.{found}"
    return None
