"""Placement: encoded needs read back; preferences are dropped in time, the lightest first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.model.admission.placement.placement import (
    PLAIN,
    Affinity,
    Cost,
    Preference,
    capacity_of,
    encode_needs,
    fits,
    read_needs,
    relax_needs,
    resolve_affinity,
    without_preferences,
)
from horae.model.definitions.job import Spec
from horae.model.definitions.tasks import CommandTask
from horae.model.fleet.protocol import Register
from horae.model.fleet.session import capabilities_of

names = st.sampled_from(["gpu", "memory", "zone", "disk/ssd", "a.b"])
amounts = st.dictionaries(names, st.integers(1, 1 << 40), max_size=3).map(lambda d: tuple(sorted(d.items())))
costs = st.builds(Cost, st.integers(1, 64), amounts)
preferences = st.lists(
    st.builds(
        Preference,
        label=st.sampled_from(["zone=eu", "zone=us", "ssd", "gpu=a100"]),
        weight=st.integers(1, 9),
        patience=st.integers(1, 1000),
    ),
    max_size=4,
    unique_by=lambda p: p.label,
)
affinities = st.none() | st.builds(Affinity, key=st.just("${params.k}"), patience=st.integers(1, 1000))


@given(costs, preferences, affinities, st.booleans(), st.sets(st.sampled_from(["kind:command", "ssd", "os=linux"])))
def test_encoded_needs_read_back(cost, prefers, affinity, spread, must):
    terms = read_needs(frozenset({*must, *encode_needs(cost, prefers, affinity, "job" if spread else "")}))

    assert terms.cost == cost
    assert sorted(terms.prefers, key=str) == sorted(prefers, key=str)
    assert terms.affinity == (affinity.patience if affinity else None)
    assert terms.spread == spread
    assert must <= terms.must
    assert {p.label for p in prefers} <= terms.must
    assert terms.is_temporary == bool(prefers or affinity)


def test_a_job_without_placement_has_the_plain_lane():
    spec = Spec(name="plain", task=CommandTask(argv=("true",)), needs=("ssd",))

    assert spec.lane_needs == spec.capabilities == ("kind:command", "ssd")
    assert read_needs(frozenset(spec.lane_needs)).cost == PLAIN


@given(costs, costs)
def test_a_worker_needs_the_capacity_of_a_lane(cost, size):
    offered = capabilities_of(
        Register(protocol=2, worker="w", concurrency=size.slots, resources=dict(size.resources), kinds=())
    )
    enough = size.slots >= cost.slots and all(dict(size.resources).get(n, 0) >= k for n, k in cost.resources)

    assert fits(read_needs(frozenset(encode_needs(cost))), offered) == (enough or not cost)
    assert capacity_of(offered) == {"slots": size.slots, **dict(size.resources)}


def test_a_worker_of_the_older_protocol_gets_only_single_slot_executions():
    old = capabilities_of(Register(protocol=1, worker="w", concurrency=8, kinds=()))

    assert fits(read_needs(frozenset(encode_needs(PLAIN))), old)
    assert not fits(read_needs(frozenset(encode_needs(Cost(2)))), old)


@given(costs, st.integers(0, 100), st.dictionaries(names, st.integers(0, 1 << 42)), st.integers(0, 5))
def test_executions_fit_while_no_resource_becomes_negative(cost, slots, room, more):
    count = cost.times(slots, room)

    assert count * cost.slots <= slots
    assert all(left >= 0 for left in cost.left_of(room, count).values())
    beyond = cost.left_of(room, count + 1 + more)
    assert (count + 1 + more) * cost.slots > slots or any(left < 0 for left in beyond.values())


@given(preferences, st.integers(0, 1200))
def test_a_preference_is_dropped_when_its_patience_is_over(prefers, waited):
    needs = frozenset({"kind:command", *encode_needs(PLAIN, prefers)})
    left = read_needs(relax_needs(needs, waited, lambda terms: True))

    assert {p.label for p in left.prefers} == {p.label for p in prefers if p.patience > waited}


@given(preferences, st.sets(st.sampled_from(["zone=eu", "zone=us", "ssd", "gpu=a100"])))
def test_the_lightest_preferences_are_dropped_until_a_worker_fits(prefers, carried):
    needs = frozenset(encode_needs(PLAIN, prefers))
    left = read_needs(relax_needs(needs, 0, lambda terms: terms.must <= carried)).prefers

    assert {p.label for p in left} <= carried
    given_up = [p for p in prefers if p not in left]
    assert all(p.weight <= kept.weight for p in given_up for kept in left)
    heaviest = max(given_up, key=lambda p: (p.weight, p.patience, p.label), default=None)
    if heaviest is not None:
        assert not {p.label for p in (*left, heaviest)} <= carried, "what could be had was kept"


def test_an_affinity_becomes_a_preference_for_the_last_worker():
    needs = frozenset({"kind:command", *encode_needs(Cost(2), (), Affinity(key="k", patience=7))})
    terms = read_needs(resolve_affinity(needs, "w1"))

    assert not fits(read_needs(needs), frozenset({"kind:command"})), "nobody takes it before it is looked up"
    assert [(p.label, p.patience) for p in terms.prefers] == [("worker=w1", 7)]
    assert resolve_affinity(needs, None) == without_preferences(needs) == {"kind:command", "cost:slots=2"}


@pytest.mark.parametrize(
    ("cost", "slots", "room", "times"),
    [
        (PLAIN, 3, {}, 3),
        (Cost(2), 3, {}, 1),
        (Cost(4), 3, {}, 0),
        (Cost(1, (("gpu", 1),)), 3, {}, 0),
        (Cost(1, (("gpu", 1),)), 3, {"gpu": 2}, 2),
    ],
)
def test_the_number_of_executions_that_fit(cost, slots, room, times):
    assert cost.times(slots, room) == times
