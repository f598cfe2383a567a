"""Marks in the source: comments such as `# guard: live-session; gate: held`, and the functions around them.

A mark names the statement or condition that stands on its line, so that a test can speak of it wherever it moves and
whatever its variables are called. Behind closing brackets it is about what they close. The source is read once, when
a test first asks: a file may be edited during a long proof.
"""

import ast
import copy
import inspect
import io
import re
import tokenize
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from msgspec import Struct

import horae

SOURCE = Path(horae.__file__).parent
Change = Callable[[ast.FunctionDef], None]
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Mark(Struct, frozen=True):
    """What a comment says of its line, and the outermost function around it; outside of functions its name is empty."""

    kind: str
    text: str
    module: str
    line: int
    function: str

    @property
    def at(self) -> tuple[str, int]:
        return self.module, self.line

    @property
    def place(self) -> str:
        return f"{self.module}, line {self.line}"


@cache
def sources() -> dict[str, str]:
    """The text of every module, by its dotted name."""
    return {_dotted(path): path.read_text() for path in sorted(SOURCE.rglob("*.py"))}


def _dotted(path: Path) -> str:
    parts = [SOURCE.name, *path.relative_to(SOURCE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(sources()[module])


@cache
def marks(kind: str) -> tuple[Mark, ...]:
    """All marks of one kind."""
    return tuple(mark for module, text in sources().items() if f" {kind}: " in text for mark in _marks(kind, module))


def _marks(kind: str, module: str) -> Iterator[Mark]:
    pattern, lines = re.compile(rf"{kind}: ([\w\-, ]*\w)"), sources()[module].split("\n")
    for token in tokenize.generate_tokens(io.StringIO(sources()[module]).readline):
        said = token.string.lstrip("# ").split("; ") if token.type == tokenize.COMMENT else []
        for found in filter(None, map(pattern.fullmatch, said)):
            line = marked_line(lines, token.start[0])
            yield Mark(kind, found[1], module, line, ".".join(node.name for node in _around(module, line)))


def marked_line(lines: Sequence[str], line: int) -> int:
    """The line that a mark is about: behind closing brackets alone, the last one within them."""
    while re.match(r"\s*[)\]}][)\]},:]*\s*(#|$)", lines[line - 1]):
        line -= 1
    return line


def _around(module: str, line: int) -> list[ast.ClassDef | ast.FunctionDef]:
    """The classes around a line, and the outermost function; nothing where there is no function."""
    found: list[ast.ClassDef | ast.FunctionDef] = []
    body: Sequence[ast.AST] = tree(module).body
    while True:
        node = next((n for n in body if isinstance(n, ast.ClassDef | Function) and spans(n, line)), None)
        if node is None:
            return []
        found.append(node)  # type: ignore[arg-type]
        if not isinstance(node, ast.ClassDef):
            return found
        body = node.body


def last_line(node: ast.AST) -> int:
    """The line on which an expression ends, closing brackets left aside."""
    inner = [child for child in ast.iter_child_nodes(node) if hasattr(child, "end_lineno")]
    if isinstance(node, ast.Attribute) or not inner:
        return node.end_lineno  # type: ignore[attr-defined]
    return max(last_line(child) for child in inner)


def spans(node: Any, line: int) -> bool:
    return node.lineno <= line <= node.end_lineno


@contextmanager
def rewritten(module: str, function: str, changes: Sequence[Change], **names: Any) -> Iterator[None]:
    """A function as its changed source gives it, until the end of the block; what it is given may use these names."""
    target = _function(module, function)
    code, missing = target.__code__, {name: value for name, value in names.items() if name not in target.__globals__}
    target.__globals__.update(missing)
    target.__code__ = _compiled(module, function, changes)
    try:
        yield
    finally:
        target.__code__ = code
        for name in missing:
            del target.__globals__[name]


def _function(module: str, name: str) -> FunctionType:
    found: Any = import_module(module)
    for part in name.split("."):
        found = vars(found)[part]
    found = getattr(found, "fget", None) or getattr(found, "__func__", found)
    found = inspect.unwrap(found)
    assert isinstance(found, FunctionType), f"{module}.{name} is no function"
    return found


def _compiled(module: str, name: str, changes: Sequence[Change]) -> CodeType:
    """The code of a changed function, compiled within its classes, so that `super()` means what it says."""
    *classes, last = name.split(".")
    body: Sequence[ast.AST] = tree(module).body
    for part in classes:
        body = next(node for node in body if isinstance(node, ast.ClassDef) and node.name == part).body
    found = next(node for node in body if isinstance(node, Function) and node.name == last)
    changed: Any = copy.deepcopy(found)
    for change in changes:
        change(changed)
    changed.decorator_list = []
    for part in reversed(classes):
        changed = ast.ClassDef(part, [], [], [changed], [])
    whole = ast.fix_missing_locations(ast.Module([changed], []))
    code = compile(whole, str(import_module(module).__file__), "exec")
    for part in (*classes, last):
        code = next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == part)
    return code
