"""The display of values: a user's JSON is shown as JSON."""

import re

import pytest

from horae.cli.output import as_data, brief
from horae.client.views import ApiDocument, ExecutionInfo
from tests.cli.fake_api import FakeApi, run

RESULTS = [
    (False, "false"),
    (True, "true"),
    (0, "0"),
    (1.23456789, "1.23456789"),
    (12345678.5, "12345678.5"),
    ("no", "no"),
    ("false", '"false"'),
    ("12", '"12"'),
    ("", '""'),
    ([], "[]"),
    ({}, "{}"),
    ({"ok": False, "of": [None, True]}, "ok: false\nof:\n- null\n- true"),
]


@pytest.mark.parametrize(("result", "shown"), RESULTS)
def test_a_result_is_shown_as_the_json_that_it_is(result, shown):
    api = FakeApi(
        {"GET /executions/1": {"executionId": "1", "status": "success", "sensitive": False, "result": result}}
    )
    told = run(api, "executions", "show", "1")
    assert as_data(result) == shown
    lines = [line.strip() for line in told.output.split("result", 1)[1].splitlines()]
    assert lines[: shown.count("\n") + 1] == shown.splitlines()
    assert re.search(r"sensitive +no", told.output), "a field of Horae's own reads as before"


def test_an_execution_without_a_result_shows_none():
    api = FakeApi({"GET /executions/1": {"executionId": "1", "status": "success", "result": None, "params": {}}})
    told = run(api, "executions", "show", "1").output
    assert "result" not in told
    assert "params" not in told


def test_values_within_values_are_json_too():
    assert brief({"a": False, "b": None, "c": "x", "d": 1.5}) == "a=false,b=null,c=x,d=1.5"
    assert brief([True, "x", {"n": None}]) == 'true,x,{"n":null}'


def test_the_repr_of_an_answer_shows_its_fields():
    assert "'columns': [1]" in repr(ApiDocument.of({"columns": [1], "steps": []}))
    assert "result=False" in repr(ExecutionInfo(execution_id="1", result=False))
    assert "result=0" in repr(ExecutionInfo(execution_id="1", result=0))
    assert "attempt=0" in repr(ExecutionInfo(execution_id="1", attempt=0))
    assert "result" not in repr(ExecutionInfo(execution_id="1"))
