"""Errors for values that msgspec refuses, with the field and the accepted values."""

import json
import re
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from horae.errors import BadInput

OPENAPI = "See /openapi.json for the accepted values."

_AT = re.compile(r"^(?P<what>.*?)(?: - at `(?P<where>[^`]*)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"unknown field `(?P<field>[^`]*)`")
_MISSING = re.compile(r"missing required field `(?P<field>[^`]*)`")
_INDEX = re.compile(r"\[[^\]]*\]")


def validation_error(message: str, target: Any) -> BadInput:
    """Convert msgspec's message about a value of type `target` to an error with the field and advice."""
    found = _AT.match(message)
    what, where = (found["what"], found["where"] or "$") if found else (message, "$")
    field = where.removeprefix("$").removeprefix(".").replace("[...]", "")
    named = _UNKNOWN.search(what) or _MISSING.search(what)
    if named:
        field = f"{field}.{named['field']}" if field else named["field"]
    if _UNKNOWN.search(what):
        return BadInput(f"{field} is not a field of this request.", "Check its spelling.", field=field)
    shown = f"{field}: {what[:1].lower()}{what[1:]}" if field else what
    return BadInput(f"{shown}.", advice(target, field), field=field or "body")


def advice(target: Any, field: str) -> str:
    """Return advice for a field: its choices, its description or its bounds; else a hint at the OpenAPI document."""
    found: inspect.Type | None = _type_info(target)
    for name in filter(None, _INDEX.sub("", field).split(".")):
        found = _member(found, name)
    if found is None:
        return OPENAPI
    schema = found.extra_json_schema or {} if isinstance(found, inspect.Metadata) else {}
    inner = _inner(found)
    if isinstance(inner, inspect.LiteralType):
        return f"Choose one of: {', '.join(map(str, inner.values))}."
    if "description" in schema:
        example = "".join(f" For example: {json.dumps(one)}." for one in schema.get("examples", ())[:1])
        return f"{schema['description']}{example}"
    if isinstance(inner, inspect.IntType) and inner.ge is not None and inner.le is not None:
        return f"Use a value from {inner.ge} to {inner.le}."
    return OPENAPI


@cache
def _type_info(target: Any) -> inspect.Type:
    return msgspec.inspect.type_info(target)


def _member(of: inspect.Type | None, name: str) -> inspect.Type | None:
    struct = _inner(of)
    fields = struct.fields if isinstance(struct, inspect.StructType) else ()
    return next((_chosen(field.type) for field in fields if field.encode_name == name), None)


def _inner(field_type: inspect.Type | None) -> inspect.Type | None:
    """Return a type without its metadata, or the item type of a list."""
    field_type = _chosen(field_type)
    if isinstance(field_type, inspect.Metadata):
        return _inner(field_type.type)
    return _inner(field_type.item_type) if isinstance(field_type, inspect.ListType) else field_type


def _chosen(field_type: inspect.Type | None) -> inspect.Type | None:
    """Return the only type of a union besides null; return any other type unchanged."""
    if not isinstance(field_type, inspect.UnionType):
        return field_type
    others = [one for one in field_type.types if not isinstance(one, inspect.NoneType)]
    return others[0] if len(others) == 1 else field_type
