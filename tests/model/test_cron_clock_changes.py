"""Fires at clock changes: the D vectors of the time rules, and zones beyond them."""

from datetime import UTC, datetime
from time import perf_counter

import pytest

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.base.instant import parse_instant
from horae.model.triggers.cron.fire import last_before, next_after
from horae.model.triggers.cron.parse import parse_cron
from horae.model.triggers.cron.zone import load as load_zone
from horae.model.triggers.cron.zone import tzdata_version

CITIES = {
    "NY": "America/New_York",
    "London": "Europe/London",
    "Apia": "Pacific/Apia",
    "Casablanca": "Africa/Casablanca",
    "Cairo": "Africa/Cairo",
    "Havana": "America/Havana",
    "Kathmandu": "Asia/Kathmandu",
    "Lord_Howe": "Australia/Lord_Howe",
    "Chatham": "Pacific/Chatham",
    "Nuuk": "America/Nuuk",
    "Monrovia": "Africa/Monrovia",
    "Casey": "Antarctica/Casey",
}

CHATHAM_HOURS = "00:00+12:45 01:00+12:45 02:00+12:45 04:00+13:45 ..."
NUUK_HALF_HOURS = "23:00-01:00 23:30-01:00 23:00-02:00 23:30-02:00"
HAVANA_HALF_HOURS = "00:00-04:00 00:30-04:00 00:00-05:00 00:30-05:00"
LONDON_HOURS = "00:00+01:00 01:00+01:00 01:00+00:00 02:00+00:00 ..."


def fires_on(city, day, expression, **policy):
    """Return the fires on a local date, as wall time and offset."""
    zone, x = CITIES[city], parse_cron(expression)
    at, found = parse_instant(f"{day}T00:00:00Z") - 30 * 3600 * SECOND, []
    while (at := next_after(x, zone, at, **policy)) is not None:
        local = datetime.fromtimestamp(at // SECOND, load_zone(zone))
        if str(local.date()) > day:
            return found
        if str(local.date()) == day:
            found.append(f"{local:%H:%M}{str(local)[19:]}")
    return found


@pytest.mark.parametrize(
    ("city", "day", "expression", "expected"),
    [
        pytest.param("NY", "2026-03-08", "30 2 * * *", "03:00-04:00", id="D1"),
        pytest.param("NY", "2026-03-08", "0,30 2 * * *", "03:00-04:00", id="D2"),
        pytest.param("NY", "2026-03-08", "*/30 2 * * *", "", id="D3"),
        pytest.param("NY", "2026-03-08", "0 */2 * * *", "00:00-05:00 04:00-04:00 06:00-04:00 ...", id="D4"),
        pytest.param("NY", "2026-03-08", "30 1-3 * * *", "01:30-05:00 03:00-04:00 03:30-04:00", id="D5"),
        pytest.param("NY", "2026-03-08", "0 * * * *", "00:00-05:00 01:00-05:00 03:00-04:00 04:00-04:00 ...", id="D6"),
        pytest.param("NY", "2026-11-01", "30 1 * * *", "01:30-04:00", id="D7"),
        pytest.param("NY", "2026-11-01", "*/30 1 * * *", "01:00-04:00 01:30-04:00 01:00-05:00 01:30-05:00", id="D8"),
        pytest.param("NY", "2026-11-01", "0 * * * *", "00:00-04:00 01:00-04:00 01:00-05:00 02:00-05:00 ...", id="D9"),
        pytest.param("NY", "2026-11-01", "0 2 * * *", "02:00-05:00", id="D10"),
        pytest.param("London", "2026-03-29", "30 1 * * *", "02:00+01:00", id="D11"),
        pytest.param("London", "2026-10-25", "30 1 * * *", "01:30+01:00", id="D12"),
        pytest.param("London", "2026-10-25", "0 * * * *", LONDON_HOURS, id="D13"),
        pytest.param("Apia", "2011-12-29", "0 12 * * *", "12:00-10:00", id="D20 the 29th"),
        pytest.param("Apia", "2011-12-30", "0 12 * * *", "", id="D20 the 30th"),
        pytest.param("Apia", "2011-12-31", "0 12 * * *", "12:00+14:00", id="D20 the 31st"),
        pytest.param("Apia", "2011-12-31", "0 12 30 * *", "", id="D21"),
        pytest.param("Casablanca", "2026-02-15", "30 2 * * *", "02:30+01:00", id="D22"),
        pytest.param("Casablanca", "2026-03-22", "30 2 * * *", "03:00+01:00", id="D23"),
        pytest.param("Cairo", "2026-04-24", "0 0 * * *", "01:00+03:00", id="D24"),
        pytest.param("Havana", "2026-11-01", "0 0 * * *", "00:00-04:00", id="D26"),
        pytest.param("Havana", "2025-11-02", "0 0 * * *", "00:00-04:00", id="midnight twice"),
        pytest.param("Havana", "2025-11-02", "*/30 0 * * *", HAVANA_HALF_HOURS, id="midnight twice, wild"),
        pytest.param("Kathmandu", "2026-06-01", "0 9 * * *", "09:00+05:45", id="D28"),
        pytest.param("Lord_Howe", "2026-10-04", "15 2 * * *", "02:30+11:00", id="a gap of half an hour"),
        pytest.param("Lord_Howe", "2026-04-05", "45 1 * * *", "01:45+11:00", id="an overlap of half an hour"),
        pytest.param("Lord_Howe", "2026-04-05", "45 * * * *", "00:45+11:00 01:45+11:00 01:45+10:30 ...", id="wild"),
        pytest.param("Lord_Howe", "2026-10-04", "0,30 2 * * *", "02:30+11:00", id="skipped and landed on at once"),
        pytest.param("Lord_Howe", "2026-10-04", "*/15 2 * * *", "02:30+11:00 02:45+11:00", id="wild, half an hour"),
        pytest.param("Chatham", "2026-09-27", "50 2,3 * * *", "03:45+13:45 03:50+13:45", id="a gap and after it"),
        pytest.param("Chatham", "2026-09-27", "0 2-4 * * *", "02:00+12:45 03:45+13:45 04:00+13:45", id="around it"),
        pytest.param("Chatham", "2026-09-27", "0 */1 * * *", CHATHAM_HOURS, id="wild, at a quarter to three"),
        pytest.param("Chatham", "2026-04-05", "50 2 * * *", "02:50+13:45", id="once in its overlap"),
        pytest.param("Chatham", "2026-04-05", "*/50 2 * * *", "02:00+13:45 02:50+13:45 02:50+12:45", id="wild, twice"),
        pytest.param("Chatham", "2026-09-27", "0 3 * * *", "03:45+13:45", id="a change at a quarter to three"),
        pytest.param("Chatham", "2026-04-05", "0 3 * * *", "03:00+13:45", id="an overlap at a quarter to three"),
        pytest.param("Nuuk", "2024-03-30", "30 23 * * *", "", id="a gap before midnight leaves its day"),
        pytest.param("Nuuk", "2024-03-31", "30 23 * * *", "00:00-01:00 23:30-01:00", id="and lands on the next"),
        pytest.param("Nuuk", "2024-03-30", "*/30 22,23 * * *", "22:00-02:00 22:30-02:00", id="wild, not at all"),
        pytest.param("Nuuk", "2024-10-26", "30 23 * * *", "23:30-01:00", id="an overlap before midnight"),
        pytest.param("Nuuk", "2024-10-26", "*/30 23 * * *", NUUK_HALF_HOURS, id="wild, twice before midnight"),
        pytest.param("Nuuk", "2024-10-27", "0 0 * * *", "00:00-02:00", id="midnight comes once, after the overlap"),
        pytest.param("Kathmandu", "1986-01-01", "0 0 * * *", "00:15+05:45", id="a year that begins at a quarter past"),
        pytest.param("Kathmandu", "1986-01-01", "*/5 0 * * *", "00:15+05:45 00:20+05:45 ...", id="wild, from then on"),
        pytest.param("Kathmandu", "1985-12-31", "59 23 * * *", "23:59+05:30", id="the day before it"),
        pytest.param("Kathmandu", "1986-01-01", "5 0 * * *", "00:15+05:45", id="a permanent change"),
        pytest.param("Monrovia", "1972-01-07", "30 0 * * *", "00:44+00:00", id="a gap of 44 minutes and 30 seconds"),
        pytest.param("Monrovia", "1972-01-07", "*/15 0 * * *", "00:45+00:00", id="wild, after 44 minutes"),
        pytest.param("Monrovia", "1972-01-06", "59 23 * * *", "23:59-00:44:30", id="an offset with seconds, before"),
        pytest.param("Monrovia", "1971-06-01", "0 12 * * *", "12:00-00:44:30", id="an offset with seconds"),
        pytest.param("Casey", "2019-10-04", "30 4 * * *", "", id="three hours are too long to shift"),
    ],
)  # fmt: skip
def test_fires_of_a_day_on_which_the_clock_changes(city, day, expression, expected):
    fires, first, begun = (
        fires_on(city, day, expression),
        expected.removesuffix(" ...").split(),
        expected.endswith("..."),
    )

    assert (fires[: len(first)] if begun else fires) == first


@pytest.mark.parametrize(
    ("day", "policy", "expected"),
    [
        ("2026-03-08", {"gap": "skip"}, "00:30-05:00 01:30-05:00"),
        ("2026-03-08", {"gap": "shift"}, "00:30-05:00 01:30-05:00 03:00-04:00"),
        ("2026-11-01", {"overlap": "first"}, "00:30-04:00 01:30-04:00 02:30-05:00"),
        ("2026-11-01", {"overlap": "second"}, "00:30-04:00 01:30-05:00 02:30-05:00"),
        ("2026-11-01", {"overlap": "both"}, "00:30-04:00 01:30-04:00 01:30-05:00 02:30-05:00"),
    ],
)
def test_a_user_may_choose_what_a_clock_change_does(day, policy, expected):
    assert fires_on("NY", day, "30 0-2 * * *", **policy) == expected.split()


def test_clock_change_policies_do_not_affect_wild_expressions():
    both = fires_on("NY", "2026-11-01", "0 * * * *")

    assert fires_on("NY", "2026-11-01", "0 * * * *", overlap="second", gap="skip") == both


def test_a_whole_second_itself_is_not_after_it():
    x = parse_cron("* * * * * *")

    assert next_after(x, "UTC", 5 * SECOND) == 6 * SECOND
    assert next_after(x, "UTC", 5 * SECOND + 1) == 6 * SECOND
    assert last_before(x, "UTC", 5 * SECOND) == 4 * SECOND
    assert last_before(x, "UTC", 5 * SECOND + 1) == 5 * SECOND


def test_a_rare_date_is_found_fifty_years_ahead_and_back_and_not_further():
    leap_sunday = parse_cron("0 0 29 2 */7")  # and: the field starts with *
    start = datetime(2088, 3, 1, tzinfo=UTC)

    assert next_after(leap_sunday, "UTC", int(start.timestamp()) * SECOND) == parse_instant("2128-02-29T00:00:00Z")
    assert last_before(leap_sunday, "UTC", parse_instant("2128-02-29T00:00:00Z")) == parse_instant(
        "2088-02-29T00:00:00Z"
    )
    assert next_after(leap_sunday, "UTC", 10**18) is None
    assert last_before(leap_sunday, "UTC", -(10**18)) is None


def test_a_nonexistent_date_affects_only_its_own_month():
    x = parse_cron("0 12 30 * *")
    at = next_after(x, "Pacific/Apia", parse_instant("2011-12-01T00:00:00Z"))

    assert datetime.fromtimestamp(at // SECOND, load_zone("Pacific/Apia")).date().isoformat() == "2012-01-30"


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("europe/paris", '"Europe/Paris"'),
        ("Paris", '"Europe/Paris"'),
        ("New York", '"America/New_York"'),
        ("Europe/Pari", '"Europe/Paris"'),
        ("Mars/Olympus_Mons", "IANA"),
        ("", "IANA"),
        ("../../etc/passwd", "IANA"),
        ("localtime", "IANA"),
        ("Europe", "Did you mean"),
    ],
)
def test_an_unknown_zone_is_refused_with_the_nearest_names(name, remedy):
    with pytest.raises(BadInput) as refused:
        load_zone(name)

    assert remedy in refused.value.remedy
    assert refused.value.fields["field"] == "timezone"


def test_the_time_zone_rules_have_a_version():
    assert tzdata_version()[:2] == "20"


def test_dates_are_found_without_walking_minutes():
    x = parse_cron("0 0 29 2 *")
    began = perf_counter()
    for year in range(1970, 2030):
        next_after(x, "Europe/Berlin", parse_instant(f"{year}-03-01T00:00:00Z"))

    assert perf_counter() - began < 1
