"""Previews: instants, local times and clock changes."""

import pytest

from horae.model.base.duration import HOUR
from horae.model.base.instant import parse_instant
from horae.model.definitions.reading.preview import show_preview
from horae.model.triggers.decisions.preview import changes, preview
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Cron, Interval

SPRING = parse_instant("2026-03-27T00:00:00Z")


def test_preview_examples():
    given = {"cron": "0 9 * * MON-FRI", "timezone": "Europe/Paris"}
    shown = show_preview(given, SPRING, 10)
    assert shown.fires == [
        "2026-03-27T08:00:00Z", "2026-03-30T07:00:00Z", "2026-03-31T07:00:00Z", "2026-04-01T07:00:00Z",
        "2026-04-02T07:00:00Z", "2026-04-03T07:00:00Z", "2026-04-06T07:00:00Z", "2026-04-07T07:00:00Z",
        "2026-04-08T07:00:00Z", "2026-04-09T07:00:00Z",
    ]  # fmt: skip
    assert [bool(one.note) for one in shown.details].count(True) == 1


@pytest.mark.parametrize(
    ("zone", "after", "told"),
    [
        ("Europe/Paris", "2026-03-28T12:00:00Z", "forward by 1h at 2026-03-29T01:00:00Z, from 02:00 to 03:00"),
        ("Europe/Paris", "2026-10-24T12:00:00Z", "back by 1h at 2026-10-25T01:00:00Z, from 03:00 to 02:00"),
        ("Australia/Lord_Howe", "2026-04-04T00:00:00Z", "back by 30m at 2026-04-04T15:00:00Z, from 02:00 to 01:30"),
        ("Pacific/Apia", "2011-12-30T00:00:00Z", "forward by 1d at 2011-12-30T10:00:00Z, from 00:00 to 00:00"),
    ],
)
def test_a_clock_change_is_noted_at_the_next_fire(zone, after, told):
    start = parse_instant(after)
    notes = [one.note for one in preview(Cron(expression="0 * * * *", timezone=zone), Rules(), start, 40)]
    assert [note for note in notes if note] == [f"clocks go {told}"]
    assert changes("UTC", start, start + 400 * 24 * HOUR) == []


def test_changes_over_years_are_counted():
    (only,) = preview(Cron(expression="0 0 1 1 *", timezone="Europe/Paris"), Rules(), SPRING, 1)
    assert only.note.startswith("2 clock changes before this, the last: clocks go back")


def test_bounds_and_counts_end_a_preview():
    every = Interval(every=HOUR, anchor=0)
    assert len(preview(every, Rules(end_at=SPRING + 3 * HOUR), SPRING, 10)) == 2
    assert len(preview(every, Rules(max_fires=4), SPRING, 10)) == 4
    assert show_preview({"at": "2026-03-27T00:00:00Z"}, SPRING, 3).notes == ["The trigger has no more fires."]


def test_a_preview_warns_about_surprising_expressions():
    answer = show_preview({"cron": "0 */90 * * * ?", "dialect": "quartz"}, SPRING, 2)
    assert answer.fires == ["2026-03-27T01:00:00Z", "2026-03-27T02:00:00Z"]
    assert answer.notes == ['The step of "*/90" in the minute field is longer than the field, so it means 0 only.']
