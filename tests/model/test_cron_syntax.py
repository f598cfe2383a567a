"""Syntax and calendar of the unix dialect: the C vectors of the time rules, in UTC without clock changes."""

from contextlib import suppress
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.errors import BadInput
from horae.model.base.instant import format_instant, parse_instant
from horae.model.triggers.cron.fields import (
    DAY_OF_MONTH_FIELD,
    DAY_OF_WEEK_FIELD,
    HOUR_FIELD,
    MINUTE_FIELD,
    MONTH_FIELD,
    SECOND_FIELD,
    spread,
)
from horae.model.triggers.cron.fire import next_after
from horae.model.triggers.cron.lint import lint
from horae.model.triggers.cron.parse import needs_key, parse_cron

NEW_YEAR = "2026-01-01T00:00:00Z"


def fires(expression, start=NEW_YEAR, key=""):
    at = parse_instant(start)
    while (at := next_after(parse_cron(expression, job_key=key), "UTC", at)) is not None:
        yield format_instant(at).removesuffix("Z")


def days(expression, count, start=NEW_YEAR):
    """Return the dates of the first fires, without the year if it is the year of the start."""
    return [each[:10].removeprefix(start[:5]) for each in islice(fires(expression, start), count)]


def times(expression, count, start=NEW_YEAR):
    return [each[11:16] for each in islice(fires(expression, start), count)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("0 0 13 * 5", "01-02 01-09 01-13 01-16 01-23 01-30", id="C1 or"),
        pytest.param("0 0 */2 * 1", "01-05 01-19 02-09 02-23 03-09", id="C2 and"),
        pytest.param("0 0 13 * */5", "02-13 03-13 09-13 11-13", id="C2 and, star in day-of-week"),
        pytest.param("0 0 */32,1-7 * 2", "01-06 02-03 03-03 04-07", id="C3 first Tuesday"),
        pytest.param("0 0 1-31 * 1", "01-02 01-03 01-04 01-05 01-06 01-07", id="C4 1-31 is no star"),
        pytest.param("0 0 29 2 *", "2028-02-29 2032-02-29 2036-02-29", id="C5"),
        pytest.param("0 0 LW * *", "01-30 02-27 03-31 04-30 05-29", id="last weekday"),
        pytest.param("0 0 15W * *", "01-15 02-16 03-16 04-15 05-15 06-15 07-15 08-14", id="C12 nearest weekday"),
        pytest.param("0 0 1W * *", "02-02 03-02 04-01 05-01 06-01 07-01 08-03", id="nearest stays in its month"),
        pytest.param("0 0 31W * *", "01-30 03-31 05-29 07-31 08-31", id="short months have no 31W"),
        pytest.param("0 0 * * 5#3", "01-16 02-20 03-20 04-17", id="C14"),
        pytest.param("0 0 * * FRI#3", "01-16 02-20 03-20 04-17", id="C14 by name"),
        pytest.param("0 0 * * 5L", "01-30 02-27 03-27 04-24", id="C14 last"),
        pytest.param("0 0 * * 1#5", "03-30 06-29 08-31 11-30", id="fifth Mondays"),
        pytest.param("0 0 * * 7#1", "01-04 02-01 03-01", id="7 is Sunday"),
        pytest.param("0 0 * * 0", "01-04 01-11", id="C16 0"),
        pytest.param("0 0 * * 7", "01-04 01-11", id="C16 7"),
        pytest.param("0 0 * * 5-7", "01-02 01-03 01-04 01-09", id="C16 5-7"),
        pytest.param("0 0 * * SUN-TUE", "01-04 01-05 01-06 01-11", id="C16 names"),
        pytest.param("0 0 * * sat-sun", "01-03 01-04 01-10 01-11", id="a week ends on Sunday"),
        pytest.param("0 0 * * SUN-SUN", "01-04 01-11", id="one Sunday, not a week from Sunday to Sunday"),
        pytest.param("0 0 * * 1-7/2", "01-02 01-04 01-05 01-07 01-09 01-11", id="step to Sunday"),
        pytest.param("0 0 ? * MON", "01-05 01-12", id="? is *"),
        pytest.param("0 0 1 ? ?", "02-01 03-01", id="? anywhere"),
        pytest.param("0 0 1 7/6 *", "07-01 2027-07-01", id="C20 a step does not wrap"),
        pytest.param("0 0 1 JAN,jul *", "07-01 2027-01-01", id="month names"),
        pytest.param("0 0 1,L * *", "01-31 02-01 02-28 03-01", id="L in a list"),
        pytest.param("@yearly", "2027-01-01 2028-01-01", id="@yearly"),
        pytest.param("@annually", "2027-01-01 2028-01-01", id="@annually"),
        pytest.param("@monthly", "02-01 03-01", id="@monthly"),
        pytest.param("@weekly", "01-04 01-11", id="@weekly"),
        pytest.param("@daily", "01-02 01-03", id="@daily"),
        pytest.param("@Midnight", "01-02 01-03", id="@midnight"),
    ],
)
def test_an_expression_fires_on_these_days(expression, expected):
    assert days(expression, len(expected.split())) == expected.split()


@pytest.mark.parametrize(
    ("expression", "start", "expected"),
    [
        pytest.param("0 0 29 2 *", "2096-01-01T00:00:00Z", "02-29 2104-02-29", id="C5 2100 is no leap year"),
        pytest.param("0 0 31 * *", "2026-01-31T00:00:00Z", "03-31 05-31 07-31 08-31 10-31", id="C6"),
        pytest.param("0 0 L * *", "2026-01-31T00:00:00Z", "02-28 03-31 04-30", id="C9"),
        pytest.param("0 0 L 2 *", NEW_YEAR, "02-28 2027-02-28 2028-02-29", id="C9 February"),
        pytest.param("0 0 29 2 */7", "2092-03-01T00:00:00Z", "2128-02-29 2156-02-29", id="a leap day on a Sunday"),
    ],
)
def test_the_days_from_a_given_start(expression, start, expected):
    assert days(expression, len(expected.split()), start) == expected.split()


@pytest.mark.parametrize(
    ("expression", "start", "expected"),
    [
        pytest.param("*/7 * * * *", "2026-01-01T00:50:00Z", "00:56 01:00 01:07", id="C17 */7"),
        pytest.param("*/45 * * * *", "2026-01-01T00:00:00Z", "00:45 01:00 01:45", id="C17 */45"),
        pytest.param("5/15 * * * *", NEW_YEAR, "00:05 00:20 00:35 00:50 01:05", id="C17 5/15"),
        pytest.param("10-50/20 * * * *", NEW_YEAR, "00:10 00:30 00:50 01:10", id="C17 10-50/20"),
        pytest.param("*/90 * * * *", NEW_YEAR, "01:00 02:00", id="C18"),
        pytest.param("59 23 31 12 *", "2026-12-31T23:58:00Z", "23:59 23:59", id="C8"),
        pytest.param("0 0 1 1 *", "2026-12-31T23:59:00Z", "00:00", id="C8 new year"),
        pytest.param("@hourly", NEW_YEAR, "01:00 02:00", id="@hourly"),
        pytest.param("0,30 8-9 * * *", NEW_YEAR, "08:00 08:30 09:00 09:30 08:00", id="lists"),
    ],
)
def test_an_expression_fires_at_these_times(expression, start, expected):
    assert times(expression, len(expected.split()), start) == expected.split()


def test_six_fields_begin_with_seconds():
    assert [each[11:] for each in islice(fires("*/20 59 23 * * *"), 4)] == [
        "23:59:00",
        "23:59:20",
        "23:59:40",
        "23:59:00",
    ]


@pytest.mark.parametrize(
    ("expression", "reason", "remedy"),
    [
        ("60 * * * *", "60 is outside 0-59", "Write 0"),
        ("* 24 * * *", "24 is outside 0-23", "Write 0"),
        ("*/0 * * * *", "step of 0", "*/15"),
        ("15/0 * * * *", "step of 0", "*/15"),
        ("*/x * * * *", "whole number", "*/15"),
        ("0 0 32 * *", "32 is outside 1-31", '"L"'),
        ("0 0 0 * *", "0 is outside 1-31", "1-31"),
        ("0 0 * 13 *", "13 is outside 1-12", "JAN-DEC"),
        ("0 0 * * 8", "8 is outside 0-7", "SUN-SAT"),
        ("* * * *", "4 fields", "* * * * *"),
        ("5m", "1 field", '{"every": "5m"}'),
        ("0 0 0 1 1 ? 2027", "7 fields", "quartz"),
        ("0 0 1 1 * 2027", "2027 is outside", "no field for the year"),
        ("0 0 * * 1#6", "# takes 1 to 5", "MON#2"),
        ("0 0 * * 1#0", "# takes 1 to 5", "MON#2"),
        ("0 0 * * *#2", "not a value", "SUN-SAT"),
        ("0 0 30 2 *", "never fires", '"L"'),
        ("0 0 31 4,6,9,11 *", "never fires", '"L"'),
        ("0 0 30W 2 *", "never fires", '"L"'),
        ("30-10 * * * *", "backwards", "30-59,0-10"),
        ("0 0 * * FRI-MON", "backwards", "FRI-SAT,SUN-MON"),
        ("0 0 * * 1/2", "not clear whether Sunday is included", "1-6/2"),
        ("0 0 * * L", "which weekday", "5L"),
        ("0 0 L-3 * *", "quartz", '"L"'),
        ("* * MON * *", "MON is a weekday", "day-of-week"),
        ("1,,2 * * * *", "missing", "0-59"),
        ("0 0 W * *", "missing", "1-31"),
        ("0 0 -1 * *", "missing", "1-31"),
        ("?/2 * * * *", "not a value", "0-59"),
        ("² * * * *", "ASCII", "For example"),
        ("H * * * *", "job's name", "number"),
        ("@reboot", "no meaning", "Trigger"),
        ("@never", "not a known macro", "@daily"),
        ("CRON_TZ=Europe/Paris 0 9 * * *", "time zone", "timezone"),
        ("", "empty", "For example"),
        (" \t", "empty", "For example"),
        ("1," * 600 + "1 * * * *", "at most 1000", "For example"),
        ("9" * 500 + " * * * *", "not a value", "0-59"),
    ],
)
def test_an_invalid_or_ambiguous_expression_is_refused_with_reason_and_suggestion(expression, reason, remedy):
    with pytest.raises(BadInput) as refused:
        parse_cron(expression)

    assert reason in refused.value.detail
    assert remedy in refused.value.remedy
    assert refused.value.fields["field"].startswith("schedule")


def test_an_unknown_dialect_is_refused():
    with pytest.raises(BadInput, match="no cron dialect 'qartz'"):
        parse_cron("* * * * *", "qartz")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (SECOND_FIELD, 13),
        (MINUTE_FIELD, 49),
        (HOUR_FIELD, 5),
        (DAY_OF_MONTH_FIELD, 2),
        (MONTH_FIELD, 3),
        (DAY_OF_WEEK_FIELD, 5),
    ],
    ids=lambda each: str(each)[:12],
)
def test_h_depends_on_the_key_and_the_field_alone(field, value):
    assert spread("default/backup", field.name, *field.spread) == value


def test_h_stands_for_its_value():
    assert list(islice(fires("H H H * * *", key="default/backup"), 1)) == ["2026-01-01T05:49:13"]
    assert parse_cron("H H H H *", job_key="default/backup").days == parse_cron("49 5 2 3 *").days


def test_h_in_a_range_and_with_steps_stays_inside():
    for job in range(50):
        x = parse_cron("H(10-19) H/6 * * *", job_key=f"default/{job}")
        minutes = [m for m in range(60) if x.minutes.bits >> m & 1]
        hours = [h for h in range(24) if x.hours.bits >> h & 1]
        assert len(minutes) == 1
        assert 10 <= minutes[0] <= 19
        assert hours == [hours[0] + 6 * i for i in range(4)]


def test_only_h_itself_needs_a_key():
    assert needs_key("H * * * *")
    assert needs_key("H/5 h(0-3) * * *")
    assert not needs_key("0 0 * MAR THU")


@pytest.mark.parametrize(
    ("expression", "warning"),
    [
        ("*/90 * * * *", "longer than the field"),
        ("*/7 * * * *", "last step is shorter"),
        ("0 */5 * * *", "last step is shorter"),
        ("0 0 13 * 5", "match either"),
        ("0 0 */2 * 1", "both match"),
        ("* 9 * * *", "every minute of each matching hour"),
        ("* * * * * *", "every second"),
        ("0 0 31 * *", "Months without a day 31"),
        ("0 0 31 3-6 *", "Months without a day 31"),
        ("0 0 29 2,3 *", "Months without a day 29"),
        ("0 0 29 2 *", "leap years only"),
        ("0 0 */2 * *", "starts again on day 1"),
        ("0 0 * * */7", "longer than the field"),
        ("0 0 0 ? * 2", "Quartz"),
    ],
)
def test_a_surprising_expression_gets_a_warning(expression, warning):
    assert any(warning in each for each in lint(parse_cron(expression)))


@pytest.mark.parametrize(
    "expression",
    ["0 9 * * MON-FRI", "*/15 * * * *", "* * * * *", "0 0 1 * *", "0 */6 * * *", "0 0 31 1,3 *", "0 0 ? * MON"],
)
def test_a_plain_expression_gets_no_warning(expression):
    assert lint(parse_cron(expression)) == []


FIELD = st.text("0123456789*/-,?LWH#()MONJA", min_size=1, max_size=8)


@given(st.lists(FIELD, min_size=4, max_size=7).map(" ".join) | st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    with suppress(BadInput):
        x = parse_cron(text, job_key="default/fuzz")
        lint(x)
        assert next_after(x, "UTC", 0) is not None
