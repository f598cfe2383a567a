"""Packing: every packed string reads back."""

from hypothesis import given
from hypothesis import strategies as st

from horae.model.base.packing import Packed, pack

strings = st.lists(st.binary(max_size=20), min_size=1, max_size=30)


@given(strings, st.data())
def test_packed_parts_read_back(parts, data):
    packed = pack(parts)
    lo = data.draw(st.integers(0, len(parts)))
    hi = data.draw(st.integers(lo, len(parts)))

    assert len(packed) == len(parts)
    assert packed.part(lo, hi) == parts[lo:hi]


@given(strings)
def test_stored_packs_read_back(parts):
    packed = pack(parts)

    assert Packed(bytes(packed.ends), bytes(packed.blob)).part(0, len(parts)) == parts
    assert packed.blob == b"".join(parts)
    assert len(packed.ends) == (0 if len(parts) == 1 else 4 * len(parts))


def test_one_string_needs_no_table():
    assert pack([b"{}"]) == Packed(b"", b"{}")
    assert pack([b""]).part(0, 1) == [b""]
