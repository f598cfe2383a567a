"""The gate: every admitted item has room under all its keys, and no item is lost."""

from itertools import pairwise
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from horae.model.admission.key_gate import GateEntry, KeyState, pass_gate
from horae.model.admission.keys import EnvelopeKeys
from horae.model.executions.slice import WaitingSlice

KEYS = ("limit:a", "limit:b", "limit:c")


def entry(number: int, size: int, keys: EnvelopeKeys) -> GateEntry:
    parcel = UUID(int=number << 16)
    slice = WaitingSlice(parcel=parcel, lo=0, hi=size, job=UUID(int=1), queue=1, namespace=1, reason="delay")
    return GateEntry(slice, keys, lane=1, rank=number)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.sets(st.sampled_from(KEYS), min_size=1)), max_size=8),
    st.dictionaries(st.sampled_from(KEYS), st.integers(-2, 12)),
)
def test_no_key_admits_more_than_its_room_and_no_item_is_lost(wanted, rooms):
    stands = {key: KeyState(room=rooms.get(key, 5)) for key in KEYS}
    before = {key: stand.room for key, stand in stands.items()}
    entries = [entry(i, size, EnvelopeKeys(limits=tuple(sorted(keys)))) for i, (size, keys) in enumerate(wanted, 1)]

    passed = pass_gate(entries, stands, 0)

    keys_of = {one.slice.parcel: one.keys.limits for one in entries}
    for key in KEYS:
        used = sum(s.hi - s.lo for s in passed.queued if key in keys_of[s.parcel])
        assert used <= max(0, before[key])
        assert stands[key].room == before[key] - used
    for one in entries:
        pieces = sorted((s.lo, s.hi) for s in (*passed.queued, *passed.waiting) if s.parcel == one.slice.parcel)
        assert pieces[0][0] == 0
        assert pieces[-1][1] == one.slice.hi
        assert all(a[1] == b[0] for a, b in pairwise(pieces))
    assert all(w.gate in keys_of[w.parcel] and stands[w.gate].room <= 0 for w in passed.waiting)


def test_a_sequence_admits_one_item_at_a_time_in_order():
    keys = EnvelopeKeys(sequence="sequence:a")
    first, second = entry(1, 3, keys), entry(2, 1, keys)

    passed = pass_gate([first, second], {"sequence:a": KeyState()}, 0)

    assert [(s.parcel, s.lo, s.hi) for s in passed.queued] == [(first.slice.parcel, 0, 1)]
    assert [(w.parcel, w.lo, w.hi, w.reason) for w in passed.waiting] == [
        (first.slice.parcel, 1, 3, "sequence"),
        (second.slice.parcel, 0, 1, "sequence"),
    ]


def test_new_entries_do_not_overtake_woken_ones():
    one = entry(1, 1, EnvelopeKeys(limits=("limit:a",)))
    assert pass_gate([one], {"limit:a": KeyState(room=1, has_woken=True)}, 0, fresh=True).queued == []
    assert len(pass_gate([one], {"limit:a": KeyState(room=1, has_woken=True)}, 0).queued) == 1
