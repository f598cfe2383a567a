"""The SDK's generated methods match the routes and send all their fields."""

import inspect
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest

from horae.errors import HoraeError
from tests.client.fakes import client_of, ok
from tools.sdk.__main__ import SRC, files, parts, stale, unclaimed

DERIVED = [
    (f"horae.{'.'.join(path.relative_to(SRC).with_suffix('').parts)}", part.owner, name, route)
    for path in files()
    for part in parts(path.read_text())
    for route, name in part.routes
]
ANSWER = {"items": [], "name": "x"}


def test_generated_methods_match_the_routes():
    assert [str(path.relative_to(SRC)) for path in stale()] == [], "Run: python -m tools.sdk"


def test_every_route_has_a_class_or_is_excluded():
    assert unclaimed() == set()


def value(kind: Any) -> Any:
    """Return a value of a type that differs from the default."""
    origin, inner = get_origin(kind), [one for one in get_args(kind) if one is not NoneType]
    if inner == [bool]:
        return False
    if origin in (Union, UnionType):
        return value(timedelta if timedelta in inner else inner[0])
    if origin is Literal:
        return inner[0]
    if inspect.isclass(origin) and not issubclass(origin, dict):
        return [value(inner[0])]
    samples = {str: "x", int: 1, float: 1.5, bool: True, timedelta: timedelta(hours=1), Any: {}}
    return {} if origin is dict else datetime(2026, 11, 15, tzinfo=UTC) if kind is datetime else samples[kind]


@pytest.mark.parametrize(("module", "owner", "name", "route"), DERIVED, ids=[f"{d[1]}.{d[2]}" for d in DERIVED])
async def test_a_method_sends_all_fields_of_its_route(module, owner, name, route):
    client, transport, _ = client_of(ok(ANSWER))
    method = getattr(getattr(import_module(module), owner)(client._caller), name)
    taken = inspect.signature(method).parameters
    given = {one.name: value(one.annotation) for one in taken.values() if one.kind is not one.VAR_KEYWORD}

    with suppress(HoraeError):  # the answer has only these fields
        await method(**given)

    (call,) = transport.calls
    address = urlsplit(call.path)
    assert call.method == route.method
    assert re.fullmatch(re.sub(r"{\w+}", "x", route.path), address.path)
    asked = dict(parse_qsl(address.query))
    if route.query:
        read = msgspec.convert(asked, route.query, strict=False)
        assert {field.encode_name for field in msgspec.structs.fields(route.query)} == asked.keys(), read
    else:
        assert asked == {}
    if route.body is not None:
        route.body.decode(call.body or b"{}")
        kind = route.body_type
        if inspect.isclass(kind) and issubclass(kind, msgspec.Struct):
            sent = msgspec.json.decode(call.body).keys()
            assert {field.encode_name for field in msgspec.structs.fields(kind)} == sent
    assert ("if-match" in call.headers) == ("if_match" in taken)
