"""The paths that an expression uses, and the values at those paths in a scope."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

Path = tuple[str, ...]
Branches: TypeAlias = "dict[str, Branches | None]"  # paths as a tree; None: the whole value at this path is needed

_NAME = r"[A-Za-z_]\w*"
# Comments and strings, recognized as in the evaluator; names in them are not paths. The evaluator has compiled every
# expression that is searched here, so every quote is closed. No search for a closing quote fails, and the whole search
# takes linear time.
SKIPPED_TEXT = (
    r"""//[^\n]*|\"\"\"(?:\\(?s:.)|[^\\])*?\"\"\"|'''(?:\\(?s:.)|[^\\])*?'''"""
    r"""|"(?:\\(?s:.)|[^"\\\n])*"|'(?:\\(?s:.)|[^'\\\n])*'"""
)
_KEY = r'\[\s*(?:"[^"\\]*"|\'[^\'\\]*\')\s*\]'
_PATH = rf"{_NAME}(?:\s*\.\s*{_NAME}|\s*{_KEY})*"
_WHOLE = re.compile(_PATH)
_FOUND = re.compile(rf"{SKIPPED_TEXT}|(?<![\w.])({_PATH})\s*(\(?)")
_PART = re.compile(rf"{_NAME}|\"[^\"]*\"|'[^']*'")
MISSING = object()


class RemoteValue(dict[str, Any]):
    """A placeholder for a value that is not at hand, such as a large one that is stored outside the database.

    An expression may return the placeholder as a whole, but cannot read its members. `why` tells users the reason.
    """

    def __init__(self, placeholder: Mapping[str, Any], why: str) -> None:
        super().__init__(placeholder)
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
            _add(tree, path[:-1] if found[2] and len(path) > 1 else path)  # the last name is a method
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
    """Return the first path of the tree that leads to a remote value, followed by the reason; None without one."""
    for name, below in tree.items():
        value = scope.get(name)
        if isinstance(value, RemoteValue):
            return f"{name} {value.why}"
        if below and isinstance(value, Mapping) and (found := remote_path(value, below)):
            return f"{name}.{found}"
    return None


def null_above(scope: Mapping[str, Any], tree: Branches) -> str | None:
    """Return the first path at which the value is null although the expression reads a member of it."""
    for name, below in tree.items():
        value = scope.get(name, MISSING) if below else MISSING
        if value is None:
            return name
        if below and isinstance(value, Mapping) and (found := null_above(value, below)):
            return f"{name}.{found}"
    return None
