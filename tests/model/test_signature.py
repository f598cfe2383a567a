"""Signatures: from a function to a decoder, a schema and a call."""

import enum
from dataclasses import dataclass
from datetime import UTC, date, datetime
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.errors import BadInput
from horae.model.definitions.function_signature import BadParams, signature_of

DEEP = b'{"a":' + b"[" * 100_000


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int = 0


def call(function, item, defaults=None, ctx=None):
    args, kwargs = signature_of(function).binder(defaults or {})(item, ctx)
    return function(*args, **kwargs)


def everything(*given, **named):
    return given, named


def plain(a, b=2):
    return a, b


def typed(day: date, point: Point, colour: Colour = Colour.RED, at: datetime | None = None):
    return day, point, colour, at


def implicit(x: int = None):  # noqa: RUF013
    return x


def mixed(a: int, /, b: int, *, c: int = 3):
    return a, b, c


def with_context(ctx, a: int = 1):
    return ctx, a


class Marked:
    __horae_context__ = True


this = SimpleNamespace(Marked=Marked)


def with_context_by_position(ctx, a: int, /, b: int):
    return ctx, a, b


def with_context_in_quotes(a: int, given: "this.Marked"):
    return given, a


def keyed(names: dict[int, str], /, day: date):
    return names, day


def keyed_and_open(names: dict[int, str], **others):
    return names, others


def open_ended(a: int, **others):
    return a, others


def listing(xs: list[int] = []):  # noqa: B006
    return xs


@pytest.mark.parametrize(
    ("function", "item", "result"),
    [
        (plain, b'{"a": 1}', (1, 2)),
        (plain, b'{"b": null, "a": [1]}', ([1], None)),
        (typed, b'{"day": "2026-11-15", "point": {"x": 4}}', (date(2026, 11, 15), Point(4), Colour.RED, None)),
        (
            typed,
            b'{"day":"2026-11-15","point":{"x":4,"y":5},"at":"2026-01-01T00:00:00Z"}',
            (date(2026, 11, 15), Point(4, 5), Colour.RED, datetime(2026, 1, 1, tzinfo=UTC)),
        ),
        (implicit, b"{}", None),
        (implicit, b'{"x": null}', None),
        (implicit, b"null", None),
        (mixed, b'{"a":1,"b":2}', (1, 2, 3)),
        (with_context, b'{"a":5}', ("the ctx", 5)),
        (with_context_by_position, b'{"a":5,"b":6}', ("the ctx", 5, 6)),
        (with_context_in_quotes, b'{"a":5}', ("the ctx", 5)),
        (keyed, b'{"names":{"1":"a"},"day":"2026-11-15"}', ({1: "a"}, date(2026, 11, 15))),
        (keyed_and_open, b'{"names":{"1":"a"},"z":2}', ({1: "a"}, {"z": 2})),
        (open_ended, b'{"a":1,"z":[2]}', (1, {"z": [2]})),
        (listing, b"{}", []),
    ],
)
def test_an_item_becomes_a_call(function, item, result):
    assert call(function, item, ctx="the ctx") == result


def test_the_jobs_params_are_defaults_of_an_item():
    assert call(plain, b'{"a": 1}', {"b": 9}) == (1, 9)
    assert call(plain, b"null", {"a": 8, "b": 9}) == (8, 9)
    assert call(open_ended, b'{"y": 1}', {"a": 8, "z": 9}) == (8, {"z": 9, "y": 1})
    assert call(typed, b"{}", {"day": "2026-11-15", "point": {"x": 1}})[0] == date(2026, 11, 15)
    assert call(keyed_and_open, b"{}", {"names": {"1": "a"}}) == ({1: "a"}, {})


def test_a_default_from_the_job_is_not_shared_between_calls():
    bind = signature_of(listing).binder({"xs": [1]})
    bind(b"{}", None)[0][0].append(2)

    assert bind(b"{}", None)[0][0] == [1]


@pytest.mark.parametrize(
    ("function", "item", "said"),
    [
        (plain, b"{}", "`a`"),
        (plain, b"null", "`a`"),
        (plain, b'{"a":1,"c":1}', "`c`"),
        (typed, b'{"day":"yesterday","point":{"x":1}}', "day"),
        (typed, b'{"day":"2026-11-15","point":{"x":"1"}}', r"point\.x"),
        (plain, b"[1]", "object"),
        (plain, b'{"a":', "JSON"),
        (open_ended, b'{"a":"x"}', "a"),
        pytest.param(plain, DEEP, "JSON", id="plain-deep"),
        pytest.param(open_ended, DEEP, "JSON", id="open-deep"),
        (plain, b'{"a":"\xff"}', "JSON"),
        (open_ended, b'{"a":"\xff"}', "JSON"),
    ],
)
def test_params_that_do_not_fit_are_named(function, item, said):
    with pytest.raises(BadParams, match=said):
        call(function, item)


def test_job_params_that_do_not_fit_are_named():
    with pytest.raises(BadParams, match="zz"):
        signature_of(plain).binder({"zz": 1})
    with pytest.raises(BadParams, match="day"):
        signature_of(typed).binder({"day": 5})


class Opaque:
    pass


def test_a_parameter_that_json_cannot_fill_is_refused():
    def odd(x: Opaque): ...

    def unresolved(x: "Nowhere"): ...  # noqa: F821

    def no_attribute(x: "datetime.Nowhere"): ...

    def no_expression(x: "an int"): ...  # noqa: F722

    for function in (odd, unresolved, everything, no_attribute, no_expression):
        with pytest.raises(BadInput):
            signature_of(function)


def test_the_schema_is_self_contained():
    schema = signature_of(typed).schema

    assert schema["required"] == ["day", "point"]
    assert schema["properties"]["day"] == {"type": "string", "format": "date"}
    assert schema["$defs"]["Point"]["properties"]["x"] == {"type": "integer"}
    assert schema["additionalProperties"] is False
    assert signature_of(open_ended).schema["additionalProperties"] is True
    assert "ctx" not in signature_of(with_context).schema["properties"]


@given(
    st.dictionaries(st.sampled_from(["a", "b"]), st.none() | st.booleans() | st.integers(-5, 5) | st.text(), min_size=2)
)
def test_untyped_params_arrive_as_they_were_sent(params):
    assert call(plain, msgspec.json.encode(params)) == (params["a"], params["b"])
