"""Solo items in one session: who may come beside whom, and when."""

from hypothesis import given
from hypothesis import strategies as st

from horae.model.solo import PROBATION, SUSPECT, Place, admits, place
from tests.solo import in_order

START = 10**15
waits = st.integers(0, 3 * PROBATION)


@given(st.lists(st.tuples(st.integers(1, 2), waits), max_size=8))
def test_whatever_comes_in_turn_a_session_never_holds_what_may_not_meet(offers):
    held: list[tuple[int, int]] = []
    now = START
    for losses, wait in offers:
        now += wait
        here = place(max(h[0] for h in held), max(h[1] for h in held), now) if held else Place.ANY
        if admits(here, losses):
            held.append((losses, now))
        assert in_order(held)


@given(st.integers(1, 2), waits)
def test_a_session_that_holds_none_takes_any(losses, wait):
    assert admits(Place.ANY, losses)


@given(waits)
def test_what_was_lost_once_blocks_for_its_probation_and_then_only_suspects(wait):
    here = place(1, START, START + wait)
    assert admits(here, 1) == (wait >= PROBATION)
    assert not admits(here, SUSPECT)


@given(st.integers(SUSPECT, 9), st.integers(-(10**15), 10**15), st.integers(1, 9))
def test_a_suspect_blocks_for_as_long_as_it_is_held(losses, wait, other):
    assert not admits(place(losses, START, START + wait), other)


def test_a_clock_that_went_back_blocks_nothing_for_longer_than_a_probation():
    assert admits(place(1, START, START - PROBATION), 1)
