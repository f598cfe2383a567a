"""Next and last fires are cached for as long as they are valid, and equal the uncached answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.env import SECOND
from horae.model.base.duration import DAY, HOUR
from horae.model.base.instant import parse_instant
from horae.model.triggers.cron.fire import last_before, next_after
from horae.model.triggers.cron.parse import parse_cron
from horae.model.triggers.decisions import fire_cache as remembered
from horae.model.triggers.decisions.fire_cache import FireCache
from horae.model.triggers.decisions.values import Cron, next_fire, previous_fire

T0 = parse_instant("2026-11-01T03:00:00Z")  # New York sets its clocks back at 06:00
CRONS = [
    Cron(expression=expression, timezone=zone, dst_overlap=overlap)
    for expression in ("30 1 * * *", "*/20 * * * *", "0 0 * * MON")
    for zone in ("UTC", "America/New_York")
    for overlap in ("first", "both")
]


class Asked:
    """A question that counts its calls."""

    def __init__(self, answer):
        self.answer, self.times = answer, 0

    def __call__(self, key, at):
        self.times += 1
        return self.answer(at)


def test_ten_thousand_triggers_with_one_expression_compute_once():
    asked = Asked(lambda at: (at // HOUR + 1) * HOUR)
    following = FireCache(asked, forward=True)

    assert {following("hourly", T0 + i * SECOND % HOUR) for i in range(10_000)} == {T0 + HOUR}
    assert asked.times == 1


def test_an_answer_is_valid_until_just_before_the_fire():
    asked = Asked(lambda at: (at // HOUR + 1) * HOUR)
    following = FireCache(asked, forward=True)

    assert [following("x", at) for at in (T0, T0 + HOUR - 1, T0 + HOUR, T0)] == [
        T0 + HOUR,
        T0 + HOUR,
        T0 + 2 * HOUR,
        T0 + HOUR,
    ]
    assert asked.times == 2


def test_a_fire_and_its_successor_are_computed_once_for_all_triggers():
    asked = Asked(lambda at: (at // HOUR + 1) * HOUR)
    following = FireCache(asked, forward=True)

    for i in range(1_000):
        assert (following("x", T0 + i), following("x", T0 + HOUR)) == (T0 + HOUR, T0 + 2 * HOUR)
    assert asked.times == 2


def test_a_backward_answer_is_valid_from_just_after_the_fire():
    asked = Asked(lambda at: (at - 1) // HOUR * HOUR)
    past = FireCache(asked, forward=False)

    assert [past("x", at) for at in (T0 + HOUR, T0 + 1, T0)] == [T0, T0, T0 - HOUR]
    assert asked.times == 2


def test_the_same_answer_for_a_distant_instant_widens_its_range():
    asked = Asked(lambda at: T0)
    following = FireCache(asked, forward=True)

    assert [following("x", at) for at in (T0 - 5, T0 - 50, T0 - 40, T0 - 1)] == [T0] * 4
    assert asked.times == 2


def test_a_missing_fire_is_computed_each_time():
    asked = Asked(lambda at: None)
    following = FireCache(asked, forward=True)

    assert [following("x", T0), following("x", T0)] == [None, None]
    assert asked.times == 2


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(remembered, "MOST", 10)
    following = FireCache(Asked(lambda at: T0 + HOUR), forward=True)

    for key in range(1_000):
        following(key, T0)
    assert len(following._known) <= 10


@given(st.lists(st.tuples(st.sampled_from(CRONS), st.integers(0, 8 * DAY)), min_size=1, max_size=60))
def test_answers_do_not_depend_on_earlier_questions(questions):
    for cron, since in questions:
        x, at = parse_cron(cron.expression), T0 - 4 * DAY + since
        assert next_fire(cron, at) == next_after(x, cron.timezone, at, overlap=cron.dst_overlap)
        assert previous_fire(cron, at) == last_before(x, cron.timezone, at, overlap=cron.dst_overlap)
