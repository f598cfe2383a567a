"""Ids: an execution's id contains its parcel, its index and its creation time."""

from itertools import islice
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from horae.env import uuid7
from horae.model.base.ids import execution_id, first_id_at, index_of, instant_of, parcel_id, parcel_ids, parcel_of

instants = st.integers(0, 2**47 * 1000)
indexes = st.integers(0, 0xFFFF)


@given(instants, indexes, st.integers())
def test_an_execution_id_contains_its_parcel_and_index(at, index, seed):
    parcel = parcel_id(uuid7(Random(seed))(at))
    id = execution_id(parcel, index)

    assert (parcel_of(id), index_of(id)) == (parcel, index)
    assert id.version == 7
    assert index_of(parcel) == 0
    assert parcel_of(parcel) == parcel


@given(instants, indexes, st.integers())
def test_an_id_contains_its_creation_time(at, index, seed):
    id = execution_id(parcel_id(uuid7(Random(seed))(at)), index)

    assert instant_of(id) == at // 1000 * 1000


@given(instants, st.integers(), st.integers(1, 100))
def test_parcels_created_together_have_adjacent_ids(at, seed, count):
    fresh = uuid7(Random(seed))
    ids = list(islice(parcel_ids(lambda: fresh(at)), count))

    assert len(set(ids)) == count
    assert ids == sorted(ids)
    assert {id.version for id in ids} == {7}
    assert {id.variant for id in ids} == {fresh(at).variant}
    assert all(parcel_of(id) == id and instant_of(id) == at // 1000 * 1000 for id in ids)


def test_an_exhausted_run_of_parcel_ids_is_followed_by_another():
    fresh = uuid7(Random(1))
    ids = list(islice(parcel_ids(lambda: fresh(1_800_000_000_000_000)), 70_000))

    assert len(set(ids)) == 70_000
    assert len({id.int >> 32 for id in ids}) == 2


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
def test_item_ids_are_ordered_by_index(seed, i, j):
    parcel = parcel_id(uuid7(Random(seed))(1_800_000_000_000_000))

    assert (execution_id(parcel, i) < execution_id(parcel, j)) == (i < j)
