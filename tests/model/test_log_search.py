"""Searches in log lines, and the patterns that are refused."""

import pytest

from horae.errors import BadInput
from horae.model.expressions.patterns import MOST, search_for


@pytest.mark.parametrize(
    ("grep", "line", "found"),
    [
        ("timeout*MS", "a Timeout of 5 ms", True),
        ("ms*timeout", "a timeout of 5 ms", False),
        ("*", "anything", None),
        ("a" * (MOST + 1), "", None),
        ("re:time(out|r) \\d+ ?ms", "a timeout 5 ms", True),
        ("re:timeout", "a TIMEOUT", False),
        ("re:(?i)timeout", "a TIMEOUT", True),
        ("re:^a.*z$", "a to z", True),
        ("re:\\bcaf\u00e9\\b", "un caf\u00e9 noir", True),
        ("re:a\\x1b\\[31m", "a\x1b[31mred", True),
        ("re:", "", None),
        ("re:" + "a" * (MOST + 1), "", None),
        ("re:[", "", None),
        ("re:(a)\\1", "aa", None),
        ("re:a(?!b)", "ac", None),
        ("re:(?:a{999}){999}", "", None),
    ],
)
def test_a_text_or_a_pattern_is_found_or_refused(grep, line, found):
    if found is None:
        with pytest.raises(BadInput):
            search_for(grep)
    else:
        assert search_for(grep)(line) is found


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|a)*b", "(.*a){20}b", "(?:a?){100}a{100}b"])
def test_no_pattern_takes_forever(pattern):
    matches = search_for(f"re:{pattern}")
    assert not any(matches("a" * 16_000) for _ in range(5))  # with a backtracking engine, this never returns
