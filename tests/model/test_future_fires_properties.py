"""Counts of future fires per time span equal the counts by enumeration."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from horae.env import SECOND
from horae.model.base.duration import HOUR, MINUTE
from horae.model.triggers.decisions.decide import upcoming
from horae.model.triggers.decisions.future_fires import count_future_fires
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Cron, Interval, Trigger

NOW = 1_800_000_123 * SECOND
triggers = st.one_of(
    st.builds(Interval, every=st.integers(MINUTE, 5 * HOUR), anchor=st.just(0)),
    st.sampled_from(("* * * * *", "*/7 3-5 * * *", "0 */6 * * *", "30 9 * * MON")).map(
        lambda text: Cron(expression=text, timezone="Europe/Paris")
    ),
)
edges = st.lists(st.integers(1, 2 * HOUR), min_size=1, max_size=6)


@given(triggers, edges, st.integers(-HOUR, HOUR), st.sampled_from((0, 90 * SECOND)), st.none() | st.integers(1, 5))
def test_counts_by_span_equal_enumeration(
    trigger: Trigger, widths: list[int], decided: int, offset: int, most: int | None
):
    rules = Rules(offset=offset, spread=HOUR if offset else None, max_fires=most)
    places = [NOW + sum(widths[:n]) for n in range(len(widths) + 1)]
    through = NOW + decided

    counts = count_future_fires(trigger, rules, through, 0, places)

    found, at = [], through
    while (following := upcoming(trigger, rules, at)) is not None and following + offset < places[-1]:
        found.append(following + offset)
        at = following
        if len(found) == most:
            break
    assert counts == [sum(low <= one < high for one in found) for low, high in pairwise(places)]
