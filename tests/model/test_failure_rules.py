"""The failures that `retryOn` and `giveUpOn` match."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.model.definitions.failure_rules import compile_rule, matches
from horae.model.fleet.protocol import Failure

TIMEOUT = Failure(
    type="ConnectTimeout",
    message="deadlock detected\nwhile waiting",
    names=("requests.exceptions.ConnectTimeout", "requests.exceptions.ConnectionError", "OSError", "Exception"),
    status=503,
)


@pytest.mark.parametrize(
    "rule",
    [
        *("ConnectTimeout", "requests.exceptions.ConnectTimeout", "ConnectionError", "requests.*", "OSError", "*"),
        *("exit:75", "exit:64-78", "http:503", "http:5xx", "http:5XX", "http:500-504", "message:dead*"),
    ],
)
def test_a_rule_matches_the_failures_that_it_names(rule):
    assert compile_rule(rule)(TIMEOUT, 75)


@pytest.mark.parametrize(
    "rule",
    [
        *("Connect", "exceptions.ConnectTimeout", "connectionerror", "ValueError", "exit:7", "exit:76-80"),
        *("http:50", "http:4xx", "http:504-599", "message:deadlock", "message:*DEADLOCK*", "message:[a-z]*"),
    ],
)
def test_a_rule_matches_no_other_failure(rule):
    assert not compile_rule(rule)(TIMEOUT, 75)


@pytest.mark.parametrize("rule", ["message:[Errno 13]*", "message:*]: ?en*"])
def test_brackets_in_a_rule_stand_for_themselves(rule):
    assert compile_rule(rule)(Failure(type="OSError", message="[Errno 13]: denied"), None)


def test_a_rule_does_not_match_missing_data_of_a_failure():
    assert not matches(("exit:0-255", "http:1xx", "http:0-999"), Failure(type="X"), None)


@pytest.mark.parametrize(
    "rule", ["", "exit:", "exit:x", "exit:9-1", "http:6xx", "http:-1", "message:", "status:500", "a b", "^a|b$", ":"]
)
def test_an_invalid_rule_is_refused(rule):
    with pytest.raises(ValueError):
        compile_rule(rule)


@given(st.integers(0, 255), st.integers(0, 255), st.integers(0, 255))
def test_a_range_matches_the_codes_in_it(lo, hi, code):
    if lo <= hi:
        assert compile_rule(f"exit:{lo}-{hi}")(TIMEOUT, code) == (lo <= code <= hi)


@given(st.text(max_size=60))
def test_any_text_is_a_rule_or_refused(rule):
    try:
        test = compile_rule(rule)
    except ValueError:
        return
    assert test(TIMEOUT, None) in (True, False)
