"""No attribute of a composed part is assigned from outside: a constructor or a method of the part sets it."""

import ast
from pathlib import Path

import pytest

import horae
from tests.house.composition import outside_assignments, parts_of

PACKAGE = Path(horae.__file__).parent
EXCEPTIONS = {
    "ChunkRun",  # the record of a running chunk, which its runner fills in; it refers to the worker
}
FORGED = """
class Quotas:
    def __init__(self, store: "Store | None") -> None:
        self._store = store
        self.bounds = 0


class Tally:
    def __init__(self, count: int) -> None:
        self.count = count


class Monitor:
    def __init__(self, quotas: Quotas) -> None:
        self._quotas, self._tally = quotas, Tally(0)

    def step(self, quotas: Quotas) -> None:
        BODY
"""


def found_in(trees: list[ast.Module]) -> list[tuple[ast.Module, int, str]]:
    parts = parts_of(trees)
    return [(tree, line, use) for tree in trees for line, use in outside_assignments(tree, parts)]


def test_no_attribute_of_a_part_is_assigned_from_outside():
    places = {ast.parse(path.read_text()): path.relative_to(PACKAGE) for path in sorted(PACKAGE.rglob("*.py"))}
    found = [(f"{places[tree]}, line {line}", use) for tree, line, use in found_in([*places])]
    wrong = [f"{place}: {use}" for place, use in found if use.partition(".")[0] not in EXCEPTIONS]
    assert wrong == [], "Pass the value to the constructor, or give the part a method that sets it."
    assert {use.partition(".")[0] for _, use in found} == EXCEPTIONS, "Remove the exceptions that are not needed."


@pytest.mark.parametrize(
    "body",
    [
        "self._quotas.bounds = 1",
        "self._quotas.bounds += 1",
        "quotas.bounds = 1",
        "quotas = self._quotas; quotas.bounds = 1",
        "made = Quotas(None); made.bounds = 1",
        "a, quotas.bounds = 1, 2",
    ],
)
def test_the_check_finds_an_assignment_from_outside(body: str):
    assert [use for _, _, use in found_in([ast.parse(FORGED.replace("BODY", body))])] == ["Quotas.bounds"]


@pytest.mark.parametrize("body", ["self._quotas = quotas", "self._tally.count += 1", "quotas.set_bounds(1)"])
def test_the_check_accepts_own_attributes_working_records_and_methods(body: str):
    assert found_in([ast.parse(FORGED.replace("BODY", body))]) == []
