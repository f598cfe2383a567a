"""Every SQL statement that a module keeps, wherever the module is."""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

from horae.store.script import Statement
from tests.marks import sources


@cache
def by_module() -> dict[str, list[Statement]]:
    """The statements of each module that makes some, and those that it has from others."""
    modules = [module for module, text in sources().items() if "Statement(" in text]
    return {module: list(within(vars(import_module(module)))) for module in modules}


def within(value: Any, deep: int = 3) -> Iterator[Statement]:
    if isinstance(value, Statement):
        yield value
    elif deep and isinstance(value, dict | list | tuple):
        for inner in list(value.values()) if isinstance(value, dict) else value:
            yield from within(inner, deep - 1)


@cache
def by_name() -> dict[str, list[Statement]]:
    """All statements by their names."""
    found: dict[str, dict[int, Statement]] = {}
    for statements in by_module().values():
        for statement in statements:
            found.setdefault(statement.name, {})[id(statement)] = statement
    return {name: list(same.values()) for name, same in found.items()}


def the_statement(name: str) -> Statement:
    """The only statement of a name."""
    found = by_name().get(name, [])
    assert len(found) == 1, f"{len(found)} statements are called {name}; there must be one"
    return found[0]
