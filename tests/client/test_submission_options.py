"""Options of submissions: calls accept and send the fields of the table."""

from datetime import UTC, datetime, timedelta
from inspect import Parameter, signature
from typing import get_overloads

import pytest

from horae.client.submission_options import OF_CALLS, OF_MANY, OF_ONE, described
from horae.client.submitting import SubmitMethod

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def test_python_values_are_converted():
    said = {
        "delay": timedelta(minutes=5), "at": NOON, "key": "a", "key_for": "1d", "priority": 9, "within": 90,
        "tags": {"team": "data"}, "interval": (NOON, "2026-11-16T00:00:00Z"), "propagate": False,
        "wait_for_dependencies": True, "deadline": None,
    }  # fmt: skip
    assert described(said, OF_ONE, "submit(...)") == {
        "delay": "5m", "at": "2026-11-15T12:00:00+00:00", "key": "a", "keyFor": "1d", "priority": 9, "within": "1m30s",
        "tags": {"team": "data"}, "propagate": False, "waitForDependencies": True,
        "interval": {"start": "2026-11-15T12:00:00+00:00", "end": "2026-11-16T00:00:00Z"},
    }  # fmt: skip


@pytest.mark.parametrize("interval", [NOON, (NOON,), {"start": NOON, "end": NOON}, "2026-11-15"])
def test_an_interval_is_a_pair(interval):
    with pytest.raises(TypeError, match=r"the option 'interval' of submit\(\.\.\.\) takes a pair of instants"):
        described({"interval": interval}, OF_ONE, "submit(...)")


def test_defaults_are_not_sent():
    assert described({"propagate": True, "wait_for_dependencies": False, "tags": {}}, OF_ONE, "submit(...)") == {}


def test_an_unknown_option_is_a_type_error_with_the_nearest_one():
    with pytest.raises(TypeError, match=r"submit_many.* has no option 'dealy': did you mean 'delay'"):
        described({"dealy": "5m"}, OF_MANY, "submit_many(...)")
    with pytest.raises(TypeError, match="has no option 'key'"):
        described({"key": "a"}, OF_MANY, "submit_many(...)")


def test_type_checkers_know_each_option_of_submit():
    parameters = [one for call in get_overloads(SubmitMethod.submit) for one in signature(call).parameters.values()]
    alone = {one.name for one in parameters if one.kind is Parameter.KEYWORD_ONLY}
    assert alone == {*OF_CALLS} - {"key_for"}  # it has no effect without a key
