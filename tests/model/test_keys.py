"""The keys of an envelope, and the flags of slices that follow from them."""

from horae.model.admission.keys import KEYED, EnvelopeKeys, encode_keys, flags_of, keys_of


def test_an_envelope_without_keys_stores_nothing_and_sets_no_flags():
    assert encode_keys(EnvelopeKeys()) is None
    assert keys_of(None) == EnvelopeKeys()
    assert flags_of(None) == 0


def test_encoded_keys_read_back():
    keys = EnvelopeKeys(turn="turn:a", gated=True, limits=("limit:a", "limit:b"), sequence="sequence:c")

    assert keys_of(encode_keys(keys)) == keys


def test_keys_of_limits_and_sequences_are_locked_in_one_order():
    assert EnvelopeKeys(limits=("limit:a", "z"), sequence="sequence:c").guarded == ("limit:a", "sequence:c", "z")


def test_a_turn_sets_no_flag():
    assert flags_of(encode_keys(EnvelopeKeys(turn="turn:a"))) == 0
    assert flags_of(encode_keys(EnvelopeKeys(limits=("limit:a",)))) == KEYED
    assert flags_of(encode_keys(EnvelopeKeys(sequence="sequence:a"))) == KEYED
