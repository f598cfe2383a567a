"""Dealing: dealt and remaining items add up, and no request exceeds its room."""

from collections import Counter
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from horae.model.admission.placement.placement import Cost
from horae.model.fleet.deal import GRANT_BYTES, WorkRequest, capacity, deal
from horae.model.fleet.protocol import MAX_EXCHANGE
from horae.model.fleet.suspects import SessionSuspects, is_suspect, most_suspects
from tests.model.making import JOBS, PARCELS, cuts, items, queued

SESSIONS = [UUID(int=n) for n in range(1, 6)]


widths = st.sampled_from([0, 20, 50_000, 300_000, 1_048_576])


@st.composite
def offers(draw):
    """Generate queued slices in some order."""
    return [
        queued(
            parcel, lo, hi, job=draw(st.sampled_from(JOBS)), width=draw(widths),
            losses=draw(st.sampled_from([0, 0, 0, 1, 2, 3])),
        )
        for parcel in PARCELS
        for lo, hi in draw(cuts())
    ]  # fmt: skip


@st.composite
def appetites(draw):
    """Generate the requests of waiting exchanges."""
    return [
        WorkRequest(
            session=session, channel=0, n=1, free=draw(st.integers(0, 12)), load=draw(st.sampled_from([0.0, 0.5, 1.0])),
            prefetch=draw(st.dictionaries(st.sampled_from(JOBS), st.integers(0, 30), max_size=2)),
            company=SessionSuspects(slots=12, held=draw(st.integers(0, 6)), losses=draw(st.integers(0, 3))),
            size=draw(st.sampled_from([0, 0, 1000, MAX_EXCHANGE - 1000, MAX_EXCHANGE])),
        )
        for session in SESSIONS[: draw(st.integers(0, 5))]
    ]  # fmt: skip


@given(offers(), appetites())
def test_dealt_and_remaining_items_are_all_items(slices, wants):
    done = deal(slices, wants)

    dealt = [(d.slice.parcel, item) for d in done.dealt for item in range(d.lo, d.hi)]
    assert len(dealt) == len(set(dealt))
    whole = {item for s in done.whole for item in items(s)}
    cut = {(s.parcel, item) for s, rest in done.cut for item in range(s.lo, rest)}
    assert set(dealt) == whole | cut
    assert not whole & cut
    assert all(s.lo < rest < s.hi for s, rest in done.cut)


@given(offers(), appetites())
def test_a_slice_is_taken_from_its_front(slices, wants):
    for s in slices:
        ranges = sorted((d.lo, d.hi) for d in deal(slices, wants).dealt if d.slice is s)
        at = s.lo
        for lo, hi in ranges:
            assert lo == at
            at = hi


@given(offers(), appetites())
def test_no_request_gets_more_than_its_room(slices, wants):
    done = deal(slices, wants)

    assert sum(d.hi - d.lo for d in done.dealt) <= capacity(wants)
    for i, want in enumerate(wants):
        got = Counter()
        for d in done.dealt:
            if d.want == i:
                got[d.slice.job] += d.hi - d.lo
        beyond = sum(max(0, n - want.prefetch.get(job, 0)) for job, n in got.items())
        assert beyond <= want.free


@given(offers(), appetites())
def test_suspects_are_bounded_by_session_and_idle_slots(slices, wants):
    done = deal(slices, wants)

    for i, want in enumerate(wants):
        suspects = [d for d in done.dealt if d.want == i and is_suspect(d.slice.losses)]
        count = sum(d.hi - d.lo for d in suspects)
        assert count <= want.free
        if suspects:
            worst = max(want.company.losses, *(d.slice.losses for d in suspects), 0)
            assert want.company.held + count <= most_suspects(worst, want.company.slots)
            assert done.wants[i].company == structs.replace(want.company, held=want.company.held + count, losses=worst)
        else:
            assert done.wants[i].company == want.company


def test_a_session_with_unknown_suspects_gets_none():
    want = WorkRequest(session=SESSIONS[0], channel=0, n=1, free=9)
    assert deal([queued(PARCELS[0], 0, 4, losses=2)], [want]).dealt == []


@given(offers(), appetites())
def test_no_item_is_left_while_a_request_has_room(slices, wants):
    """Slots are not wasted: no request has room for a remaining item."""
    plain = [s for s in slices if not is_suspect(s.losses)]
    done = deal(plain, wants)

    whole = {(s.parcel, s.lo) for s in done.whole}
    left = [s for s in plain if (s.parcel, s.lo) not in whole]
    if left:
        assert all(want.full or want.free == 0 for want in done.wants)


@given(offers(), appetites())
def test_only_a_single_item_can_exceed_the_size_of_an_exchange(slices, wants):
    done = deal(slices, wants)

    for i, want in enumerate(wants):
        mine = [d for d in done.dealt if d.want == i]
        size = want.size + sum(GRANT_BYTES + (d.hi - d.lo) * (d.slice.width + 1) for d in mine)
        alone = not want.size and [d.hi - d.lo for d in mine] == [1]
        assert size <= MAX_EXCHANGE or alone or not mine
        assert done.wants[i].size == size


@given(offers(), appetites())
def test_an_empty_answer_takes_at_least_one_item(slices, wants):
    """All items are granted in the end, whatever their sizes."""
    plain = [s for s in slices if not is_suspect(s.losses)]
    able = [i for i, want in enumerate(wants) if want.free and not want.size]
    done = deal(plain, [wants[i] for i in able])

    if plain and able:
        assert any(d.slice is plain[0] for d in done.dealt)


@given(offers(), appetites())
def test_large_items_are_not_overtaken(slices, wants):
    """When an item is too large for an answer, no later item enters that answer."""
    plain = [s for s in slices if not is_suspect(s.losses)]
    done = deal(plain, wants)

    whole = {(s.parcel, s.lo) for s in done.whole}
    first_left = next((i for i, s in enumerate(plain) if (s.parcel, s.lo) not in whole), len(plain))
    for d in done.dealt:
        behind = next(i for i, s in enumerate(plain) if s is d.slice) > first_left
        assert not behind or wants[d.want].free == 0 or done.wants[d.want].free == 0


@given(offers(), appetites())
def test_the_remaining_request_is_reduced_by_the_grants(slices, wants):
    done = deal(slices, wants)

    for i, (before, after) in enumerate(zip(wants, done.wants, strict=True)):
        got = sum(d.hi - d.lo for d in done.dealt if d.want == i)
        room = before.free + sum(before.prefetch.values())
        assert after.free + sum(after.prefetch.values()) == room - got
        assert after.free >= 0
        assert all(k >= 0 for k in after.prefetch.values())
        assert (after.session, after.channel, after.n) == (before.session, before.channel, before.n)


def test_capacity_includes_prefetch_for_the_given_jobs():
    taker = want(0, 2, prefetch={JOBS[0]: 3, JOBS[1]: 5})

    assert capacity([taker]) == 10
    assert capacity([taker], frozenset({JOBS[1]})) == 7
    assert capacity([taker], frozenset()) == 2
    assert capacity([want(0, 2, full=True)]) == 0


@given(offers(), appetites())
def test_dealing_is_pure(slices, wants):
    assert deal(slices, wants) == deal(slices, wants)


def want(n, free, load=0.0, **more):
    return WorkRequest(session=SESSIONS[n], channel=0, n=1, free=free, load=load, **more)


def shares(slices, wants):
    got = Counter()
    for d in deal(slices, wants).dealt:
        got[d.want] += d.hi - d.lo
    return [got[i] for i in range(len(wants))]


def test_shares_are_even():
    assert shares([queued(lo=0, hi=12)], [want(0, 10), want(1, 10), want(2, 10)]) == [4, 4, 4]
    assert shares([queued(lo=0, hi=12)], [want(0, 10), want(1, 1), want(2, 10)]) == [7, 1, 4]


def test_the_least_loaded_is_served_first():
    assert shares([queued(lo=0, hi=1)], [want(0, 10, 0.5), want(1, 10, 0.1), want(2, 10, 0.9)]) == [0, 1, 0]
    assert shares([queued(lo=0, hi=1)], [want(0, 1), want(1, 8)]) == [0, 1]


@given(st.integers(1, 5), st.integers(0, 60))
def test_equal_requests_differ_by_the_remainder_at_most(n, size):
    wants = [want(i, 100) for i in range(n)]
    got = shares([queued(lo=0, hi=size)], wants) if size else [0] * n

    fair = -(-size // n)
    assert sum(got) == size
    assert all(k <= fair for k in got)


def test_prefetch_is_for_its_job_alone():
    taker = want(0, 1, prefetch={JOBS[0]: 3})

    assert shares([queued(lo=0, hi=9, job=JOBS[0])], [taker]) == [4]
    assert shares([queued(lo=0, hi=9, job=JOBS[1])], [taker]) == [1]


def test_lower_ranks_go_first():
    first, second = queued(PARCELS[0], 0, 3, rank=1), queued(PARCELS[1], 0, 3, rank=2)
    done = deal([first, second], [want(0, 4)])

    assert done.whole == [first]
    assert done.cut == [(second, 1)]


costs = st.builds(
    Cost,
    st.integers(1, 4),
    st.dictionaries(st.sampled_from(["gpu", "memory"]), st.integers(1, 9)).map(lambda d: tuple(sorted(d.items()))),
)


@st.composite
def roomy(draw):
    """Generate the same with resources besides slots."""
    return [
        structs.replace(want, room=draw(st.dictionaries(st.sampled_from(["gpu", "memory"]), st.integers(0, 30))))
        for want in draw(appetites())
    ]


@given(offers(), roomy(), costs)
def test_no_request_exceeds_its_resources(slices, wants, cost):
    done = deal(slices, wants, cost)

    for i, (before, after) in enumerate(zip(wants, done.wants, strict=True)):
        got = sum(d.hi - d.lo for d in done.dealt if d.want == i)
        if not cost:
            continue
        assert got <= cost.times(before.free, before.room)
        assert after.free == before.free - got * cost.slots
        assert all(
            after.room[name] == before.room.get(name, 0) - got * amount for name, amount in cost.resources if got
        )
        assert after.prefetch == before.prefetch, "nothing of what takes more than a slot is fetched ahead"


@given(offers(), roomy(), costs)
def test_no_item_is_left_while_slots_and_resources_suffice(slices, wants, cost):
    plain = [s for s in slices if not is_suspect(s.losses)]
    done = deal(plain, wants, cost)

    whole = {(s.parcel, s.lo) for s in done.whole}
    if any((s.parcel, s.lo) not in whole for s in plain):
        assert all(want.full or cost.times(want.free, want.room) == 0 for want in done.wants)
        assert capacity([want for want in done.wants if not want.prefetch], None, cost) == 0


@given(offers(), appetites(), st.dictionaries(st.sampled_from(SESSIONS), st.integers(0, 5)))
def test_a_spread_job_fills_each_session_up_to_its_bound(slices, wants, most):
    twice = [*wants, *(structs.replace(want, channel=1) for want in wants)]
    got = Counter()
    for d in deal(slices, twice, most=most).dealt:
        got[twice[d.want].session] += d.hi - d.lo

    assert all(count <= most.get(session, 0) for session, count in got.items())


def test_nothing_is_prefetched_past_a_better_ranked_item_without_room():
    urgent, near, far = (queued(parcel, 0, 1, job=JOBS[i > 0], rank=i * 600_000) for i, parcel in enumerate(PARCELS))
    want = WorkRequest(session=SESSIONS[0], channel=0, n=1, free=0, prefetch={JOBS[1]: 9})

    assert [d.slice for d in deal([urgent, near, far], [want]).dealt] == [near]
    assert [d.slice for d in deal([urgent, near, far], [structs.replace(want, free=1)]).dealt] == [urgent, near, far]
    assert [d.slice for d in deal([structs.replace(urgent, losses=2), near, far], [want]).dealt] == [near, far]
