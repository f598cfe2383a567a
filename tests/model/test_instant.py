import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.base.instant import EARLIEST, END_OF_RANGE, format_instant, parse_instant

MORNING = 1_794_729_600 * SECOND  # 2026-11-15T08:00:00Z


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-11-15T08:00:00Z", MORNING),
        ("2026-11-15t08:00:00z", MORNING),
        ("2026-11-15 08:00:00Z", MORNING),
        ("2026-11-15T09:00:00+01:00", MORNING),
        ("2026-11-15T02:15:00-05:45", MORNING),
        ("2026-11-15T08:00:00-00:00", MORNING),
        ("2026-11-15T08:00:00.5Z", MORNING + 500_000),
        ("2026-11-15T08:00:00.000001Z", MORNING + 1),
        ("2026-11-15T08:00:00.123000000Z", MORNING + 123_000),
        ("1970-01-01T00:00:00Z", EARLIEST),
        ("2200-12-31T23:59:59.999999Z", END_OF_RANGE - 1),
    ],
)
def test_rfc_3339_is_read(text, instant):
    assert parse_instant(text) == instant


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2026-11-15T08:00:00", "does not say its offset"),
        ("2026-11-15", "not an RFC 3339 time"),
        ("2026-11-15T08:00Z", "not an RFC 3339 time"),
        ("2026-02-30T08:00:00Z", "not a time that exists"),
        ("2026-11-15T24:00:00Z", "not a time that exists"),
        ("2026-12-31T23:59:60Z", "leap seconds"),
        ("0000-01-01T00:00:00Z", "not a time that exists"),
        ("2026-11-15T08:00:00+24:00", "offset over 23:59"),
        ("2026-11-15T08:00:00.1234567Z", "finer than a microsecond"),
        ("1969-12-31T23:59:59Z", "outside the years"),
        ("2201-01-01T00:00:00Z", "outside the years"),
        ("٢٠٢٦-11-15T08:00:00Z", "not an RFC 3339 time"),
        ("x" * 10_000, "not an RFC 3339 time"),
        ("", "not an RFC 3339 time"),
        (1_794_729_600, "not an RFC 3339 time"),
        (None, "not an RFC 3339 time"),
    ],
)
def test_an_invalid_instant_is_refused_with_reason_and_remedy(text, reason):
    with pytest.raises(BadInput) as refused:
        parse_instant(text, field="startAt")

    assert reason in refused.value.detail
    assert refused.value.remedy
    assert refused.value.fields == {"field": "startAt"}


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (MORNING, "2026-11-15T08:00:00Z"),
        (MORNING + 120_000, "2026-11-15T08:00:00.120Z"),
        (MORNING + 120_001, "2026-11-15T08:00:00.120001Z"),
        (0, "1970-01-01T00:00:00Z"),
    ],
)
def test_decimals_are_written_only_when_there_are_any(instant, text):
    assert format_instant(instant) == text


@given(st.integers(EARLIEST, END_OF_RANGE - 1))
def test_the_written_form_reads_back(instant):
    assert parse_instant(format_instant(instant)) == instant
