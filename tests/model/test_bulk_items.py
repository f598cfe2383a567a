"""Items of a bulk that are whole submissions, where params are expected."""

import pytest

from horae.model.executions import bulk_items
from horae.model.executions.bulk_items import is_submission


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"params": {}}, True),
        ({"job": "report"}, True),
        ({"params": {}, "tags": {}, "key": "a"}, True),
        ({"params": {}, "priorty": 1, "tag": {}}, True),
        ({"params": {}, "customer": 7}, False),
        ({"params": [1]}, False),
        ({"job": "another"}, False),
        ({"customer": 7}, False),
    ],
)
def test_an_item_with_only_fields_of_a_submission_is_one(item, expected):
    assert is_submission(item, "report") is expected


def test_a_param_of_the_job_makes_no_submission():
    assert not is_submission({"params": {}}, "report", {"params"})
    assert not is_submission({"job": "report"}, "report", {"job"})


def test_many_names_are_not_compared_with_fields(monkeypatch):
    monkeypatch.setattr(bulk_items, "get_close_matches", lambda *given: pytest.fail("compares names"))

    assert not is_submission({"params": {}, **{f"priorit{i}": 1 for i in range(100)}}, "report")
