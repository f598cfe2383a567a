"""The order in which definitions are applied."""

from typing import Any

import pytest

from horae.errors import BadInput
from horae.model.definitions.reading.order import order_of_calendars, order_of_jobs

BROKEN: list[Any] = [None, 5, "x", [], {}, [None], [[]], {"job": 5}, {"steps": 5}]


def test_dependencies_are_applied_first_whatever_the_condition():
    documents = [
        {"name": "alarm", "dependencies": [{"job": "report", "condition": "failure"}]},
        {"name": "report", "dependencies": ["extract", 5, "elsewhere"]},
        {"name": "extract"},
    ]
    assert order_of_jobs(documents) == [2, 1, 0]


def test_jobs_of_nested_steps_are_applied_first():
    undone = {"steps": [{"job": "load", "undo": "unload"}, {"command": "x", "undo": {"job": "undone"}}]}
    documents = [
        {"name": "flow", "workflow": {"steps": [{"workflow": undone}], "onFailure": {"job": "tell"}}},
        {"name": "undone", "workflow": [{"job": "load"}]},
        {"name": "unload"},
        {"name": "tell"},
        {"name": "load"},
    ]
    order = order_of_jobs(documents)
    assert order[-1] == 0
    assert order.index(4) < order.index(1)


def test_referenced_calendars_are_applied_first():
    assert order_of_calendars([{"name": "work", "any": ["holidays"]}, {"name": "holidays"}]) == [1, 0]


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_an_invalid_definition_keeps_its_position(broken: Any):
    documents = [{"name": broken, "dependencies": broken, "workflow": broken}, {"name": "a"}]
    assert sorted(order_of_jobs(documents)) == [0, 1]
    assert sorted(order_of_calendars([{"name": broken, "any": broken, "calendar": broken}])) == [0]


def test_a_definition_that_needs_itself_is_not_refused_here():
    assert order_of_jobs([{"name": "a", "dependencies": ["a"]}]) == [0]


@pytest.mark.parametrize(
    ("documents", "said", "field"),
    [
        ([{"name": "a"}, {"name": "a"}], "'a' is defined twice", "jobs[1].name"),
        ([{"name": "a", "dependencies": ["b"]}, {"name": "b", "dependencies": ["a"]}], "in a circle: ", "jobs"),
    ],
)
def test_duplicate_names_and_cycles_are_refused(documents: list[dict[str, Any]], said: str, field: str):
    with pytest.raises(BadInput, match=said) as refused:
        order_of_jobs(documents)
    assert refused.value.fields["field"] == field
    assert refused.value.remedy.endswith("Nothing was applied.")
