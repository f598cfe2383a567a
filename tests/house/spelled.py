"""The places where a module spells names of fields: as literals, in lists of names, and as keys of documents."""

import ast
import re
from collections.abc import Collection, Iterator

from tests.house.source import parsed

READS = {"get", "pop", "setdefault"}
_COMPOUND = re.compile(r"[a-z]+[A-Z]")


def is_compound(name: str) -> bool:
    """Return whether a name is not an English word, such as `pauseAfter`: it always means the field."""
    return bool(_COMPOUND.match(name))


def compounds(source: str, names: Collection[str]) -> Iterator[tuple[int, str]]:
    """Yield literals that are compound names, with their lines."""
    for node in parsed(source):
        if isinstance(node, ast.Constant) and node.value in names and is_compound(node.value):
            yield node.lineno, node.value


def keys(source: str, names: Collection[str]) -> Iterator[tuple[int, str]]:
    """Yield names by which documents are read or written: `document["name"]`, `document.get("name")`."""
    for node in parsed(source):
        key: ast.AST | None = None
        if isinstance(node, ast.Subscript):
            key = node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READS:
            key = next(iter(node.args), None)
        if isinstance(key, ast.Constant) and key.value in names:
            yield key.lineno, str(key.value)


def lists(source: str) -> Iterator[tuple[int, list[str]]]:
    """Yield names that are literals in one dict, tuple, list or set."""
    for node in parsed(source):
        if isinstance(node, ast.Dict):
            yield node.lineno, _texts(node.keys)
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            yield node.lineno, _texts(node.elts)


def declared(source: str) -> Iterator[tuple[int, list[str]]]:
    """Yield names that a class or the parameters of a function declare, in API form."""
    for node in parsed(source):
        if isinstance(node, ast.ClassDef):
            fields = [one.target for one in node.body if isinstance(one, ast.AnnAssign)]
            yield node.lineno, [_camel(one.id) for one in fields if isinstance(one, ast.Name)]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, [_camel(one.arg) for one in (*node.args.args, *node.args.kwonlyargs)]


def _texts(nodes: Collection[ast.expr | None]) -> list[str]:
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def _camel(name: str) -> str:
    head, *rest = name.strip("_").split("_")
    return head + "".join(map(str.capitalize, rest))
