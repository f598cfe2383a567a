"""Calendars: accepted and refused definitions, and the openings of each kind."""

import importlib

import pytest

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.base.instant import format_instant, parse_instant
from horae.model.triggers.calendars import business
from horae.model.triggers.calendars.compiled import open_when_all
from horae.model.triggers.calendars.read import parse_times, render_times
from horae.model.triggers.calendars.resolve import (
    Version,
    calendar_through_time,
    check_opens,
    check_times,
    current_calendar,
    users_of,
)
from horae.model.triggers.calendars.values import references_of
from horae.model.triggers.calendars.view import describe_times

HOUR = 3600 * SECOND
DAY = 24 * HOUR


def at(text: str) -> int:
    return parse_instant(text, field="at")


def calendar(definition, **others):
    return current_calendar(
        "it", {"it": parse_times(definition), **{name: parse_times(each) for name, each in others.items()}}
    )


def open_days(definition, first: str, days: int) -> str:
    """Return one letter per day at noon UTC: `o` for open, `.` for closed."""
    it, start = calendar(definition), at(f"{first}T12:00:00Z")
    return "".join("o" if it.is_open(start + n * DAY) else "." for n in range(days))


def shown(instant):
    return None if instant is None else format_instant(instant)


def openings(definition, after: str, before: str) -> list[str]:
    found = calendar(definition).openings(at(after), at(before))
    return [f"{format_instant(start)}/{format_instant(end)}" for start, end in found]


@pytest.mark.parametrize(
    ("definition", "first", "expected"),
    [
        ({"country": "FR", "timezone": "Europe/Paris"}, "2026-07-13", "o.ooo..o"),  # the 14th is a Tuesday
        ({"country": "US", "timezone": "America/New_York"}, "2026-07-02", "o...oooo"),  # the 4th is observed on the 3rd
        ({"country": "US", "subdivision": "CA", "timezone": "America/New_York"}, "2026-03-30", "o.ooo..o"),  # Chavez
        ({"country": "US", "subdivision": "US-CA", "timezone": "America/New_York"}, "2026-03-30", "o.ooo..o"),
        ({"exchange": "XNYS", "timezone": "America/New_York"}, "2026-11-24", "oo.o..o"),  # Thanksgiving
        ({"exchange": "nyse", "timezone": "America/New_York"}, "2026-04-01", "oo...oo"),  # Good Friday
        ({"country": "SA", "timezone": "Asia/Riyadh"}, "2026-11-15", "ooooo..ooooo.."),  # Friday and Saturday
        ({"country": "CN", "timezone": "Asia/Shanghai"}, "2025-01-25", ".oo........oooo."),  # Sunday 26th is worked
        ({"dates": ["2026-12-24", "2026-12-27/2026-12-29"]}, "2026-12-23", ".o..ooo."),
        ({"dates": ["02-29"]}, "2028-02-28", ".o."),
        ({"dates": ["02-29"]}, "2027-02-28", "..."),
        ({"hours": "MON-FRI 09:00-17:00"}, "2026-11-14", "..ooooo.."),
        ({"hours": ["SAT-MON 10:00-14:00"]}, "2026-11-13", ".ooo...."),
        ({"any": [{"dates": ["2026-11-14"]}, {"hours": "MON 00:00-24:00"}]}, "2026-11-13", ".o.o..."),
        ({"hours": "00:00-24:00", "except": {"dates": ["2026-11-15"]}}, "2026-11-14", "o.o"),
    ],
)
def test_days(definition, first, expected):
    assert open_days(definition, first, len(expected)) == expected


def test_days_begin_and_end_in_the_calendars_zone():
    paris = calendar({"country": "FR", "timezone": "Europe/Paris"})
    assert paris.is_open(at("2026-11-15T23:00:00Z"))  # it is already Monday there
    assert not paris.is_open(at("2026-11-15T22:59:59Z"))


@pytest.mark.parametrize(
    ("hours", "after", "before", "expected"),
    [
        # London's clocks go from 01:00 to 02:00 on March 29th, and from 02:00 back to 01:00 on October 25th.
        ("00:30-01:30", "2026-03-29T00:00:00Z", "2026-03-29T12:00:00Z", ["2026-03-29T00:30:00Z/2026-03-29T01:00:00Z"]),
        ("01:00-02:00", "2026-03-29T00:00:00Z", "2026-03-29T12:00:00Z", []),
        ("01:30-02:30", "2026-03-29T00:00:00Z", "2026-03-29T12:00:00Z", ["2026-03-29T01:00:00Z/2026-03-29T01:30:00Z"]),
        (
            "01:15-01:45",
            "2026-10-25T00:00:00Z",
            "2026-10-25T12:00:00Z",
            ["2026-10-25T00:15:00Z/2026-10-25T00:45:00Z", "2026-10-25T01:15:00Z/2026-10-25T01:45:00Z"],
        ),
        ("SAT 23:00-03:00", "2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z",
         ["2026-10-24T22:00:00Z/2026-10-25T03:00:00Z"]),
        ("SUN 22:00-24:00", "2026-11-15T12:00:00Z", "2026-11-16T12:00:00Z",
         ["2026-11-15T22:00:00Z/2026-11-16T00:00:00Z"]),
    ],
)  # fmt: skip
def test_hours_at_clock_changes_and_over_midnight(hours, after, before, expected):
    assert openings({"hours": hours, "timezone": "Europe/London"}, after, before) == expected


def test_a_date_that_does_not_exist_is_never_open():
    it = calendar({"dates": ["2011-12-30"], "timezone": "Pacific/Apia"})
    assert it.next_open(at("2011-01-01T00:00:00Z")) is None
    with pytest.raises(BadInput, match="never be open"):
        check_opens("it", it, at("2026-01-01T00:00:00Z"))


def test_windows_are_instants():
    it = calendar({"windows": "2026-12-01T22:00:00+01:00/2026-12-02T02:00:00+01:00"})
    assert shown(it.next_open(at("2026-01-01T00:00:00Z"))) == "2026-12-01T21:00:00Z"
    assert shown(it.next_closed(at("2026-12-01T22:00:00Z"))) == "2026-12-02T01:00:00Z"
    assert shown(it.last_open(at("2027-01-01T00:00:00Z"))) == "2026-12-02T00:59:59Z"
    assert it.next_open(at("2026-12-02T01:00:00Z")) is None


def test_a_calendar_that_never_closes_has_no_next_closed_instant():
    it = calendar({"hours": "00:00-24:00"})
    assert it.next_closed(at("2026-01-01T00:00:00Z")) is None
    assert it.last_closed(at("2026-01-01T00:00:00Z")) is None
    assert len(list(it.openings(at("2026-01-01T00:00:00Z"), at("2026-02-01T00:00:00Z")))) == 1


def test_a_zone_applies_to_nested_sets_without_one():
    times = parse_times(
        {"all": [{"country": "FR"}, {"hours": "09:00-17:00"}, {"dates": ["2026-01-02"], "timezone": "UTC"}],
         "timezone": "Europe/Paris"}
    )  # fmt: skip
    assert [each["timezone"] for each in render_times(times)["all"]] == ["Europe/Paris", "Europe/Paris", "UTC"]


def test_dates_are_sorted_and_merged():
    times = parse_times({"dates": ["2026-05-03", "12-25", "2026-05-01/2026-05-02", "2026-05-03", "2026-07-01"]})
    assert render_times(times) == {"dates": ["2026-05-01/2026-05-03", "2026-07-01", "12-25"], "timezone": "UTC"}


REFUSED = [
    ({}, "has no times", "definition"),
    ({"countri": "FR"}, "no field 'countri'", "countri"),
    ({"hours": "09:00-17:00", "dates": ["2026-01-01"]}, "only one of dates and hours", "hours"),
    ({"country": "FR"}, "need a time zone", "timezone"),
    ({"exchange": "XNYS"}, "need a time zone", "timezone"),
    ({"country": "FR", "timezone": "Europe/Pariss"}, "no time zone named 'Europe/Pariss'", "timezone"),
    ({"dates": ["2026-02-30"]}, "'2026-02-30' is a date that does not exist", "dates[0]"),
    ({"dates": ["02-30"]}, "a date that does not exist", "dates[0]"),
    ({"dates": ["2026-05-02", "2026-05-09/2026-05-01"]}, "ends before it begins", "dates[1]"),
    ({"dates": ["tomorrow"]}, "'tomorrow' is not a date", "dates[0]"),
    ({"dates": ["1969-12-31"]}, "outside the years 1970 to 2199", "dates[0]"),
    ({"dates": []}, "empty, so this is never open", "dates"),
    ({"dates": [20261224]}, "not a text", "dates[0]"),
    ({"hours": []}, "empty, so this is never open", "hours"),
    ({"hours": "MON-FRI"}, "'MON' is not a time of day", "hours[0]"),
    ({"hours": "always"}, "not a valid entry of weekly hours", "hours[0]"),
    ({"hours": "MON-FRY 09:00-17:00"}, "'FRY' is not a weekday", "hours[0]"),
    ({"hours": "09:00-09:00"}, "ends when it begins", "hours[0]"),
    ({"hours": "24:00-09:00"}, "begins when the day has ended", "hours[0]"),
    ({"hours": "09:00-24:30"}, "not a valid time of day", "hours[0]"),
    ({"hours": "09:60-17:00"}, "not a valid time of day", "hours[0]"),
    ({"windows": ["2026-12-02T00:00:00Z/2026-12-01T00:00:00Z"]}, "ends before it begins", "windows[0]"),
    ({"windows": ["2026-12-02T00:00:00Z"]}, "not a window", "windows[0]"),
    ({"any": []}, "any is empty", "any"),
    ({"all": [{"hours": "09:00-17:00"}, {}]}, "has no times", "all[1]"),
    ({"hours": "09:00-17:00", "except": [{"dates": ["2026-13-01"]}]}, "does not exist", "except[0].dates[0]"),
    ({"calendar": "no spaces"}, "not a valid calendar", "calendar"),
    (17, "a number, not an object", "definition"),
]


@pytest.mark.parametrize(("definition", "told", "field"), REFUSED)
def test_mistakes_are_named(definition, told, field):
    with pytest.raises(BadInput) as caught:
        parse_times(definition)
    assert told in caught.value.detail
    assert caught.value.remedy
    assert caught.value.fields["field"] == field


def test_a_missing_zone_is_suggested_and_a_wrong_one_corrected():
    with pytest.raises(BadInput) as caught:
        parse_times({"country": "JP"})
    assert '"Asia/Tokyo"' in caught.value.remedy
    with pytest.raises(BadInput) as caught:
        parse_times({"hours": "09:00-17:00", "timezone": "Europe/Pariss"})
    assert '"Europe/Paris"' in caught.value.remedy


@pytest.mark.parametrize(
    ("definition", "told", "suggested", "field"),
    [
        ({"country": "Germany"}, "no country 'Germany'", '"DE"', "country"),
        ({"country": "FRR"}, "no country 'FRR'", '"FRA"', "country"),
        ({"country": "DE", "subdivision": "BX"}, "DE has no subdivision 'BX'", '"BW"', "subdivision"),
        ({"country": "AX", "subdivision": "01"}, "AX has no subdivision '01'", "Remove `subdivision`", "subdivision"),
        ({"exchange": "XNYZ"}, "no exchange 'XNYZ'", '"XNYS"', "exchange"),
        ({"all": [{"hours": "09:00-17:00"}, {"country": "ZZ"}]}, "no country 'ZZ'", '"', "all[1].country"),
        ({"hours": "09:00-17:00", "except": [{"country": "ZZ"}]}, "no country 'ZZ'", '"', "except[0].country"),
    ],
)
def test_unknown_places_name_the_nearest(definition, told, suggested, field):
    times = parse_times({**definition, "timezone": "UTC"})
    with pytest.raises(BadInput) as caught:
        check_times(times)
    assert told in caught.value.detail
    assert suggested in caught.value.remedy
    assert caught.value.fields["field"] == field


def test_without_the_package_a_country_is_refused_with_what_to_install(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(business, "import_module", missing)
    monkeypatch.setattr(business, "_countries", business._countries.__wrapped__)
    times = parse_times({"country": "FR", "timezone": "Europe/Paris"})
    with pytest.raises(BadInput) as caught:
        check_times(times)
    assert "pip install 'horae[calendar]'" in caught.value.remedy
    check_times(parse_times({"hours": "09:00-17:00"}))
    assert importlib.import_module("holidays")


def test_references_are_followed():
    it = calendar(
        {"calendar": "work", "except": ["closed"]}, work={"hours": "09:00-17:00"}, closed={"dates": ["05-01"]}
    )
    assert shown(it.next_open(at("2026-04-30T18:00:00Z"))) == "2026-05-02T09:00:00Z"
    assert references_of(parse_times({"any": ["a", {"all": ["b", {"hours": "09:00-17:00"}]}], "except": "c"})) == {
        "a", "b", "c",
    }  # fmt: skip


def test_cycles_are_refused_with_their_path():
    with pytest.raises(BadInput, match="in a circle: it -> a -> b -> it"):
        calendar({"calendar": "a"}, a={"calendar": "b"}, b={"any": ["it"]})
    with pytest.raises(BadInput, match="in a circle: a -> a"):
        calendar({"calendar": "a"}, a={"calendar": "a"})


def test_an_unknown_reference_is_refused():
    with pytest.raises(BadInput, match='no calendar named "gone"'):
        calendar({"calendar": "gone"})
    with pytest.raises(BadInput, match='Did you mean "work"'):
        calendar({"calendar": "worc"}, work={"hours": "09:00-17:00"})


def test_depth_is_bounded():
    chain = {f"c{n}": {"calendar": f"c{n + 1}"} for n in range(20)}
    with pytest.raises(BadInput, match="more than 8 deep"):
        calendar({"calendar": "c0"}, **chain, c20={"hours": "09:00-17:00"})
    nested = {"hours": "09:00-17:00"}
    for _ in range(9):
        nested = {"any": [nested]}
    with pytest.raises(BadInput, match="nested more than 8 levels"):
        parse_times(nested)


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        ({"hours": ["09:00-17:00"] * 101}, "hours has 101 entries"),
        ({"any": [{"any": [{"hours": "09:00-17:00"}] * 50}] * 3}, "composed of 154 sets"),
        ({"any": ["a"] * 65}, "any has 65 entries"),
    ],
)
def test_an_expensive_definition_is_refused(definition, words):
    with pytest.raises(BadInput, match=words):
        parse_times(definition)


def test_a_large_definition_is_refused():
    with pytest.raises(BadInput, match="bytes"):
        parse_times(
            {"any": [{"dates": [f"{year}-01-{day:02d}" for year in range(1970, 2100) for day in range(1, 29)]}] * 2}
        )


@pytest.mark.parametrize(
    "definition",
    [
        {"all": [{"hours": "MON 09:00-10:00"}, {"hours": "TUE 09:00-10:00"}]},
        {"dates": ["2026-05-01"], "except": {"dates": ["05-01"]}},
        {"country": "FR", "timezone": "Europe/Paris", "except": {"hours": "00:00-24:00", "timezone": "UTC"}},
    ],
)
def test_a_calendar_that_is_never_open_is_refused(definition):
    with pytest.raises(BadInput, match="would never be open"):
        check_opens("it", calendar(definition), at("2026-01-01T00:00:00Z"))


def test_a_list_of_past_dates_is_accepted():
    check_opens("it", calendar({"dates": ["2020-05-01"]}), at("2026-01-01T00:00:00Z"))


def test_several_calendars_are_open_when_all_are():
    both = open_when_all([calendar({"hours": "MON-FRI 00:00-24:00"}), calendar({"hours": "09:00-17:00"})])
    assert shown(both.next_open(at("2026-11-14T10:00:00Z"))) == "2026-11-16T09:00:00Z"


def test_users_are_found_transitively():
    named = {"a": {"calendar": "b"}, "b": {"any": ["c"]}, "c": {"hours": "09:00-17:00"}, "d": {"hours": "09:00-17:00"}}
    definitions = {name: parse_times(each) for name, each in named.items()}
    assert users_of(["c"], definitions) == {"a", "b", "c"}


def version(name, number, definition, valid_from, valid_to=None):
    return Version(
        name=name, version=number, times=parse_times(definition), valid_from=at(valid_from),
        valid_to=None if valid_to is None else at(valid_to),
    )  # fmt: skip


def test_each_instant_is_judged_by_the_version_valid_then():
    it = calendar_through_time(
        "it",
        [
            version("it", 1, {"hours": "09:00-10:00"}, "2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z"),
            version("it", 2, {"hours": "20:00-21:00"}, "2026-06-01T00:00:00Z"),
        ],
    )
    assert it.is_open(at("2026-05-31T09:30:00Z"))
    assert not it.is_open(at("2026-06-01T09:30:00Z"))
    assert shown(it.next_open(at("2026-05-31T12:00:00Z"))) == "2026-06-01T20:00:00Z"
    assert shown(it.last_open(at("2026-06-01T12:00:00Z"))) == "2026-05-31T09:59:59Z"
    assert it.is_open(at("2025-05-31T09:30:00Z"))  # the first version applies to earlier times as well


def test_a_change_of_a_referenced_calendar_applies_from_its_time_on():
    it = calendar_through_time(
        "it",
        [
            version("it", 1, {"calendar": "other"}, "2026-01-01T00:00:00Z"),
            version("other", 4, {"hours": "09:00-10:00"}, "2025-01-01T00:00:00Z", "2026-06-01T00:00:00Z"),
            version("other", 5, {"hours": "20:00-21:00"}, "2026-06-01T00:00:00Z"),
        ],
    )
    assert shown(it.next_open(at("2026-05-31T12:00:00Z"))) == "2026-06-01T20:00:00Z"


def test_references_may_reverse_over_time():
    """There is no cycle at any instant: first one calendar refers to the other, later the other to the first."""
    versions = [
        version("a", 1, {"calendar": "b"}, "2026-01-01T00:00:00Z", "2026-03-01T00:00:00Z"),
        version("a", 2, {"hours": "20:00-21:00"}, "2026-03-01T00:00:00Z"),
        version("b", 1, {"hours": "09:00-10:00"}, "2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z"),
        version("b", 2, {"calendar": "a"}, "2026-06-01T00:00:00Z"),
    ]
    assert shown(calendar_through_time("a", versions).next_open(at("2026-02-28T12:00:00Z"))) == "2026-03-01T20:00:00Z"
    assert shown(calendar_through_time("b", versions).next_open(at("2026-05-31T12:00:00Z"))) == "2026-06-01T20:00:00Z"


def test_a_calendar_is_closed_while_it_is_deleted():
    it = calendar_through_time(
        "it",
        [
            version("it", 1, {"hours": "00:00-24:00"}, "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"),
            version("it", 2, {"hours": "00:00-24:00"}, "2026-03-01T00:00:00Z"),
        ],
    )
    assert shown(it.next_open(at("2026-02-10T00:00:00Z"))) == "2026-03-01T00:00:00Z"


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        ({"country": "DE", "subdivision": "BY", "timezone": "UTC"}, "business days of DE-BY, UTC time"),
        ({"hours": ["MON-FRI 9:00-17:00"]}, "MON-FRI 09:00-17:00, UTC time"),
        ({"dates": ["01-01", "05-01", "10-03", "12-25"]}, "4 dates, UTC time"),
        ({"all": ["a", {"any": ["b", "c"]}], "except": "d"}, '("a" and ("b" or "c")) except "d"'),
        ({"windows": "2026-12-01T22:00:00Z/2026-12-02T02:00:00Z"}, "1 window"),
    ],
)
def test_words(definition, words):
    assert describe_times(parse_times(definition)) == words
