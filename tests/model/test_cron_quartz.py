"""The quartz dialect: its syntax, its calendar vectors in UTC, its years, and clock changes as in the unix dialect."""

from itertools import islice

import pytest

from horae.errors import BadInput
from horae.model.base.instant import format_instant, parse_instant
from horae.model.triggers.cron.fire import last_before, next_after
from horae.model.triggers.cron.lint import lint
from horae.model.triggers.cron.parse import parse_cron
from horae.model.triggers.cron.wall import CronExpression

NEW_YEAR = "2026-01-01T00:00:00Z"


def quartz(expression, key=""):
    return parse_cron(expression, "quartz", key)


def fires(expression, start=NEW_YEAR, zone="UTC"):
    at = parse_instant(start)
    while (at := next_after(quartz(expression), zone, at)) is not None:
        yield format_instant(at).removesuffix("Z")


def days(expression, count, start=NEW_YEAR):
    """Return the dates of the first fires, without the year if it is the year of the start."""
    return [each[:10].removeprefix(start[:5]) for each in islice(fires(expression, start), count)]


def same(one: CronExpression, other: CronExpression) -> bool:
    """Return whether two expressions fire at the same wall times."""
    names = ("months", "days", "years", "wild")
    clocks = all(getattr(one, each).bits == getattr(other, each).bits for each in ("seconds", "minutes", "hours"))
    return clocks and all(getattr(one, each) == getattr(other, each) for each in names)


@pytest.mark.parametrize(
    ("expression", "start", "expected"),
    [
        pytest.param("0 0 0 L * ?", "2026-01-31T00:00:00Z", "02-28 03-31 04-30", id="C9"),
        pytest.param("0 0 0 L 2 ?", NEW_YEAR, "02-28 2027-02-28 2028-02-29", id="C9 February"),
        pytest.param("0 0 0 15W * ?", NEW_YEAR, "01-15 02-16 03-16 04-15 05-15 06-15 07-15 08-14", id="C12"),
        pytest.param("0 0 0 ? * 6#3", NEW_YEAR, "01-16 02-20 03-20 04-17", id="C14"),
        pytest.param("0 0 0 ? * FRI#3", NEW_YEAR, "01-16 02-20 03-20 04-17", id="C14 by name"),
        pytest.param("0 0 0 ? * 6L", NEW_YEAR, "01-30 02-27 03-27 04-24", id="C14 last"),
        pytest.param("0 0 0 ? * FRIL", NEW_YEAR, "01-30 02-27 03-27 04-24", id="C14 last by name"),
        pytest.param("0 0 0 1 7/6 ?", NEW_YEAR, "07-01 2027-07-01 2028-07-01", id="C20 a step does not wrap"),
        pytest.param("0 0 0 LW * ?", NEW_YEAR, "01-30 02-27 03-31 04-30 05-29", id="last weekday"),
        pytest.param("0 0 0 L-3 * ?", NEW_YEAR, "01-28 02-25 03-28 04-27", id="three days before the last"),
        pytest.param("0 0 0 L-3W * ?", NEW_YEAR, "01-28 02-25 03-27 04-27", id="the weekday nearest to that"),
        pytest.param("0 0 0 L-30 * ?", NEW_YEAR, "03-01 05-01 07-01", id="only long months reach so far back"),
        pytest.param("0 0 0 ? * 1", NEW_YEAR, "01-04 01-11", id="1 is Sunday"),
        pytest.param("0 0 0 ? * 7", NEW_YEAR, "01-03 01-10", id="7 is Saturday"),
        pytest.param("0 0 0 ? * L", NEW_YEAR, "01-03 01-10", id="the last day of a week"),
        pytest.param("0 0 0 ? * 2-6", NEW_YEAR, "01-02 01-05 01-06 01-07 01-08 01-09 01-12", id="weekdays"),
        pytest.param("0 0 0 ? * mon-fri", NEW_YEAR, "01-02 01-05 01-06", id="weekdays by name"),
        pytest.param("0 0 0 ? * FRI-MON", NEW_YEAR, "01-02 01-03 01-04 01-05 01-09", id="a range over the week's end"),
        pytest.param("0 0 0 ? * 6-2/2", NEW_YEAR, "01-02 01-04 01-09", id="with a step"),
        pytest.param("0 0 0 1 NOV-FEB ?", NEW_YEAR, "02-01 11-01 12-01 2027-01-01", id="a range over the year's end"),
        pytest.param("0 0 0 30-2 * ?", NEW_YEAR, "01-02 01-30 01-31 02-01 02-02 03-01", id="over the month's end"),
        pytest.param("0 0 0 1/10 * ?", NEW_YEAR, "01-11 01-21 01-31 02-01", id="1/10"),
        pytest.param("0 0 0 1,L * ?", NEW_YEAR, "01-31 02-01 02-28 03-01", id="L in a list"),
        pytest.param("0 0 0 ? * *", NEW_YEAR, "01-02 01-03", id="? as day of month"),
        pytest.param("0 0 0 29 2 ?", "2096-01-01T00:00:00Z", "02-29 2104-02-29", id="2100 is no leap year"),
    ],
)
def test_an_expression_fires_on_these_days(expression, start, expected):
    assert days(expression, len(expected.split()), start) == expected.split()


@pytest.mark.parametrize(
    ("expression", "unix"),
    [
        ("0 0 12 * * ?", "0 12 * * *"),
        ("0 15 10 ? * MON-FRI", "15 10 * * 1-5"),
        ("0 * 14 * * ?", "* 14 * * *"),
        ("0 0/5 14,18 * * ?", "0/5 14,18 * * *"),
        ("0 10,44 14 ? 3 WED", "10,44 14 * 3 3"),
        ("0 /15 * * * ?", "*/15 * * * *"),
        ("0 0 22-2 * * ?", "0 22,23,0,1,2 * * *"),
        ("50-10/10 * * * * ?", "50,0,10 * * * * *"),
        ("0 11 11 11 11 ?", "11 11 11 11 *"),
        ("0 15 10 ? * 6L 1970-2099", "15 10 * * 5L"),
        ("*/90 * * * * ?", "*/90 * * * * *"),
    ],
)
def test_the_same_expression_in_both_dialects(expression, unix):
    one, other = quartz(expression), parse_cron(unix)
    if one.years:
        one, other = (list(islice(_instants(each), 50)) for each in (one, other))
        assert one == other
    else:
        assert same(one, other)


def _instants(x):
    at = parse_instant(NEW_YEAR)
    while (at := next_after(x, "UTC", at)) is not None:
        yield at


def test_h_means_the_same_moments_in_both_dialects():
    key = "default/backup"

    assert same(quartz("H H H H H ?", key), parse_cron("H H H H H *", job_key=key))
    assert same(quartz("0 H(0-29) H/6 ? * H", key), parse_cron("0 H(0-29) H/6 * * H", job_key=key))


# --- years ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("year", "expected"),
    [
        ("2027", "2027"),
        ("2025-2027", "2026 2027"),
        ("2024/2", "2026 2028 2030"),
        ("2026,2040,2099", "2026 2040 2099"),
        ("*/4", "2026 2030 2034"),
        ("*", "2026 2027 2028"),
    ],
)
def test_an_expression_fires_in_these_years(year, expected):
    found = islice(fires(f"0 0 0 1 6 ? {year}"), len(expected.split()))

    assert [each[:4] for each in found] == expected.split()


def test_after_its_last_year_an_expression_never_fires():
    x = quartz("0 0 12 31 12 ? 2026,2028")
    first, last = (parse_instant(f"{year}-12-31T12:00:00Z") for year in (2026, 2028))

    assert next_after(x, "UTC", first) == last
    assert next_after(x, "UTC", last) is None
    assert last_before(x, "UTC", last) == first
    assert last_before(x, "UTC", first) is None


def test_a_named_year_is_found_however_far_away_it_is():
    x = quartz("0 0 0 1 1 ? 2099")
    at = parse_instant("2099-01-01T00:00:00Z")

    assert next_after(x, "UTC", 0) == at
    assert last_before(x, "UTC", parse_instant("2190-01-01T00:00:00Z")) == at


def test_the_year_field_uses_local_time():
    x = quartz("0 0 0 1 1 ? 2027")

    assert format_instant(next_after(x, "Asia/Tokyo", 0)) == "2026-12-31T15:00:00Z"


# --- clock changes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "start", "expression", "expected"),
    [
        ("America/New_York", "2026-03-08T00:00:00Z", "0 30 2 * * ?", "03-08T07:00 03-09T06:30"),
        ("America/New_York", "2026-03-08T06:00:00Z", "0 0/30 2 ? * SUN", "03-08T07:00 03-15T06:00 03-15T06:30"),
        ("America/New_York", "2026-03-08T06:00:00Z", "0 */30 2 * * ?", "03-09T06:00 03-09T06:30"),
        ("America/New_York", "2026-11-01T05:00:00Z", "0 30 1 * * ?", "11-01T05:30 11-02T06:30"),
        ("America/New_York", "2026-11-01T05:00:00Z", "0 30 * * * ?", "11-01T05:30 11-01T06:30 11-01T07:30"),
        ("Pacific/Apia", "2011-12-29T00:00:00Z", "0 0 12 30 12 ? 2011-2012", "2012-12-29T22:00"),
    ],
)
def test_clock_changes_are_handled_as_in_the_unix_dialect(zone, start, expression, expected):
    found = [each[:16].removeprefix(start[:5]) for each in islice(fires(expression, start, zone), 3)]

    assert found[: len(expected.split())] == expected.split()


# --- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "reason", "remedy"),
    [
        ("0 9 * * MON-FRI", "5 fields", 'remove the field `dialect`, or write "0 0 9 ? * MON-FRI"'),
        ("0 9 1 * *", "5 fields", 'or write "0 0 9 1 * ?"'),
        ("0 9 * * 1", "5 fields", "from 1 for Sunday"),
        ("0 9 13 * FRI", "5 fields", "remove the field `dialect`."),
        ("0 9 * * NEVER", "5 fields", "The fields are: second"),
        ("0 0 9 * *  ? 2027 8", "8 fields", "[year]"),
        ("5m", "1 field", "The fields are"),
        ("@daily", "no macros", '"0 0 0 * * ?"'),
        ("@weekly", "no macros", '"0 0 0 ? * SUN"'),
        ("@often", "no macros", "Remove the field `dialect`."),
        ("0 0 9 * * MON-FRI", "exactly one", '"0 0 9 ? * MON-FRI"'),
        ("0 0 9 * * *", "exactly one", '"0 0 9 * * ?"'),
        ("0 0 9 * * * 2027", "exactly one", '"0 0 9 * * ? 2027"'),
        ("0 0 9 ? * ?", "exactly one", '"0 0 9 * * ?"'),
        ("0 0 9 ?,1 * ?", "exactly one", '"0 0 9 1 * ?"'),
        ("0 0 9 13 * FRI", "exactly one", "two triggers"),
        ("0 ? 9 * * ?", "day field only", '"*"'),
        ("0 0 9 * ? ?", "day field only", '"*"'),
        ("0 0 9 * * ? ?", "day field only", '"*"'),
        ("0 0 9 ? * 0", "0 is outside 1-7", '"SUN"'),
        ("0 0 9 ? * 8", "8 is outside 1-7", "SUN-SAT"),
        ("0 0 9 ? * 1#6", "# takes 1 to 5", "MON#2"),
        ("0 0 9 ? * *#2", "not a value", "SUN-SAT"),
        ("60 0 9 * * ?", "60 is outside 0-59", "Write 0"),
        ("0 */0 9 * * ?", "step of 0", "*/15"),
        ("0 0 24 * * ?", "24 is outside 0-23", "Write 0"),
        ("0 0 9 0 * ?", "0 is outside 1-31", "1-31"),
        ("0 0 9 32 * ?", "32 is outside 1-31", '"L"'),
        ("0 0 9 L-31 * ?", "up to 30", "L-3"),
        ("0 0 9 L-x * ?", "up to 30", "L-3"),
        ("0 0 9 1 13 ?", "13 is outside 1-12", "JAN-DEC"),
        ("0 0 9 1 1 ? 1969", "1969 is outside 1970-2099", "1970-2099"),
        ("0 0 9 1 1 ? 2030-2028", "backwards", "2028-2030"),
        ("0 0 9 1 1 ? H", "not allowed in the year field", "1970-2099"),
        ("0 0 9 30 2 ?", "no month has such a day", '"L"'),
        ("0 0 9 29 2 ? 2026-2027", "no such day in 2026-2027", '"L"'),
        ("H * * * * ?", "job's name", "number"),
        ("TZ=Europe/Paris 0 0 9 * * ?", "time zone", "timezone"),
        ("", "empty", "For example"),
    ],
)
def test_an_invalid_or_ambiguous_expression_is_refused_with_reason_and_suggestion(expression, reason, remedy):
    with pytest.raises(BadInput) as refused:
        quartz(expression)

    assert reason in refused.value.detail
    assert remedy in refused.value.remedy
    assert refused.value.fields["field"].startswith("schedule")


@pytest.mark.parametrize(
    "expression", ["0 9 * * MON-FRI", "0 9 1 * *", "@daily", "@weekly", "@yearly", "@hourly", "0 0 9 * * *"]
)
def test_a_suggested_expression_is_valid_and_equivalent(expression):
    with pytest.raises(BadInput) as refused:
        quartz(expression)
    suggested = refused.value.remedy.rsplit('"', 2)[1]

    assert same(quartz(suggested), parse_cron(expression))


# --- warnings ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "warning"),
    [
        ("0 */90 * * * ?", "longer than the field"),
        ("0 0 9 ? * 1-5", "Sunday to Thursday"),
        ("0 0 9 ? * L", "Saturday"),
        ("* * 9 * * ?", "every second of each matching minute."),
        ("0 * 9 * * ?", "every minute of each matching hour"),
        ("0 0 9 31 * ?", "Months without a day 31"),
    ],
)
def test_a_surprising_expression_gets_a_warning(expression, warning):
    assert [each for each in lint(quartz(expression)) if warning in each]


@pytest.mark.parametrize("expression", ["0 0 9 ? * MON-FRI", "0 0/15 * * * ?", "0 0 9 L-3 * ? 2027", "0 0 9 * * ?"])
def test_a_plain_expression_gets_no_warning(expression):
    assert lint(quartz(expression)) == []
