"""Reading requests: bodies within their limit, JSON and query strings as typed values, errors that say where."""

import json
import math
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

from horae.errors import BadInput, TooLarge
from horae.model.documents.nesting import MAX_NESTING
from horae.model.executions.parcel import MAX_DEPTH
from horae.server.reading.advice import advice
from horae.server.reply import Receive

MIB = 1024 * 1024
LIMIT = MIB
SMALL_LIMIT = 16 * 1024  # routes that are open to everybody: what a client sends is held before it is known
LARGE_LIMIT = 8 * MIB  # bulk submissions and exchanges
MOST_DISCARDED = 64 * MIB  # of a body that is refused: whoever still sends does not hear an answer
MOST_PARAMETERS = 100

_AT = re.compile(r"^(?P<what>.*?)(?: - at `(?P<where>[^`]*)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"unknown field `(?P<field>[^`]*)`")
_MISSING = re.compile(r"missing required field `(?P<field>[^`]*)`")
# A backslash and what it escapes, whole pairs first: what is left alone is half of one.
_ESCAPES = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>\\u[dD][89a-fA-F]..)|\\.", re.DOTALL)
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000|\x00")


class Gone(Exception):
    """The client went away before its request was complete."""


async def read_body(receive: Receive, length: bytes | None, limit: int) -> bytes:
    """The whole body. One over the limit is read and thrown away: a sender that is cut off hears no answer."""
    declared = int(length) if length is not None and length.isdigit() else 0
    if declared > MOST_DISCARDED:
        raise _too_large(limit)
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        part, more = _part(await receive())
        size += len(part)
        if size > MOST_DISCARDED:
            raise _too_large(limit)
        if max(size, declared) <= limit:
            parts.append(part)
    if size > limit:
        raise _too_large(limit)
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def read_pieces(receive: Receive) -> AsyncIterator[bytes]:
    """The body piece by piece, as it comes."""
    more = True
    while more:
        piece, more = _part(await receive())
        if piece:
            yield piece


def _part(message: Mapping[str, Any]) -> tuple[bytes, bool]:
    if message["type"] == "http.disconnect":
        raise Gone
    return message.get("body", b""), message.get("more_body", False)


def _too_large(limit: int) -> TooLarge:
    return TooLarge("The body is over this route's limit.", f"Send at most {limit} bytes, in several requests.")


def decode(body: bytes, decoder: msgspec.json.Decoder[Any]) -> Any:
    """A body's value; an empty one counts as an empty object."""
    try:
        return decoder.decode(body or b"{}")
    except msgspec.ValidationError as error:
        raise _too_big(body, str(error)) or _invalid(str(error), decoder.type) from None
    except msgspec.DecodeError as error:
        raise _malformed(body, error) from None
    except UnicodeDecodeError:
        raise BadInput(f"The body is not valid UTF-8{_wrong_byte(body)}.", "Send JSON in UTF-8.") from None
    except RecursionError:
        remedy = f"Flatten it: params have at most {MAX_DEPTH} levels, results {MAX_NESTING}."
        raise BadInput("The body is nested too deeply.", remedy) from None


def _too_big(body: bytes, message: str) -> BadInput | None:
    """A number that no computer holds, such as 1e999. The decoder does not name its field, so it is looked for."""
    if not message.startswith("Number out of range"):
        return None
    try:
        place = _endless(json.loads(body, parse_int=float))
    except (ValueError, RecursionError):
        return None
    if place is None:
        return None
    field = place.removeprefix(".") or "body"
    return BadInput(f"{field}: the number is out of range.", "Send one below 1e308.", field=field)


def _endless(value: Any, place: str = "") -> str | None:
    """Where in a document the first number is that became infinite."""
    if isinstance(value, float):
        return place if math.isinf(value) else None
    members: Iterable[tuple[str, Any]] = ()
    if isinstance(value, dict):
        members = ((f"{place}.{name}", member) for name, member in value.items())
    elif isinstance(value, list):
        members = ((f"{place}[{i}]", member) for i, member in enumerate(value))
    return next((found for inner, member in members if (found := _endless(member, inner)) is not None), None)


def _malformed(body: bytes, error: msgspec.DecodeError) -> BadInput:
    if half := next((found for found in _ESCAPES.finditer(body) if found["half"]), None):
        detail = f"The body contains half of a surrogate pair (byte {half.start()})."
        return BadInput(detail, "Send the whole character, or leave it out.")
    return BadInput(f"The body is not valid JSON: {error}.", "Send one JSON document.")


def _wrong_byte(body: bytes) -> str:
    """Where in the body it stops being UTF-8; the decoder counts from the beginning of the text it is in."""
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return f" (byte {error.start})"
    return ""


def refuse_nul(body: bytes) -> None:
    """Refuse NUL, which PostgreSQL's texts cannot hold."""
    if (b"\\u0000" in body or b"\0" in body) and _NUL.search(body):
        raise BadInput("The body contains the character NUL (\\u0000).", "Leave it out, or send it as base64.")


def decode_query(query: bytes, type: type[Struct]) -> Any:
    """A query string's values. A parameter given twice is refused unless it is a list; so is an unknown one."""
    given: dict[str, Any] = {}
    lists = _list_fields(type)
    for name, value in _pairs(query):
        if "\0" in value or "\0" in name:
            raise BadInput("The query contains the character NUL.", "Leave it out.", field=name.replace("\0", ""))
        if name in lists:
            given.setdefault(name, []).extend(value.split(","))
        elif name in given:
            raise BadInput(f"{name} is given twice.", "Give it once.", field=name)
        else:
            given[name] = value
    try:
        values = msgspec.convert(given, type, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), type) from None
    for field in msgspec.structs.fields(type):
        if field.encode_name in given and getattr(values, field.name) is None:
            raise BadInput(f"{field.encode_name} cannot be null.", "Leave it out.", field=field.encode_name)
    return values


def _pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=MOST_PARAMETERS)
    except ValueError:
        raise BadInput(f"The query has over {MOST_PARAMETERS} parameters.", "Give fewer.", field="query") from None


@cache
def _list_fields(type: type[Struct]) -> frozenset[str]:
    fields = msgspec.structs.fields(type)
    return frozenset(field.encode_name for field in fields if "list[" in str(field.type))


def _invalid(message: str, type: Any) -> BadInput:
    """msgspec's message with the place it names, and what its type takes there."""
    found = _AT.match(message)
    what, where = (found["what"], found["where"] or "$") if found else (message, "$")
    field = where.removeprefix("$").removeprefix(".").replace("[...]", "")
    named = _UNKNOWN.search(what) or _MISSING.search(what)
    if named:
        field = f"{field}.{named['field']}" if field else named["field"]
    if _UNKNOWN.search(what):
        return BadInput(f"{field} is not a field of this request.", "Check its spelling.", field=field)
    shown = f"{field}: {what[:1].lower()}{what[1:]}" if field else what
    return BadInput(f"{shown}.", advice(type, field), field=field or "body")
