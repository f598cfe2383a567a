"""What of a scope an expression speaks of: CEL converts all that it is given, so it is given no more than that."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

Path = tuple[str, ...]
Branches: TypeAlias = "dict[str, Branches | None]"  # None: all below is needed

_NAME = r"[A-Za-z_]\w*"
_QUOTED = r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\''
_WHOLE = re.compile(rf"{_NAME}(?:\.{_NAME})*")
_FOUND = re.compile(rf"{_QUOTED}|(?<![\w.])({_NAME}(?:\s*\.\s*{_NAME})*)\s*(\(?)")
MISSING = object()


def plain_path(source: str) -> Path | None:
    """The path that an expression is, if it is nothing else: `steps.extract.result`."""
    return tuple(source.split(".")) if _WHOLE.fullmatch(source) else None


def value_at(scope: Mapping[str, Any], path: Path) -> Any:
    """What lies at a path, or MISSING."""
    value: Any = scope
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return MISSING
        value = value[name]
    return value


@lru_cache(maxsize=4096)
def branches_of(source: str) -> Branches:
    """The paths that an expression may look at, as a tree."""
    tree: Branches = {}
    for found in _FOUND.finditer(source):
        if found[1]:
            path = [name.strip() for name in found[1].split(".")]
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


def pruned(scope: Mapping[str, Any], tree: Branches) -> dict[str, Any]:
    """The part of a scope that lies on these paths; what is not there is left out."""
    return {
        name: value if below is None or not isinstance(value, Mapping) else pruned(value, below)
        for name, below in tree.items()
        if (value := scope.get(name, MISSING)) is not MISSING
    }


def null_above(scope: Mapping[str, Any], tree: Branches) -> str | None:
    """The first path that is null though something below it is asked for."""
    for name, below in tree.items():
        value = scope.get(name, MISSING) if below else MISSING
        if value is None:
            return name
        if below and isinstance(value, Mapping) and (found := null_above(value, below)):
            return f"{name}.{found}"
    return None
