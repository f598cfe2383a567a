"""Ids: an execution's says which parcel it travels in, at which place, and when it was made."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from horae.env import uuid7
from horae.model.ids import execution_id, first_id_at, index_of, instant_of, parcel_id, parcel_of

instants = st.integers(0, 2**47 * 1000)
indexes = st.integers(0, 0xFFFF)


@given(instants, indexes, st.integers())
def test_an_execution_names_its_parcel_and_its_place(at, index, seed):
    parcel = parcel_id(uuid7(Random(seed))(at))
    id = execution_id(parcel, index)

    assert (parcel_of(id), index_of(id)) == (parcel, index)
    assert id.version == 7
    assert index_of(parcel) == 0
    assert parcel_of(parcel) == parcel


@given(instants, indexes, st.integers())
def test_an_id_tells_when_it_was_made(at, index, seed):
    id = execution_id(parcel_id(uuid7(Random(seed))(at)), index)

    assert instant_of(id) == at // 1000 * 1000


@given(instants, st.integers())
def test_the_first_id_at_an_instant_bounds_all_that_follow(at, seed):
    fresh = uuid7(Random(seed))

    assert first_id_at(at) <= parcel_id(fresh(at))
    assert parcel_id(fresh(at)) < first_id_at(at + 1000)


@given(instants, instants, st.integers())
def test_ids_are_ordered_by_time(a, b, seed):
    fresh = uuid7(Random(seed))
    one, other = parcel_id(fresh(a)), parcel_id(fresh(b))

    if a // 1000 < b // 1000:
        assert one < other
        assert one.bytes < other.bytes


@given(st.integers(), indexes, indexes)
def test_items_are_ordered_by_place(seed, i, j):
    parcel = parcel_id(uuid7(Random(seed))(1_800_000_000_000_000))

    assert (execution_id(parcel, i) < execution_id(parcel, j)) == (i < j)
