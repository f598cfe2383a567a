"""The removal of a guard, and the scene or test that notices it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from msgspec import Struct
from msgspec.structs import force_setattr

from tests.marks import Change, rewritten
from tests.races.mutating.code import UNLOCKED, CodeEdit, without_row_locks
from tests.races.mutating.sql import TextEdit
from tests.statements import the_statement

Edit = CodeEdit | TextEdit


class Mutation(Struct, frozen=True, kw_only=True):
    """The removal of a guard, and the scene or test that notices it; without one, the reason to keep the guard."""

    name: str
    edits: tuple[Edit, ...]
    caught_by: str = ""
    kept_because: str = ""


def gone(name: str, *edits: Edit, by: str = "", because: str = "") -> Mutation:
    return Mutation(name=name, edits=edits, caught_by=by, kept_because=because)


@contextmanager
def applied(mutation: Mutation) -> Iterator[None]:
    """Run the block with the code without the guard."""
    functions: dict[tuple[str, str], list[Change]] = {}
    with ExitStack() as stack:
        for edit in mutation.edits:
            if isinstance(edit, TextEdit):
                stack.enter_context(_reworded(edit.statement, edit.change))
            else:
                mark = edit.mark
                functions.setdefault((mark.module, mark.function), []).append(partial(_at, edit, mark.line))
        for (module, function), changes in functions.items():
            stack.enter_context(rewritten(module, function, changes, **{UNLOCKED: without_row_locks}))
        yield


def _at(edit: CodeEdit, line: int, function: object) -> None:
    edit.change(function, line)  # type: ignore[arg-type]


@contextmanager
def _reworded(name: str, change: Callable[[str], str]) -> Iterator[None]:
    statement = the_statement(name)
    before = statement.text
    force_setattr(statement, "text", change(before))
    try:
        yield
    finally:
        force_setattr(statement, "text", before)
