"""Only the doors listed in docs/decisions/0019-doors.md insert rows into `running` and `history`."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.docs.pages import ROOT, first_cells
from tests.marks import sources
from tests.statements import by_module

PAGE = (ROOT / "docs/decisions/0019-doors.md").read_text()
WRITERS = {"running": {"put_running", "start_running"}, "history": {"put_finished"}}
INSERTS = {"horae.store.base.shelves"}  # the only module that names their columns
# Updates of existing rows: marks of limits and circuits, and erased results.
CHANGES = {
    "running": {"mark_running_of_namespace", "mark_running_of_queue", "flag_running"},
    "history": {"erase_results"},
}


def calls(source: str, names: set[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in names:
                yield called


def listed(shelf: str) -> set[str]:
    """Return the modules that the record lists as doors into a shelf."""
    table = re.split(r"\*\*Into|^## ", PAGE.partition(f"**Into `{shelf}`.**")[2], flags=re.MULTILINE)[0]
    paths = [cell for cell in first_cells(table) if cell.endswith(".py")]
    return {"horae." + path.removesuffix(".py").replace("/", ".") for path in paths}


@pytest.mark.parametrize("shelf", WRITERS)
def test_only_the_listed_doors_write_rows(shelf: str):
    doors = {module for module, text in sources().items() if any(calls(text, WRITERS[shelf]))}
    assert doors == listed(shelf)


@pytest.mark.parametrize("shelf", WRITERS)
def test_no_statement_writes_rows_beside_the_doors(shelf: str):
    inserting = {module for module, text in sources().items() if f'Insert("{shelf}"' in text}
    assert inserting == INSERTS
    writes = re.compile(rf"\b(?:INSERT INTO|UPDATE) {shelf}\b")
    texts = [one for statements in by_module().values() for one in statements if writes.search(one.text)]
    assert {one.name for one in texts} == CHANGES[shelf]


def test_a_door_that_is_not_listed_is_noticed():
    assert list(calls("def f():\n    yield shelves.put_finished([])", WRITERS["history"])) == ["put_finished"]
