"""Bodies of requests: read within their limit, checked to be JSON, and decoded to typed values.

The bodies of requests about one noun, such as jobs, are defined beside the noun's routes; large ones are in modules
named `*_body`.
"""

import json
import math
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from horae.errors import BadInput, TooLarge
from horae.model.documents.nesting import MAX_NESTING
from horae.model.executions.parcel import MAX_DEPTH
from horae.server.problems import UnsupportedMedia
from horae.server.reading.validation_errors import validation_error
from horae.server.reply import Receive

MIB = 1024 * 1024
LIMIT = MIB  # bytes of a body, unless its route has another limit
SMALL_LIMIT = 16 * 1024  # bytes, for public routes: their bodies are held in memory before the client is known
LARGE_LIMIT = 8 * MIB  # bytes, for bulk submissions and exchanges
MOST_DISCARDED = 64 * MIB  # bytes of a refused body that are read, since a client that still sends reads no answer

# An escape in JSON. Whole surrogate pairs are matched first, so a surrogate that is matched alone is half of a pair.
_ESCAPES = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>\\u[dD][89a-fA-F]..)|\\.", re.DOTALL)
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000|\x00")
GZIP = b"\x1f\x8b"
JSON_BEGINS = b'{["'
CHARSETS = (b"utf-8", b"utf8", b"us-ascii")

Duration = Annotated[
    str | int | float,
    Meta(description='"5m", "1h30m", ISO 8601 or seconds.', extra_json_schema={"examples": ["5m", "PT1H", 90]}),
]
DurationText = Annotated[str, Meta(max_length=256, extra={"kind": "duration"})]  # where numbers arrive as text
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
When = Annotated[
    str,
    Meta(description="RFC 3339 with an offset.", extra_json_schema={"format": "date-time"}),
]
Key = Annotated[str, Meta(min_length=1, max_length=256)]


class RequestBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """The body of a request; an unknown field is refused."""


class ReasonBody(RequestBody, frozen=True, kw_only=True):
    """The reason for an action."""

    reason: Annotated[str, Meta(max_length=1000, description="The reason, stored with the execution.")] = ""


class ClientGone(Exception):
    """The client disconnected before its request was complete."""


async def read_body(receive: Receive, length: bytes | None, limit: int) -> bytes:
    """Return the whole body; `length` is its Content-Length, if any. Raises TooLarge for a body over the limit.

    Such a body is read to its end and dropped first, because a client that is cut off while it sends reads no answer.
    """
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
    """Yield the body in pieces, as it arrives."""
    more = True
    while more:
        piece, more = _part(await receive())
        if piece:
            yield piece


def _part(message: Mapping[str, Any]) -> tuple[bytes, bool]:
    if message["type"] == "http.disconnect":
        raise ClientGone
    return message.get("body", b""), message.get("more_body", False)


def _too_large(limit: int) -> TooLarge:
    return TooLarge("The body is over this route's limit.", f"Send at most {limit} bytes, in several requests.")


def decode(body: bytes, decoder: msgspec.json.Decoder[Any]) -> Any:
    """Return a body's value; an empty body counts as an empty object."""
    try:
        return decoder.decode(body or b"{}")
    except msgspec.ValidationError as error:
        raise _too_big(body, str(error)) or validation_error(str(error), decoder.type) from None
    except msgspec.DecodeError as error:
        raise _malformed(body, error) from None
    except UnicodeDecodeError:
        raise BadInput(f"The body is not valid UTF-8{_wrong_byte(body)}.", "Send JSON in UTF-8.") from None
    except RecursionError:
        remedy = f"Flatten the body: params have at most {MAX_DEPTH} levels, results {MAX_NESTING}."
        raise BadInput("The body is nested too deeply.", remedy) from None


def _too_big(body: bytes, message: str) -> BadInput | None:
    """Return the error for a number that no computer can hold, such as 1e999.

    The decoder does not name the field, so this function searches the body for the number.
    """
    if not message.startswith("Number out of range"):
        return None
    try:
        place = _endless(json.loads(body, parse_int=float))
    except (ValueError, RecursionError):
        return None
    if place is None:
        return None
    field = place.removeprefix(".") or "body"
    return BadInput(f"{field}: the number is out of range.", "Send a number below 1e308.", field=field)


def _endless(value: Any, place: str = "") -> str | None:
    """Return the path of the first number that became infinite, such as `.items[0].size`."""
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
        return BadInput(detail, "Send the whole character, or remove it.")
    return BadInput(f"The body is not valid JSON: {error}.", "Send one JSON document.")


def _wrong_byte(body: bytes) -> str:
    """Return the position of the first byte that is not UTF-8. The decoder only knows the position in one string."""
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return f" (byte {error.start})"
    return ""


def refuse_nul(body: bytes) -> None:
    """Refuse NUL, which PostgreSQL's texts cannot hold."""
    if (b"\\u0000" in body or b"\0" in body) and _NUL.search(body):
        raise BadInput(
            "The body contains the character NUL (\\u0000).", "Remove the character, or send the text as base64."
        )


def check_media(headers: Mapping[bytes, bytes], body: bytes, *, is_json: bool) -> None:
    """Refuse a body that is compressed, in another charset than UTF-8 or, if the route reads JSON, of another type.

    A body that begins like JSON passes with any Content-Type, because `curl -d` labels everything as a form.
    """
    coding = headers.get(b"content-encoding", b"identity")
    if coding.lower() != b"identity" or body.startswith(GZIP):
        raise UnsupportedMedia("The body is compressed.", "Send it uncompressed, without Content-Encoding.")
    kind, _, options = headers.get(b"content-type", b"").lower().partition(b";")
    charset = options.partition(b"charset=")[2].partition(b";")[0].strip(b' "')
    if charset and charset not in CHARSETS:
        raise UnsupportedMedia(f"The body is in {_shown(charset)}.", "Send JSON in UTF-8.")
    kind = kind.strip()
    if is_json and kind and not kind.endswith((b"/json", b"+json")) and body.lstrip()[:1] not in JSON_BEGINS:
        raise UnsupportedMedia(f"The body is {_shown(kind)}.", "Send JSON, with `Content-Type: application/json`.")


def _shown(text: bytes) -> str:
    return text[:60].decode("latin-1")
