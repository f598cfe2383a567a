"""Properties of every calendar in every zone at every clock change, against an oracle that checks each instant."""

from datetime import datetime, timedelta
from itertools import pairwise

import holidays
from hypothesis import given, settings
from hypothesis import strategies as st

from horae.env import SECOND
from horae.model.triggers.calendars.hours import parse_hours
from horae.model.triggers.calendars.intervals import difference_of, intersection_of, union_of
from horae.model.triggers.calendars.read import parse_times, render_times
from horae.model.triggers.calendars.resolve import current_calendar
from horae.model.triggers.cron.zone import load as load_zone
from tests.model.zones import PECULIAR, YEAR_2038, changes

EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
STEP = 30 * SECOND  # every edge drawn here is a multiple of it, for every offset of every zone
FAR = 86_400 * SECOND
HOURS = (
    "MON-FRI 09:00-17:00",
    "00:00-24:00",
    "SAT,SUN 22:00-02:00",
    "01:30-02:00",
    "02:30-03:30",
    "FRI-MON 23:30-01:00",
)
FRENCH = holidays.country_holidays("FR", years=range(1969, 2039))

HALF = settings(max_examples=settings.default.max_examples // 2)  # for tests that check every instant

hours = st.lists(st.sampled_from(HOURS), min_size=1, max_size=3).map(lambda lines: {"hours": lines})


@st.composite
def moments(draw):
    """Draw a zone and a range of time, mostly within two days of one of its clock changes."""
    zone = draw(st.sampled_from(PECULIAR))
    known = changes(zone)
    if not known or draw(st.integers(0, 9)) == 0:
        return zone, draw(st.integers(10 * 86_400, YEAR_2038)) * SECOND // STEP * STEP
    near = draw(st.sampled_from([change for change in known if change[0] > 10 * 86_400]))[0] * SECOND // STEP * STEP
    return zone, near + draw(st.integers(-5_000, 5_000)) * STEP


@st.composite
def calendars(draw):
    """Draw a definition with edges near an instant, and that instant."""
    zone, at = draw(moments())
    day = (local(zone, at) + timedelta(days=draw(st.integers(-2, 2)))).date()
    dates = st.sampled_from([{"dates": [day.isoformat()]}, {"dates": [f"{day:%m-%d}", f"{day}/{day}"]}])
    plain = hours | dates | st.just({"country": "FR"})
    composed = st.recursive(
        plain,
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3).map(lambda some: {"any": some}),
            st.lists(inner, min_size=1, max_size=3).map(lambda some: {"all": some}),
            st.tuples(inner, inner).map(lambda both: {**both[0], "except": [both[1]]}),
        ),
        max_leaves=4,
    )
    return {**draw(composed), "timezone": zone}, at


def local(zone: str, at: int) -> datetime:
    return (EPOCH + timedelta(microseconds=at)).astimezone(load_zone(zone))


def is_open(definition, zone: str, at: int) -> bool:
    """Decide with the local date and time, as a person with a wall clock and a calendar would."""
    if any(is_open(each, zone, at) for each in definition.get("except", ())):
        return False
    if "any" in definition:
        return any(is_open(each, zone, at) for each in definition["any"])
    if "all" in definition:
        return all(is_open(each, zone, at) for each in definition["all"])
    now = local(zone, at).replace(tzinfo=None)
    if "dates" in definition:
        names = {now.date().isoformat(), f"{now:%m-%d}", f"{now.date()}/{now.date()}"}
        return bool(names & set(definition["dates"]))
    if "country" in definition:
        return FRENCH.is_working_day(now.date())
    second = now.hour * 3600 + now.minute * 60 + now.second
    return any(
        (now.weekday() in each.weekdays and each.start <= second < each.end)
        or ((now.weekday() - 1) % 7 in each.weekdays and second < each.end - 86_400)
        for each in (parse_hours(line, "") for line in definition["hours"])
    )


@given(calendars())
def test_a_calendar_is_open_when_the_wall_clock_says_so(drawn):
    definition, at = drawn
    calendar = current_calendar("it", {"it": parse_times(definition)})

    for t in range(at - 150 * STEP, at + 150 * STEP, STEP):
        assert calendar.is_open(t) == is_open(definition, definition["timezone"], t), t
        assert calendar.is_open(t + STEP - 1) == calendar.is_open(t)


@HALF
@given(calendars())
def test_next_and_last_open_and_closed_instants_equal_brute_force(drawn):
    definition, at = drawn
    calendar = current_calendar("it", {"it": parse_times(definition)})
    zone = definition["timezone"]

    def found(answer, wanted, steps):
        expected = next((t for t in steps if is_open(definition, zone, t) == wanted), None)
        if expected is None:
            assert answer is None or abs(answer - at) >= FAR - STEP
        elif expected == at:
            assert answer == at
        else:
            assert answer == (expected if expected > at else expected + STEP - SECOND)

    forward, back = range(at, at + FAR, STEP), range(at, at - FAR, -STEP)
    found(calendar.next_open(at), True, forward)
    found(calendar.next_closed(at), False, forward)
    found(calendar.last_open(at), True, back)
    found(calendar.last_closed(at), False, back)


@HALF
@given(calendars(), st.integers(0, 30 * 86_400))
def test_openings_are_complete_disjoint_and_ordered(drawn, seconds):
    definition, at = drawn
    calendar = current_calendar("it", {"it": parse_times(definition)})
    before = at + seconds * SECOND
    last = None
    for start, end in calendar.openings(at, before):
        assert start < end
        assert start < before
        assert end > at
        assert last is None or start > last
        assert calendar.is_open(start)
        assert not calendar.is_open(start - 1) or start < 0
        assert not calendar.is_open(end)
        assert calendar.last_open(end) == end - SECOND
        last = end
    if last is None:
        assert not calendar.is_open(at) or seconds == 0
        assert (calendar.next_open(at) or before) >= before


@given(calendars())
def test_a_definition_round_trips(drawn):
    times = parse_times(drawn[0])
    assert parse_times(render_times(times)) == times


sets = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=6)


@given(sets, sets)
def test_interval_operations_equal_set_operations(one, other):
    a, b = union_of(one), union_of(other)

    def seconds(intervals):
        return {n for start, end in intervals for n in range(start, end)}

    assert seconds(a) == seconds(one)
    assert seconds(intersection_of(a, b)) == seconds(a) & seconds(b)
    assert seconds(difference_of((10, 50), a)) == set(range(10, 50)) - seconds(a)
    assert all(x[1] < y[0] for x, y in pairwise(a))
