from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.errors import BadInput
from horae.model.base.duration import DAY, HOUR, LONGEST, MINUTE, SECOND, format_duration, parse_duration


@pytest.mark.parametrize(
    ("written", "micros"),
    [
        ("5m", 5 * MINUTE),
        ("1h30m", 90 * MINUTE),
        ("1h 30m", 90 * MINUTE),
        ("90s", 90 * SECOND),
        ("1.5s", 1_500_000),
        ("250ms", 250_000),
        ("7us", 7),
        ("2d", 2 * DAY),
        ("1w", 7 * DAY),
        ("PT5M", 5 * MINUTE),
        ("P1DT2H", DAY + 2 * HOUR),
        ("P2W", 14 * DAY),
        ("PT0.5S", 500_000),
        ("3600", HOUR),
        ("0.25", 250_000),
        (3600, HOUR),
        (0.1, 100_000),
        (0, 0),
        (" 5m ", 5 * MINUTE),
    ],
)
def test_valid_durations_are_read(written, micros):
    assert parse_duration(written) == micros


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("-5m", "negative"),
        (-1, "negative"),
        (float("nan"), "finite"),
        (float("inf"), "finite"),
        (1e300, "100 years"),
        (10**400, "100 years"),
        pytest.param(10**5000, "100 years", id="5,000 digits"),
        ("40000d", "100 years"),
        ("P1Y", "years or months"),
        ("P3M", "years or months"),
        ("P", "not a length"),
        ("P1DT", "not a length"),
        ("5M", "not a length"),
        ("30m1h", "not a length"),
        ("5 minutes", "not a length"),
        ("1e3", "not a length"),
        ("٣s", "not a length"),
        ("1" * 100, "too long"),
        (True, "true is not a length"),
        (None, "null is not a length"),
        ([5], "not a length"),
    ],
)
def test_an_invalid_duration_is_refused_with_reason_and_remedy(written, reason):
    with pytest.raises(BadInput) as refused:
        parse_duration(written, field="timeout")

    assert reason in refused.value.detail
    assert refused.value.remedy
    assert refused.value.fields == {"field": "timeout"}


@pytest.mark.parametrize(
    ("micros", "short"),
    [
        (0, "0s"),
        (90 * MINUTE, "1h30m"),
        (7 * DAY, "7d"),
        (1_500_000, "1.5s"),
        (250_000, "250ms"),
        (1, "0.001ms"),
        (HOUR + 1, "1h0.000001s"),
    ],
)
def test_the_short_form_is_canonical(micros, short):
    assert format_duration(micros) == short


@given(st.integers(0, LONGEST) | st.integers(0, 5_000_000))
def test_the_written_form_reads_back(micros):
    assert parse_duration(format_duration(micros)) == micros


@given(st.text(max_size=70) | st.text("0123456789.PTWDHMSwdhmsu ", max_size=20))
def test_any_text_is_read_or_refused(text):
    with suppress(BadInput):
        assert 0 <= parse_duration(text) <= LONGEST
