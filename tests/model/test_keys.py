"""Keys of an envelope: what they say of the slices under them."""

from horae.model.admission.keys import KEYED, EnvelopeKeys, encode_keys, flags_of, keys_of


def test_an_envelope_without_keys_carries_nothing_and_its_slices_have_no_flags():
    assert encode_keys(EnvelopeKeys()) is None
    assert keys_of(None) == EnvelopeKeys()
    assert flags_of(None) == 0


def test_keys_are_read_as_they_were_written():
    keys = EnvelopeKeys(turn="turn:a", gated=True, limits=("limit:a", "limit:b"), sequence="sequence:c")

    assert keys_of(encode_keys(keys)) == keys


def test_keys_of_limits_and_sequences_are_locked_in_one_order():
    assert EnvelopeKeys(limits=("limit:a", "z"), sequence="sequence:c").guarded == ("limit:a", "sequence:c", "z")


def test_a_turn_frees_nothing_that_a_report_has_to_see_to():
    assert flags_of(encode_keys(EnvelopeKeys(turn="turn:a"))) == 0
    assert flags_of(encode_keys(EnvelopeKeys(limits=("limit:a",)))) == KEYED
    assert flags_of(encode_keys(EnvelopeKeys(sequence="sequence:a"))) == KEYED
