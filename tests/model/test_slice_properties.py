"""Splitting and merging: no item is lost, doubled or hit twice, whatever is named in whatever order."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from horae.model.executions.slice import ItemRange, gaps, match_ranges, merge, part
from tests.model.making import JOBS, PARCELS, cuts, items, queued, running, waiting


@st.composite
def holdings(draw):
    """Generate the slices of one session: without overlap, of several parcels and attempts."""
    return [
        running(parcel, lo, hi, attempt=draw(st.integers(1, 2)))
        for parcel in PARCELS[: draw(st.integers(1, 2))]
        for lo, hi in draw(cuts())
    ]


spans = st.builds(
    lambda parcel, lo, size, attempt: ItemRange(parcel, lo, lo + size, attempt),
    st.sampled_from(PARCELS), st.integers(0, 26), st.integers(0, 26), st.integers(1, 3),
)  # fmt: skip


def named(span):
    return {(span.parcel, item, span.attempt) for item in range(span.lo, span.hi)}


def held_items(slices):
    return {(s.parcel, item, s.attempt) for s in slices for item in range(s.lo, s.hi)}


@given(holdings(), st.lists(spans, max_size=6))
@example([running(lo=0, hi=10)], [ItemRange(PARCELS[0], 0, 10, 1), ItemRange(PARCELS[0], 0, 10, 1)])
@example([running(lo=0, hi=10)], [ItemRange(PARCELS[0], 3, 5, 1), ItemRange(PARCELS[0], 0, 10, 1)])
def test_each_named_item_is_hit_once_by_the_first_span_that_names_it(held, spans):
    matched = match_ranges(held, spans)

    expected = {}
    for index, span in enumerate(spans):
        for item in named(span) & held_items(held):
            expected.setdefault(item, index)
    hits = [((s.parcel, item, s.attempt), index) for s, index, lo, hi in matched.hits for item in range(lo, hi)]
    assert len(hits) == len(dict(hits))
    assert dict(hits) == expected


@given(holdings(), st.lists(spans, max_size=6))
def test_items_without_a_hit_remain_or_are_missed(held, spans):
    matched = match_ranges(held, spans)

    hit = {(s.parcel, item, s.attempt) for s, _, lo, hi in matched.hits for item in range(lo, hi)}
    left = [item for s in matched.remaining for item in held_items([s])]
    assert len(left) == len(set(left))
    assert set(left) == held_items(matched.touched) - hit
    assert {(s.parcel, s.lo) for s in matched.touched} == {(s.parcel, s.lo) for s, _, _, _ in matched.hits}
    missed = sorted(item for span in matched.missed for item in named(span))
    taken = sum(hi - lo for _, _, lo, hi in matched.hits)
    assert len(missed) + taken == sum(len(named(span)) for span in spans)


@given(holdings(), st.lists(spans, max_size=6))
def test_a_hit_is_within_its_slice_and_its_span(held, spans):
    matched = match_ranges(held, spans)

    for slice, index, lo, hi in matched.hits:
        assert slice in held
        assert max(slice.lo, spans[index].lo) <= lo < hi <= min(slice.hi, spans[index].hi)
        assert (slice.parcel, slice.attempt) == (spans[index].parcel, spans[index].attempt)
    for slice in matched.remaining:
        whole = next(s for s in matched.touched if s.parcel == slice.parcel and s.lo <= slice.lo < s.hi)
        assert slice == part(whole, slice.lo, slice.hi)


@given(holdings(), st.lists(spans, max_size=6), st.data())
def test_two_reports_equal_one_report(held, spans, data):
    cut = data.draw(st.integers(0, len(spans)))
    together = match_ranges(held, spans)

    first = match_ranges(held, spans[:cut])
    untouched = [s for s in held if s not in first.touched]
    second = match_ranges([*untouched, *first.remaining], spans[cut:])

    assert held_items(part(s, lo, hi) for s, _, lo, hi in together.hits) == held_items(
        part(s, lo, hi) for m in (first, second) for s, _, lo, hi in m.hits
    )


def test_an_older_attempt_matches_nothing():
    matched = match_ranges([running(lo=0, hi=4, attempt=2)], [ItemRange(PARCELS[0], 0, 4, 1)])

    assert (matched.hits, matched.touched, matched.remaining) == ([], [], [])
    assert matched.missed == [ItemRange(PARCELS[0], 0, 4, 1)]


def test_a_reversed_span_hits_nothing():
    matched = match_ranges([running(lo=0, hi=10)], [ItemRange(PARCELS[0], 5, 3, 1)])

    assert (matched.hits, matched.missed) == ([], [])


@pytest.mark.timeout(10)  # well under a second; minutes if every span were compared with every piece
def test_a_report_of_many_scattered_items_is_fast():
    count = 20_000
    spans = [ItemRange(PARCELS[0], item, item + 1, 1) for item in range(0, 2 * count, 2)]

    matched = match_ranges([running(lo=0, hi=2 * count)], spans[::-1])

    assert (len(matched.hits), len(matched.remaining)) == (count, count)


@given(st.integers(0, 20), st.integers(0, 20), cuts())
def test_gaps_are_the_uncovered_ranges(lo, hi, taken):
    holes = gaps(lo, hi, taken)

    free = set(range(lo, hi)) - {i for a, b in taken for i in range(a, b)}
    assert [i for a, b in holes for i in range(a, b) if lo <= i < hi] == sorted(free)
    assert all(a < b for a, b in holes)


@st.composite
def fragments(draw, make):
    """Generate adjacent slices with a few different states."""
    return [
        make(
            parcel,
            lo,
            hi,
            attempt=draw(st.integers(1, 2)),
            losses=draw(st.integers(0, 2)),
            job=draw(st.sampled_from(JOBS)),
        )
        for parcel in PARCELS[:2]
        for lo, hi in draw(cuts())
    ]


@given(st.sampled_from([queued, waiting, running]).flatmap(fragments))
def test_merging_keeps_every_item_and_its_fate(slices):
    merged = merge(slices)

    def fates(slices):
        return sorted((s.parcel, item, s.attempt, s.losses, s.job) for s in slices for item in range(s.lo, s.hi))

    assert fates(merged) == fates(slices)
    assert len(merged) <= len(slices)


@given(st.sampled_from([queued, waiting]).flatmap(fragments))
def test_merging_leaves_no_neighbours_of_equal_fate(slices):
    merged = merge(slices)

    for a, b in pairwise(merged):
        alike = (a.attempt, a.losses, a.job) == (b.attempt, b.losses, b.job)
        assert not (a.parcel == b.parcel and a.hi == b.lo and alike)
    assert merge(merged) == merged


def test_only_neighbours_with_the_same_wake_up_are_merged():
    apart = [waiting(lo=0, hi=2, wake_at=5), waiting(lo=2, hi=4, wake_at=6), waiting(lo=5, hi=6, wake_at=6)]
    assert merge(apart) == apart

    assert merge([waiting(lo=2, hi=4, wake_at=5), waiting(lo=0, hi=2, wake_at=5)]) == [waiting(lo=0, hi=4, wake_at=5)]


def test_the_full_part_is_the_slice_itself():
    slice = running(lo=2, hi=9)

    assert part(slice, 2, 9) is slice
    assert items(part(slice, 3, 5)) == {(PARCELS[0], 3), (PARCELS[0], 4)}
