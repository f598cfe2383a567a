"""Bodies that workers send: unknown fields are ignored, unless they look like a mistake.

A worker may be newer than its server, so an unknown field is no error. But a field that resembles a known field is
refused, because a misspelt field would silently lose a result. With `Horae-Strict: 1` every unknown field is refused.
"""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Raw, Struct

from horae.errors import BadInput, OutcomeRefused
from horae.model.fleet.protocol import Exchange, Outcome
from horae.server.reading.bodies import MIB, decode

STRICT = b"horae-strict"
INSTALLATION = b"horae-installation"  # the installation that a worker is registered with
ALIKE = 0.8  # least ratio of difflib: "resutls" resembles "results", "temperature" no field
SYNONYMS = frozenset({  # words by which a worker may mean the field "results" or "result"
    "output", "outputs", "value", "values", "return", "returns", "returned", "returnvalue", "retval", "data",
    "payload", "answer", "response", "body",
})  # fmt: skip
SHORTEST = 3  # letters that the beginning of a field's name must have to count as its abbreviation
MOST_SEARCHED = MIB  # the largest body in which a faulty outcome is searched for
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_OUTCOME = msgspec.json.Decoder(Outcome)


def decode_worker_body(body: bytes, decoder: msgspec.json.Decoder[Any], *, strict: bool) -> Any:
    """Return a worker's body as a value. Raises OutcomeRefused with an index if one outcome is at fault."""
    try:
        return _closed_decoder(decoder.type).decode(body or b"{}")  # type: ignore[arg-type]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:
        value = decode(body, decoder)
        _refuse_unknown(body, decoder.type, strict=strict)
    except BadInput as error:
        raise _of_outcome(body, decoder.type, error, strict=strict) from None
    return value


def _refuse_unknown(body: bytes, body_type: Any, *, strict: bool) -> None:
    for place, name, known in _unknown(body, body_type):
        meant = _meant(name, known)
        if meant is None and not strict:
            continue
        field = f"{place}.{name}".removeprefix(".")
        remedy = f"Did you mean {meant}?" if meant else "Remove the field, or send no Horae-Strict."
        raise BadInput(f"{field} is not a field of this request.", remedy, field=field)


def _meant(name: str, known: Mapping[str, Any]) -> str | None:
    """Return the known field that an unknown one resembles."""
    plain, bare = {each.lower(): each for each in known}, name.lower().replace("_", "").replace("-", "")
    swapped = [each for each in plain if sorted(each) == sorted(bare)]
    cut = [each for each in plain if len(bare) >= SHORTEST and each.startswith(bare)]
    if found := swapped or get_close_matches(bare, plain, 1, ALIKE) or cut:
        return plain[found[0]]
    return next((each for each in ("results", "result") if each in known), None) if bare in SYNONYMS else None


def _unknown(text: bytes | Raw, body_type: Any, place: str = "") -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield unknown fields of structs in a document: their place, their name, and the known fields."""
    struct = _struct_in(body_type)
    if struct is None:
        return
    value = msgspec.json.decode(text, type=list[Raw] | dict[str, Raw] | None)
    if isinstance(value, list):
        for i, member in enumerate(value):
            yield from _unknown(member, struct, f"{place}[{i}]")
    elif isinstance(value, dict):
        known = {field.encode_name: field.type for field in msgspec.structs.fields(struct)}
        for name, member in value.items():
            if name in known:
                yield from _unknown(member, known[name], f"{place}.{name}")
            else:
                yield place, name, known


def _struct_in(field_type: Any) -> type[Struct] | None:
    """Return the struct in a type: the type itself, the item type of a list, or an alternative of a union."""
    if isinstance(field_type, _META) and issubclass(field_type, Struct):
        return field_type
    inner = (
        (_struct_in(one) for one in get_args(field_type))
        if get_origin(field_type) in (list, Union, Annotated, _UNION)
        else ()
    )
    return next(filter(None, inner), None)


_META = type
_UNION = type(int | None)


@cache
def _closed_decoder(body_type: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(strict_type(body_type))


@cache
def strict_type(open_type: Any) -> Any:
    """Return the same type with structs that refuse unknown fields."""
    if isinstance(open_type, _META) and issubclass(open_type, Struct):
        fields = [_redeclared(field) for field in msgspec.structs.fields(open_type)]
        return msgspec.defstruct(
            open_type.__name__, fields, bases=(open_type,), frozen=True, kw_only=True, rename="camel",
            omit_defaults=True, forbid_unknown_fields=True,
        )  # fmt: skip
    origin, args = get_origin(open_type), get_args(open_type)
    if origin is list:
        return list[strict_type(args[0])]  # type: ignore[misc]
    if origin in (Union, _UNION):
        return reduce(or_, map(strict_type, args))
    if origin is Annotated:
        return Annotated[(strict_type(args[0]), *args[1:])]
    return open_type


def _redeclared(field: msgspec.structs.FieldInfo) -> tuple[str, Any] | tuple[str, Any, Any]:
    strict = strict_type(field.type)
    if field.default is not NODEFAULT:
        return field.name, strict, field.default
    if field.default_factory is not NODEFAULT:
        return field.name, strict, msgspec.field(default_factory=field.default_factory)
    return field.name, strict


def _of_outcome(body: bytes, body_type: Any, error: BadInput, *, strict: bool) -> BadInput:
    """Return the error with the index of the faulty outcome, if an outcome is at fault; else the error unchanged."""
    if body_type is not Exchange or len(body) > MOST_SEARCHED:
        return error
    for i, outcome in enumerate(_members(body, b'"outcomes"')):
        try:
            decode(outcome, _OUTCOME)
            _refuse_unknown(outcome, Outcome, strict=strict)
        except BadInput as found:
            field = f"outcomes[{i}].{found.fields.get('field', '')}".removesuffix(".").removesuffix(".body")
            return OutcomeRefused(f"Outcome {i}: {found.detail}", found.remedy, field=field, index=i)
    return error


def _members(body: bytes, field: bytes) -> Iterator[bytes]:
    """Yield the objects in a list that is a field of a document, as bytes, even if they are malformed or deep."""
    depth, start, last, inside = 0, 0, b"", False
    for token in _TOKEN.finditer(body):
        mark = token[0]
        if mark in b"[{":
            depth += 1
            inside = inside or (depth == 2 and mark == b"[" and last == field)
            if inside and depth == 3:
                start = token.start()
        elif mark in b"]}":
            if inside and depth == 3:
                yield body[start : token.end()]
            depth -= 1
            inside = inside and depth >= 2
        elif depth == 1:
            last = mark
