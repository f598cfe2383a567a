"""Virtual times between shares, and the choice between lanes."""

from heapq import heappop, heappush

from hypothesis import given, settings
from hypothesis import strategies as st

from bench.runs.trial import jain
from horae.model.admission.claim_plan import (
    ASSUMED_AMOUNT,
    LaneState,
    QueuePreferences,
    after_claim,
    is_plain,
    plan_claims,
)
from horae.model.admission.placement.placement import Cost
from horae.model.admission.placement.preempt import to_front
from horae.model.admission.policy import QUANTUM
from horae.model.admission.virtual_times import VirtualTimes


class Tenant:
    """A tenant that always has work, in parcels, with its own duration."""

    def __init__(self, name, weight, length):
        self.name, self.weight, self.length = name, weight, length
        self.got = 0.0


def run(tenants, *, slots, until, ahead=1, expects=True):
    """Fill slots by plans; the expected duration is learned from the first end, and corrected."""
    shares, running, now = VirtualTimes(), [], 0.0
    expected = {}
    free = slots * ahead
    count = 0
    while now < until:
        if free:
            shares.set_busy({t.name for t in tenants})
            views = [
                LaneState(
                    lane=i, share=t.name, virtual=shares.virtual(t.name), last_grant=shares.last_grant(t.name),
                    price=expected.get(t.name, 1.0) / t.weight,
                )
                for i, t in enumerate(tenants)
            ]  # fmt: skip
            for turn in plan_claims(views, free):
                tenant = tenants[turn.lane.lane]
                charged = expected.get(tenant.name, 1.0)
                shares.charge(tenant.name, turn.most * charged / tenant.weight)
                for _ in range(turn.most):
                    count += 1
                    heappush(running, (now + tenant.length * ahead, count, tenant, charged))
            free = 0
        now, _, tenant, charged = heappop(running)
        tenant.got += tenant.length
        shares.correct(tenant.name, (tenant.length - charged) / tenant.weight)
        if expects:
            expected[tenant.name] = tenant.length
        free += 1
    return jain([t.got / t.weight for t in tenants])


def test_weighted_tenants_get_their_part_of_the_worker_time():
    tenants = [Tenant(str(w), w, 1.0) for w in range(1, 11)]

    assert run(tenants, slots=20, until=400) >= 0.98


def test_executions_that_last_a_hundred_times_as_long_get_no_more_time():
    tenants = [Tenant(str(w), w, 0.05 if w % 2 else 5.0) for w in range(1, 5)]

    assert run(tenants, slots=8, until=150) >= 0.98


def test_unexpected_durations_are_corrected_at_the_end():
    tenants = [Tenant(str(w), w, 0.05 if w % 2 else 5.0) for w in range(1, 5)]

    assert run(tenants, slots=8, until=400, expects=False) >= 0.98


@given(st.lists(st.integers(1, 10), min_size=2, max_size=8), st.integers(1, 2000))
def test_a_plan_fills_the_room_and_no_share_is_a_quantum_ahead(weights, room):
    views = [LaneState(lane=i, share=str(i), price=1 / w) for i, w in enumerate(weights)]

    turns = {turn.lane.lane: turn.most for turn in plan_claims(views, room)}

    assert sum(turns.values()) == room
    had = [turns.get(i, 0) / w for i, w in enumerate(weights)]
    assert max(had) - min(had) <= max(QUANTUM / w for w in weights) + 1e-9  # rounding


@given(st.lists(st.integers(0, 50), min_size=1, max_size=8), st.integers(1, 300))
def test_a_plan_takes_no_more_of_a_lane_than_it_holds(amounts, room):
    views = [LaneState(lane=i, share=str(i), amount=n, price=1.0) for i, n in enumerate(amounts)]

    turns = {turn.lane.lane: turn.most for turn in plan_claims(views, room)}

    assert sum(turns.values()) == min(room, sum(amounts))
    assert all(turns.get(i, 0) <= n for i, n in enumerate(amounts))


def test_preempting_items_go_first_whatever_their_share():
    views = [
        LaneState(lane=1, share="light", low=5, amount=40, price=1.0),
        LaneState(lane=2, share="heavy", low=to_front(900), amount=40, price=1.0, virtual=1e9),
        LaneState(lane=3, share="heavy", low=1, amount=40, price=1.0, virtual=1e9),
    ]

    assert [(turn.lane.lane, turn.most) for turn in plan_claims(views, 1)] == [(2, 1)]
    assert [(turn.lane.lane, turn.most) for turn in plan_claims(views, 3)] == [(2, 1), (1, 2)]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 99)), min_size=1, max_size=12), st.integers(1, 60))
def test_the_lanes_of_a_share_are_served_by_rank(lanes, room):
    views = [LaneState(lane=i, share=s, low=low, amount=4, price=1.0) for i, (s, low) in enumerate(lanes)]

    turns = [turn.lane for turn in plan_claims(views, room)]

    for share in "abc":
        taken = [view.low for view in turns if view.share == share]
        rest = [view.low for view in views if view.share == share and view not in turns]
        assert taken == sorted(taken)
        assert not taken or not rest or max(taken) <= min(rest)


def test_a_share_returning_from_a_pause_starts_at_the_current_level():
    shares = VirtualTimes()
    shares.set_busy({"busy", "light"})
    for _ in range(100):
        shares.set_busy({"busy"})
        shares.charge("busy", 16.0)

    shares.set_busy({"busy", "light"})

    assert shares.virtual("busy") - 32 <= shares.virtual("light") < shares.virtual("busy")


def test_a_share_that_was_idle_for_a_moment_is_listed_once():
    shares = VirtualTimes()
    shares.set_busy({"a", "b"})
    shares.mark_idle("a")
    shares.mark_busy("a")

    assert sorted(shares.in_order()) == ["a", "b"]
    assert sorted(shares.in_order()) == ["a", "b"]


def test_service_without_competition_is_not_held_against_a_share():
    """A tenant served alone at night has no debt in the morning."""
    shares = VirtualTimes()
    shares.set_busy({"night"})
    shares.charge("night", 1e9)
    shares.set_busy(set())

    shares.set_busy({"new"})
    shares.charge("new", 1.0)
    shares.set_busy({"new", "night"})

    assert abs(shares.virtual("new") - shares.virtual("night")) <= 1.0


@given(st.integers(1, 40), st.integers(1, 64))
@settings(max_examples=30)
def test_a_newcomer_is_served_within_the_next_quantum(others, room):
    shares = VirtualTimes()
    names = {str(i) for i in range(others)}
    for _ in range(5):
        shares.set_busy(names)
        for name in names:
            shares.charge(name, 3.0)
    shares.set_busy(names)
    shares.set_busy({*names, "new"})

    views = [
        LaneState(lane=i, share=n, virtual=shares.virtual(n), last_grant=shares.last_grant(n), price=1.0)
        for i, n in enumerate([*sorted(names), "new"])
    ]

    assert plan_claims(views, room)[0].lane.share == "new"


def test_reserved_slots_are_filled_first():
    views = [
        LaneState(lane=1, share="batch", virtual=0.0, price=0.1),
        LaneState(lane=2, share="acme", virtual=50.0, price=1.0, owed=3),
    ]

    first, second = plan_claims(views, 10)

    assert (first.lane.share, first.most) == ("acme", 3)
    assert (second.lane.share, second.most) == ("batch", 7)


def test_an_execution_fills_as_many_reserved_slots_as_it_takes():
    large = LaneState(lane=2, share="acme", virtual=50.0, price=1.0, owed=5, cost=Cost(slots=2))
    views = [LaneState(lane=1, share="batch", virtual=0.0, price=0.1), large]

    assert [claim.most for claim in plan_claims(views, 10)] == [3, 7]
    assert after_claim(large, 2, 0).owed == 1


def test_the_virtual_times_of_many_idle_shares_are_forgotten():
    shares = VirtualTimes()
    for i in range(30_000):
        shares.set_busy({i})
        shares.charge(i, 1.0)

    assert len(shares._had) <= 10_010


def queue_views(*amounts):
    return [LaneState(lane=q, queue=q, low=0, amount=n) for q, n in enumerate(amounts)]


def test_a_worker_with_weights_lets_no_queue_starve():
    taste = QueuePreferences({0: 5.0, 1: 1.0})
    got = [0, 0]
    for _ in range(60):
        taste.virtual_times.set_busy({0, 1})
        for turn in plan_claims(queue_views(ASSUMED_AMOUNT, ASSUMED_AMOUNT), 4, taste):
            got[turn.lane.queue] += turn.most
            taste.virtual_times.charge(turn.lane.queue, turn.most * taste.price(turn.lane.queue, 1.0))

    assert sum(got) == 240
    assert abs(got[0] - 200) <= QUANTUM


def test_a_worker_with_an_order_serves_the_next_queue_only_when_the_first_is_empty():
    taste = QueuePreferences({1: 1.0, 0: 1.0}, strict=True)

    turns = [(turn.lane.queue, turn.most) for turn in plan_claims(queue_views(ASSUMED_AMOUNT, 3), 10, taste)]

    assert turns == [(1, 3), (0, 7)]


def test_lanes_without_shares_are_served_by_rank():
    assert is_plain(queue_views(1, 2), None)
    assert not is_plain(queue_views(1, 2), QueuePreferences({0: 1.0, 1: 1.0}))
    assert not is_plain([LaneState(lane=1, share="")], None)
