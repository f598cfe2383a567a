"""Parcels: accepted items, the bounds of a parcel, and the round trip of every item."""

import json
from uuid import UUID

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from horae.errors import BadInput, TooLarge
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_ITEM,
    MAX_ITEMS,
    MAX_SPREAD,
    Envelope,
    check_item,
    encode_extras,
    extras_of,
    make_parcel,
    parcel_sizes,
)

ENVELOPE = Envelope(namespace=1, job=UUID(int=9), version=1, queue=1, lane=1, priority=4, due_at=0)
texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(texts, values, max_size=5), st.booleans())
def test_every_json_object_is_accepted(value, ascii_only):
    check_item(json.dumps(value, ensure_ascii=ascii_only).encode())


@given(values.filter(lambda v: v is not None and not isinstance(v, dict)))
def test_a_value_that_is_no_object_is_refused(value):
    with pytest.raises(BadInput, match="not a JSON object"):
        check_item(json.dumps(value).encode())


def test_absent_params_are_accepted():
    check_item(b"{}")
    check_item(b"null")


@given(st.binary(max_size=60))
@example(b"")
@example(b'{"a": "\xff"}')
@example(b'{"a": 1} {"b": 2}')
@example(b'{"a": 1e999}')
@example(b'{"a": "\\ud800"}')
@example(b"[" * 40)
@example(b'"' + b"[" * 100)
@example(b"\xef\xbb\xbf{}")
def test_any_input_is_accepted_or_refused_with_a_remedy(item):
    try:
        check_item(item)
    except BadInput:
        return
    assert item == b"null" or isinstance(json.loads(item.decode()), dict)


@pytest.mark.parametrize("item", [b'{"a": "\xff"}', b'{"a": "\xc3"}', b'{"\xed\xa0\x80": 1}', b"\x80"])
def test_broken_utf8_is_refused(item):
    with pytest.raises(BadInput, match="UTF-8"):
        check_item(item)


def nested(depth, opening="[", closing="]"):
    return f'{{"a":{opening * (depth - 1)}1{closing * (depth - 1)}}}'.encode()


@given(st.integers(1, 300), st.sampled_from([("[", "]"), ('{"b":', "}")]))
def test_depth_is_bounded(depth, brackets):
    item = nested(depth, *brackets)
    if depth <= MAX_DEPTH:
        check_item(item)
    else:
        with pytest.raises(BadInput, match="deeper"):
            check_item(item)


@pytest.mark.parametrize("depth", [10_000, MAX_ITEM // 2 - 9])
def test_great_depth_does_not_exhaust_the_stack(depth):
    with pytest.raises(BadInput, match="deeper"):
        check_item(nested(depth))


def test_brackets_in_strings_do_not_count_as_depth():
    check_item(json.dumps({"a": "[" * 500, "b": '"[' * 500, "c": "\\" * 99 + "[" * 99}).encode())
    check_item(json.dumps({"a": [[]] * 500}).encode())


def test_size_is_bounded():
    fits = b'{"a":"' + b"x" * (MAX_ITEM - 8) + b'"}'
    check_item(fits)
    with pytest.raises(TooLarge):
        check_item(fits + b" ")


@given(st.lists(st.integers(0, MAX_BYTES) | st.sampled_from([0, 1, MAX_BYTES, MAX_ITEM]), max_size=40))
def test_loads_cover_all_items_in_order_within_bounds(sizes):
    counts = parcel_sizes(sizes)

    assert sum(counts) == len(sizes)
    at = 0
    for count in counts:
        load = sizes[at : at + count]
        assert 1 <= count <= MAX_ITEMS
        assert sum(load) <= MAX_BYTES or count == 1
        assert count * max(load) <= MAX_SPREAD or count == 1
        if at + count < len(sizes):
            more = [*load, sizes[at + count]]
            assert count == MAX_ITEMS or sum(more) > MAX_BYTES or len(more) * max(more) > MAX_SPREAD
        at += count


@given(st.integers(0, 3 * MAX_ITEMS + 1))
def test_a_load_is_filled_before_the_next_begins(n):
    full, rest = divmod(n, MAX_ITEMS)
    assert parcel_sizes([10] * n) == [MAX_ITEMS] * full + ([rest] if rest else [])


def test_a_large_item_has_its_own_parcel():
    assert parcel_sizes([10, MAX_ITEM, 10]) == [1, 1, 1]


def test_a_large_item_does_not_make_its_neighbours_look_large():
    assert parcel_sizes([100] * 600 + [50_000] + [100] * 600) == [600, 10, 591]


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=20))
def test_a_parcel_keeps_its_items_byte_for_byte(items):
    parcel = make_parcel(UUID(int=1 << 16), ENVELOPE, items, [Extra()] * len(items), 5)

    assert len(parcel) == len(items)
    assert parcel.items.part(0, len(items)) == items


extras = st.builds(
    Extra,
    trace=st.none() | st.just("00-1"),
    tags=st.dictionaries(st.sampled_from("ab"), st.text(max_size=3), max_size=2),
    fire_at=st.none() | st.integers(0, 5),
    interval=st.none() | st.just((1, 2)),
)


@given(st.lists(extras, min_size=1, max_size=6), st.data())
def test_extras_read_back_item_by_item(given_extras, data):
    encoded = encode_extras(given_extras)

    lo = data.draw(st.integers(0, len(given_extras)))
    hi = data.draw(st.integers(lo, len(given_extras)))
    assert extras_of(encoded, lo, hi) == given_extras[lo:hi]


@given(st.lists(st.tuples(st.binary(max_size=30), extras), min_size=1, max_size=8), st.booleans())
def test_no_item_is_wider_in_an_answer_than_its_parcel_says(pairs, alike):
    given_extras = [pairs[0][1] if alike else extra for _, extra in pairs]
    parcel = make_parcel(UUID(int=1 << 16), ENVELOPE, [item for item, _ in pairs], given_extras, 5)

    widths = [len(item) + len(msgspec.json.encode(extra)) for (item, _), extra in zip(pairs, given_extras, strict=True)]
    assert max(widths) <= parcel.width + len(b"{}")
    assert parcel.width <= max(len(item) for item, _ in pairs) + max(
        len(msgspec.json.encode(extra)) for extra in given_extras
    )


def test_empty_extras_are_not_stored_and_equal_ones_once():
    assert encode_extras([Extra()] * 500) is None
    assert encode_extras([Extra(trace="t")] * 500) == msgspec.json.encode(Extra(trace="t"))


def test_equal_envelopes_share_a_parcel():
    again = msgspec.structs.replace(ENVELOPE)
    other = msgspec.structs.replace(ENVELOPE, priority=5)

    assert len({ENVELOPE, again, other}) == 2
