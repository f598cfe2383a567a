"""Generation of the SDK's methods that only send a request, from `ROUTES`, and of modules from field tables.

The modules contain keywords of the SDK and fields of the UI. `python -m tools.sdk` writes them; `--check` writes
nothing.

A class of the SDK ends with a comment that names the routes of the methods below it. A hand-written method of the same
name above the comment replaces the generated one. In the comment, `revoke: delete` gives a route's method another name,
and `create: none` omits it.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from horae.server.route import Route
from horae.server.routes.table import ROUTES
from tools.sdk import alert_fields, feature_options, options, queue_fields, trigger_options, ui_fields
from tools.sdk.methods import NAMES, method

SRC = Path(__file__).parents[2] / "src" / "horae"
OPTIONS = SRC / "client" / "options.py"
STEP_OPTIONS = SRC / "client" / "workflows" / "options.py"
TRIGGER_OPTIONS = SRC / "client" / "kernel" / "trigger_options.py"
UI_FIELDS = SRC / "ui" / "core" / "job-fields.js"
UI_ALERTS = SRC / "ui" / "core" / "alert-fields.js"
UI_QUEUES = SRC / "ui" / "core" / "queue-fields.js"
UI_TIMES = SRC / "ui" / "core" / "trigger-fields.js"
MARK = re.compile(
    r"    # `python -m tools\.sdk` writes the methods below, from the routes of "
    r"(?P<routes>[^\n]+(?:\n    # [^\n]+)*)\.\n"
)
CLAUSE = re.compile(r"([a-z-]+)(?: \(([^)]*)\))?")
# Routes for browsers, workers and other programs, and routes that methods of `Client` use.
OUTSIDE = {
    "apply", "backup", "callbacks", "erasures", "health", "holds", "me", "metrics", "openapi", "overview", "sessions",
    "store", "stream", "ui", "yaml",
}  # fmt: skip


class Part(NamedTuple):
    """The generated end of a class."""

    owner: str
    start: int  # offset in the text, after the comment
    end: int
    routes: tuple[tuple[Route, str], ...]  # with the names of their methods


def files() -> list[Path]:
    """Return the modules with generated methods."""
    found = chain((SRC / "client").rglob("*.py"), (SRC / "features").glob("*/client.py"))
    return sorted(path for path in found if MARK.search(path.read_text()))


def written(path: Path) -> str:
    """Return a module with its methods generated from the routes."""
    text = path.read_text()
    views = {node.name for node in ast.parse(text).body if isinstance(node, ast.ClassDef)} | _imported(text)
    for part in reversed(list(parts(text))):
        methods = "\n".join(method(route, name, views) for route, name in part.routes)
        text = f"{text[: part.start]}\n{methods}{text[part.end :]}"
    return _formatted(_with_imports(text), path)


def parts(text: str) -> Iterator[Part]:
    """Yield the generated ends of classes."""
    lines = text.splitlines(keepends=True)
    classes = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    for mark in MARK.finditer(text):
        line = text.count("\n", 0, mark.end())
        owner = [node for node in classes if node.lineno < line][-1]
        by_hand = {node.name for node in owner.body if isinstance(node, ast.AsyncFunctionDef) and node.lineno < line}
        end = len("".join(lines[: max(line, owner.end_lineno or 0)]))
        yield Part(owner.name, mark.end(), end, tuple(claimed(mark, by_hand)))


def claimed(mark: re.Match[str], by_hand: Iterable[str]) -> Iterator[tuple[Route, str]]:
    """Yield the routes that a comment names, with the names of their methods."""
    for tag, given in clauses(mark):
        names = dict(one.split(": ") for one in given.split(", ")) if given else {}
        own = {route.name.partition(".")[2]: route for route in ROUTES if route.tag == tag}
        if unknown := sorted(names.keys() - own.keys()) or ([] if own else [tag]):
            raise SystemExit(f"No route is called {unknown[0]}: look at the comment that names {tag}.")
        for verb, route in own.items():
            name = names.get(verb, verb.replace("-", "_"))
            if name != "none" and name not in by_hand:
                yield route, name


def clauses(mark: re.Match[str]) -> list[tuple[str, str]]:
    """Return the tags of routes in a comment, with the renames for each."""
    return CLAUSE.findall(mark["routes"].replace("\n    #", ""))


def unclaimed() -> set[str]:
    """Return the tags of routes that no class names and that are not in OUTSIDE."""
    marks = [mark for path in files() for mark in MARK.finditer(path.read_text())]
    return {route.tag for route in ROUTES} - {tag for mark in marks for tag, _ in clauses(mark)} - OUTSIDE


def _imported(text: str) -> set[str]:
    return {
        alias.asname or alias.name
        for node in ast.parse(text).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def _with_imports(text: str) -> str:
    """Add the imports that the generated methods need."""
    has = _imported(text)
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)} & NAMES.keys()
    lines = "".join(f"from {NAMES[name]} import {name}\n" for name in sorted(used - has))
    head = ast.parse(text).body[0].end_lineno or 0
    rows = text.splitlines(keepends=True)
    return "".join([*rows[:head], "\n", lines, *rows[head:]])


def _formatted(text: str, path: Path) -> str:
    for command in (["check", "--fix-only", "--select", "I,F401"], ["format"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--quiet", "--stdin-filename", str(path), "-"],
            input=text, capture_output=True, text=True, check=True,
        )  # fmt: skip
        text = done.stdout
    return text


def stale() -> Mapping[Path, str]:
    """Return the outdated modules with their new content."""
    found = {path: written(path) for path in files()}
    keywords = {OPTIONS: options.text(), STEP_OPTIONS: options.of_steps(), TRIGGER_OPTIONS: trigger_options.text()}
    keywords |= feature_options.files(SRC)
    found |= {path: _formatted(text, path) for path, text in keywords.items()}
    found |= {UI_FIELDS: ui_fields.text(), UI_TIMES: ui_fields.of_triggers(), UI_ALERTS: alert_fields.text()}
    found |= {UI_QUEUES: queue_fields.text()}
    return {path: text for path, text in found.items() if not path.exists() or text != path.read_text()}


def main(arguments: list[str]) -> Any:
    found = stale()
    if "--check" in arguments and found:
        return f"{', '.join(map(str, found))}: run python -m tools.sdk"
    for path, text in found.items():
        path.write_text(text)
    missing = ", ".join(sorted(unclaimed()))
    return f"No class of the SDK names the routes of {missing}." if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
