"""The differences between two definitions."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from horae.model.definitions.reading.diff import differences


def told(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    return [(d["path"], d.get("before"), d.get("after")) for d in to_builtins(differences(before, after))]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"retries": 1}, {"retries": 2}, [("retries", 1, 2)]),
        ({"retries": 1, "timeout": None}, {"retries": 1}, []),
        ({"command": ["a"]}, {"python": "b"}, [("command", ["a"], None), ("python", None, "b")]),
        ({"env": {"A": "1", "B": "2"}}, {"env": {"A": "1", "B": "3"}}, [("env.B", "2", "3")]),
        ({"params": {"n": 1}}, {"params": {"n": True}}, [("params.n", 1, True)]),
        ({"command": ["a", "b"]}, {"command": ["a", "c"]}, [("command", ["a", "b"], ["a", "c"])]),
        (
            {"triggers": [{"name": "x", "cron": "0 1 * * *"}, {"name": "y", "every": "5m"}]},
            {"triggers": [{"name": "y", "every": "5m"}, {"name": "x", "cron": "0 2 * * *"}]},
            [("triggers.x.cron", "0 1 * * *", "0 2 * * *")],
        ),
        (
            {"triggers": [{"name": "x"}, {"name": "y"}]},
            {"triggers": [{"name": "y"}, {"name": "x"}]},
            [("triggers", [{"name": "x"}, {"name": "y"}], [{"name": "y"}, {"name": "x"}])],
        ),
        ({"triggers": []}, {"triggers": [{"name": "x"}]}, [("triggers.x", None, {"name": "x"})]),
    ],
)
def test_each_changed_field_is_listed_once(before: dict, after: dict, expected: list):
    assert told(before, after) == expected


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["a", "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "p", "q"]), inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(st.sampled_from(["name", "p", "q"]), VALUES, max_size=3)


@given(DOCUMENTS)
def test_a_definition_does_not_differ_from_itself(document: dict[str, Any]):
    assert differences(document, document) == []


@given(DOCUMENTS, DOCUMENTS)
def test_the_reverse_diff_swaps_before_and_after(before: dict[str, Any], after: dict[str, Any]):
    there = sorted(told(before, after), key=repr)
    assert there == sorted(((path, old, new) for path, new, old in told(after, before)), key=repr)
