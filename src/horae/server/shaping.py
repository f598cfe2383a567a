"""Adaptation of answers to clients: status 304 if the client has the answer, and compression where that is safe."""

import asyncio
import re
import zlib
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b

from msgspec import Struct

from horae.server.reply import Header, Response
from horae.server.route import Route

LEAST = 1024  # bytes; a smaller answer fits into one packet and is not compressed
MOST_INLINE = 128 * 1024  # bytes that are compressed on the event loop
LEVEL = 1  # zlib's level: JSON shrinks to a seventh, in a third of the time that the default level takes
TEXTS = (b"application/json", b"application/openapi+json", b"text/")
VARY: Header = (b"vary", b"accept-encoding")
PACKED: Header = (b"content-encoding", b"gzip")

_GZIP = re.compile(rb"(?:^|,)\s*(?:gzip|x-gzip|\*)\s*(?:;\s*q=(?P<q>[01](?:\.[0-9]{0,3})?)\s*)?(?=,|$)", re.IGNORECASE)


async def adapt_answer(reply: Response, route: Route, headers: Mapping[bytes, bytes]) -> Response:
    """Return the answer to a read in the form that its client accepts."""
    reply, tags = with_etag(reply, route), headers.get(b"if-none-match")
    if tags is not None and reply.status == 200 and is_unmodified(reply, tags):
        return Response(304, b"", reply.kind, reply.headers)
    return await compressed(reply) if may_be_compressed(reply, route, headers) else reply


def with_etag(reply: Response, route: Route) -> Response:
    """Add a digest as the ETag of a list or an API description. The ETags of versioned things come from `ok`."""
    if type(reply) is Response and reply.status == 200 and is_tagged(route):
        digest = blake2b(reply.body, digest_size=12).hexdigest()
        reply.headers = (*reply.headers, (b"etag", f'W/"{digest}"'.encode()))
    return reply


def is_tagged(route: Route) -> bool:
    """Return whether a route answers with a list, or with a description of the API."""
    return route.tag == "openapi" or (route.method == "GET" and _is_listed(route.query))


@cache
def _is_listed(query: type[Struct] | None) -> bool:
    return query is not None and "cursor" in query.__struct_fields__


def is_unmodified(reply: Response, asked: bytes) -> bool:
    """Return whether the client has this answer: If-None-Match (`asked`) has the answer's ETag (RFC 9110, 13.1.2)."""
    tag = next((value for name, value in reply.headers if name == b"etag"), None)
    if tag is None:
        return False
    bare = tag.removeprefix(b"W/")
    return asked == b"*" or bare in [text.strip().removeprefix(b"W/") for text in asked.split(b",")]


def may_be_compressed(reply: Response, route: Route, headers: Mapping[bytes, bytes]) -> bool:
    """Return whether compressing an answer is worthwhile and safe.

    The length of a compressed answer reveals repetitions in it. So answers with secrets or cookies are never
    compressed, because they may also hold text that an attacker chose (BREACH).
    """
    if type(reply) is not Response or len(reply.body) < LEAST:
        return False
    if reply.status != 200 or not reply.kind.startswith(TEXTS) or not accepts_gzip(headers):
        return False
    names = [name for name, _ in reply.headers]
    secret = route.secret or reply.stored_body is not None or b"set-cookie" in names
    return not secret and b"content-encoding" not in names


def accepts_gzip(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a client accepts gzip."""
    found = _GZIP.search(headers.get(b"accept-encoding", b""))
    return found is not None and (found["q"] is None or float(found["q"]) > 0)


async def compressed(reply: Response) -> Response:
    """Compress an answer; a long one in a thread, so that other requests are answered meanwhile."""
    pack = _pack(reply.body) if len(reply.body) <= MOST_INLINE else await asyncio.to_thread(_pack, reply.body)
    return Response(reply.status, pack, reply.kind, (*reply.headers, PACKED, VARY))


def _pack(body: bytes) -> bytes:
    packer = zlib.compressobj(LEVEL, wbits=31)
    return packer.compress(body) + packer.flush()
