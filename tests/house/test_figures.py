"""The size of rooms, files and functions, and the import of every module alone. Prints the figures after a run."""

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.house.figures import SOURCE, figures, longest_chain, shown
from tests.house.importing import Graph, imports_of

MOST_SIBLINGS, MOST_LINES = 20, 400
MOST_OF_FUNCTIONS = (6, 16, 50)  # lines: median, 90th percentile, longest


def beyond(counts: Mapping[str, int], most: int) -> list[str]:
    return [f"{name}: {count}" for name, count in counts.items() if count > most]


def circle(graph: Graph) -> list[str]:
    """Return modules that need each other, the first again at the end; empty where each can be imported alone."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def write(folder: Path, **modules: str) -> None:
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)


def test_no_folder_has_too_many_modules():
    assert beyond(figures().siblings, MOST_SIBLINGS) == []


def test_no_file_is_too_long():
    assert beyond(figures().lines, MOST_LINES) == []


def test_functions_are_short():
    middle, ninth, _ = figures().sizes()
    assert (middle, ninth) <= MOST_OF_FUNCTIONS[:2]
    assert beyond(figures().functions, MOST_OF_FUNCTIONS[2]) == []


def test_every_module_imports_alone(record_property):
    graph = imports_of(SOURCE, "horae")

    assert circle(graph) == []

    assert len(graph) == len(figures().lines), "a module cannot be imported at all"
    record_property("figures", shown(figures(), longest_chain(graph)))


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "made_up"
    folder.mkdir()
    write(folder, __init__="", plain="", user="from made_up import plain\n")
    return folder


def test_a_package_without_a_cycle_has_none(package):
    graph = imports_of(package.parent, "made_up")

    assert circle(graph) == []
    assert longest_chain(graph) == ("made_up.user", "made_up.plain")


def test_a_cycle_that_only_some_imports_enter_is_found(package):
    write(package, a="from made_up import b\nNAME = 1\n", b="from made_up.a import NAME\n")  # b goes, a alone does not

    assert circle(imports_of(package.parent, "made_up")) == ["made_up.a", "made_up.b", "made_up.a"]


def test_a_cycle_by_an_import_in_a_function_is_found(package):
    late = "def made():\n    from made_up import a\n    return a\n"
    write(package, a="from made_up.b import made\nNAME = made()\n", b=late)

    assert circle(imports_of(package.parent, "made_up")) == ["made_up.a", "made_up.a"]


def test_a_cycle_by_reexported_names_is_found(package):
    (package / "room").mkdir()
    write(package / "room", __init__="from made_up.room import inner\nNAME = 1\n", inner="from made_up import outer\n")
    write(package, outer="from made_up.room import NAME\n")

    assert circle(imports_of(package.parent, "made_up")) != []


def test_a_package_may_reexport_names_of_its_modules(package):
    write(package, __init__="from made_up.user import plain\n")

    assert circle(imports_of(package.parent, "made_up")) == []


def test_functions_and_rooms_are_counted(tmp_path):
    (tmp_path / "features/alerts").mkdir(parents=True)
    write(tmp_path, one="def f():\n    return 1\n\n\nclass _C:\n    async def g(self): ...\n")
    write(tmp_path / "features/alerts", two="X = 1\n")

    found = figures(tmp_path)

    assert found.functions == {"one.py:1 f": 2, "one.py:6 g": 1}
    assert found.rooms() == {"one.py": 6, "features/alerts": 1}
    assert found.public == 1
