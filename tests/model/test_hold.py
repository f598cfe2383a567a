"""Holds: their allowed spans, the open hold of a queue, and its explanation."""

from uuid import UUID

import pytest

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.admission.hold import (
    AT_ONCE,
    FARTHEST,
    LONGEST,
    NEVER,
    Hold,
    check_window,
    hold_span,
    longest_hold,
    next_change,
    next_opening,
    why_held,
)
from horae.model.base.duration import DAY
from horae.model.base.instant import parse_instant
from horae.model.triggers.calendars.compiled import Calendar
from horae.model.triggers.calendars.read import parse_times
from horae.model.triggers.calendars.resolve import current_calendar

NOW = parse_instant("2026-11-15T12:00:00Z")
MINUTE = 60 * SECOND
QUEUE, OTHER = 1, 2


def hold(**more: object) -> Hold:
    fields = {"queue": QUEUE, "until_at": NOW + MINUTE, "created_at": NOW, **more}
    return Hold(id=UUID(int=1), namespace=1, **fields)  # type: ignore[arg-type]


def calendar(**definition: object) -> Calendar:
    return current_calendar("c", {"c": parse_times(definition)})


def test_a_hold_has_a_length_or_an_end_and_begins_at_once_or_later():
    assert hold_span(NOW, None, None, 30 * MINUTE) == (AT_ONCE, NOW + 30 * MINUTE)
    assert hold_span(NOW, None, NOW + 5, None) == (AT_ONCE, NOW + 5)
    assert hold_span(NOW, NOW + MINUTE, None, MINUTE) == (NOW + MINUTE, NOW + 2 * MINUTE)
    assert hold_span(NOW, NOW - MINUTE, NOW + MINUTE, None) == (AT_ONCE, NOW + MINUTE)


def test_the_refusal_of_a_long_hold_rounds_its_length_up():
    with pytest.raises(BadInput, match="would last 30d1h; at most 30d"):
        hold_span(NOW, None, None, 30 * DAY + MINUTE)
    assert hold_span(NOW, None, None, LONGEST) == (AT_ONCE, NOW + LONGEST)


@pytest.mark.parametrize(
    ("begin", "end", "length", "told"),
    [
        (None, None, None, "neither is given"),
        (None, NOW + MINUTE, MINUTE, "both are given"),
        (NOW + MINUTE, NOW + MINUTE, None, "not after it begins"),
        (NOW + 2 * MINUTE, NOW + MINUTE, None, "not after it begins"),
        (None, NOW - MINUTE, None, "not after it begins"),
        (NOW - 2 * MINUTE, NOW - MINUTE, None, "would have ended"),
        (None, None, 0, "not after it begins"),
        (None, None, LONGEST + 1, "at most 30d"),
        (None, NOW + 40 * DAY, None, "would last 40d"),
        (NOW + FARTHEST + 1, None, MINUTE, "more than a year"),
    ],
)
def test_invalid_spans_are_refused(begin, end, length, told):
    with pytest.raises(BadInput, match=told):
        hold_span(NOW, begin, end, length)


def test_a_hold_is_open_from_its_beginning_until_it_was_ended():
    assert hold().state(NOW) == "active"
    assert hold(from_at=NOW + 1).state(NOW) == "planned"
    assert hold().state(NOW + DAY) == "active"  # a hold stays active until it is ended once for all servers
    assert hold(ended_at=NOW).state(NOW) == "ended"


def test_the_hold_that_ends_last_is_reported():
    brief, long, whole = hold(), hold(until_at=NOW + DAY), hold(queue=None, until_at=NOW + 2 * DAY)
    planned = hold(from_at=NOW + MINUTE, until_at=NOW + 9 * DAY)

    assert longest_hold([brief, long, planned], 1, QUEUE, NOW) == long
    assert longest_hold([brief, long, whole], 1, QUEUE, NOW) == whole
    assert longest_hold([brief, long, whole], 1, OTHER, NOW) == whole
    assert longest_hold([brief, long], 1, OTHER, NOW) is None
    assert longest_hold([brief, whole], 2, QUEUE, NOW) is None


def test_the_next_change_is_a_future_begin_or_end():
    assert next_change([], NOW) is None
    assert next_change([hold(from_at=NEVER, until_at=None)], NOW) is None
    assert next_change([hold(), hold(from_at=NOW + 5)], NOW) == NOW + 5
    assert next_change([hold(), hold(until_at=NOW - 5)], NOW) == NOW + MINUTE


def test_a_window_is_the_current_or_next_opening():
    nights = calendar(hours="MON-SUN 22:00-24:00")

    assert next_opening(nights, NOW) == (parse_instant("2026-11-15T22:00:00Z"), parse_instant("2026-11-16T00:00:00Z"))
    inside = parse_instant("2026-11-15T23:00:00Z")
    assert next_opening(nights, inside) == next_opening(nights, NOW)
    assert check_window("nights", nights, inside) == (AT_ONCE, parse_instant("2026-11-16T00:00:00Z"))
    assert next_opening(calendar(dates=["2025-01-01"]), NOW) == (NEVER, None)
    assert next_opening(calendar(hours="MON-SUN 00:00-24:00"), NOW)[1] is None


def test_a_window_that_never_opens_or_never_closes_is_refused():
    with pytest.raises(BadInput, match="never opens again"):
        check_window("c", calendar(dates=["2025-01-01"]), NOW)
    with pytest.raises(BadInput, match="opens now and never closes"):
        check_window("c", calendar(hours="MON-SUN 00:00-24:00"), NOW)


def test_a_held_execution_explains_the_hold():
    assert why_held(hold(reason="deploy-123"), "default") == (
        'The queue "default" is held until 2026-11-15T12:01:00Z (deploy-123);'
        " `horae queues release default` ends it now."
    )
    assert why_held(hold(queue=None), "default") == (
        "All queues are held until 2026-11-15T12:01:00Z by hand; `horae queues release --all` ends it now."
    )
    assert why_held(hold(calendar="nights"), "default") == (
        'The queue "default" is held until 2026-11-15T12:01:00Z by the maintenance window "nights";'
        " `horae queues window default --calendar nights --remove` ends it."
    )
    assert "until it is released" in why_held(hold(calendar="nights", until_at=None), "default")
