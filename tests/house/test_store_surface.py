"""Other code uses the store by one surface: a Store with its operations, and scripts that it runs."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import bench
import horae

ROOT = Path(horae.__file__).parents[1]
PACKAGE = ROOT / "horae"
SERVER = {"routes", "hook_routes", "sign_in_routes", "metrics"}  # modules of features that belong to the server
Names = dict[str, str]


@cache
def trees() -> dict[tuple[str, ...], ast.Module]:
    """Return the source of the package and of the benches, by the parts of the modules' names."""
    found = {}
    for root, top in ((ROOT, PACKAGE), (Path(bench.__file__).parents[1], Path(bench.__file__).parent)):
        for path in sorted(top.rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[parts[:-1] if parts[-1] == "__init__" else parts] = ast.parse(path.read_text())
    return found


def is_store(parts: tuple[str, ...]) -> bool:
    return parts[:2] == ("horae", "store") or (parts[1:2] == ("features",) and parts[3:4] == ("store",))


def is_server(parts: tuple[str, ...]) -> bool:
    return parts[:2] == ("horae", "server") or (parts[1:2] == ("features",) and not SERVER.isdisjoint(parts[3:4]))


def attributes(tree: ast.AST, name: str) -> Iterator[str]:
    """Yield each use of an attribute of this name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in (name, f"_{name}"):
            yield f"line {node.lineno}: {ast.unparse(node)}"


def scripts_used(tree: ast.AST) -> Iterator[str]:
    """Yield the full names of what a module takes from the store: "module.name"."""
    taken: Names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and "store" in node.module.split("."):
            taken |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    yield from taken.values()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in taken:
            yield f"{taken[node.value.id]}.{node.attr}"


def test_only_the_store_uses_the_driver_of_a_store():
    outside = [(parts, tree) for parts, tree in trees().items() if not is_store(parts)]
    wrong = [f"{'.'.join(parts)}, {use}" for parts, tree in outside for use in attributes(tree, "driver")]
    assert wrong == [], "Run scripts by the Store; the rest is in Store.database."


@pytest.mark.parametrize("name", ["store", "database"])
def test_the_server_reaches_no_store(name: str):
    wrong = [
        f"{'.'.join(parts)}, {use}"
        for parts, tree in trees().items()
        if is_server(parts)
        for use in attributes(tree, name)
    ]
    assert wrong == [], "Ask a part of the engine."


def test_every_script_that_other_code_runs_has_a_docstring_with_its_promise():
    scripts = {
        ".".join((*parts, node.name)): ast.get_docstring(node)
        for parts, tree in trees().items()
        if is_store(parts)
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.returns and "Script[" in ast.unparse(node.returns)
    }
    used = {name for parts, tree in trees().items() if not is_store(parts) for name in scripts_used(tree)} & {*scripts}

    assert len(used) > 300
    assert sorted(name for name in used if not scripts[name]) == []


def test_the_check_finds_a_driver_behind_a_chain():
    tree = ast.parse("async def copy(node):\n    await node.base.store.driver.write(script)\n    self._driver.close()")
    assert [*attributes(tree, "driver")] == ["line 3: self._driver", "line 2: node.base.store.driver"]
