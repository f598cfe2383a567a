"""Bulk submission: up to a thousand items per request, fewer if they are large, with several requests in flight."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec
from msgspec import Raw, Struct

from horae.client.encode import encode
from horae.client.transport.calls import Caller, path_of
from horae.client.views import SubmittedItem
from horae.errors import TooLarge

MOST_ITEMS = 1000
MOST_BYTES = 7 * 1024 * 1024  # bytes of a request body; the server accepts 8 MiB
IN_FLIGHT = 4


class _Answer(Struct):
    items: list[SubmittedItem]


_ANSWERS = msgspec.json.Decoder(_Answer)


async def submit_many(
    caller: Caller, envelope: dict[str, Any], params: Iterable[Any], *, atomic: bool
) -> list[SubmittedItem]:
    """Submit an execution for each item of `params`; return the results in the same order.

    `envelope` has the job and the shared options.
    """
    bodies = one_body(envelope, params) if atomic else chunks(envelope, params)
    return [item async for answer in _in_order(caller, bodies) for item in answer]


def chunks(envelope: dict[str, Any], params: Iterable[Any]) -> Iterator[bytes]:
    """Yield request bodies below the size limit. A single item above it gets its own body, which the server refuses."""
    left = iter(params)
    while batch := list(islice(left, MOST_ITEMS)):
        yield from _bounded(envelope, batch)


def one_body(envelope: dict[str, Any], params: Iterable[Any]) -> Iterator[bytes]:
    """Yield one request body with all items, for an atomic submission."""
    body = _body({**envelope, "atomic": True}, list(params))
    if len(body) > MOST_BYTES:
        raise TooLarge(
            f"{len(body):,} bytes do not fit into one request, but an atomic submission must be one request.",
            "Submit fewer or smaller items at a time, or without atomic.",
        )
    yield body


def _bounded(envelope: dict[str, Any], batch: list[Any]) -> Iterator[bytes]:
    body = _body(envelope, batch)
    if len(body) <= MOST_BYTES or len(batch) == 1:
        yield body
        return
    half = len(batch) // 2
    yield from _bounded(envelope, batch[:half])
    yield from _bounded(envelope, batch[half:])


def _body(envelope: dict[str, Any], batch: list[Any]) -> bytes:
    return encode({**envelope, "items": Raw(encode(batch))})


async def _in_order(caller: Caller, bodies: Iterator[bytes]) -> AsyncIterator[list[SubmittedItem]]:
    """Send a few requests at a time and yield the answers in order; after a failure send no more."""
    flying: list[asyncio.Task[list[SubmittedItem]]] = []
    try:
        for body in bodies:
            flying.append(asyncio.ensure_future(_send(caller, body)))
            if len(flying) == IN_FLIGHT:
                yield await flying.pop(0)
        while flying:
            yield await flying.pop(0)
    finally:
        for task in flying:
            task.cancel()
        await asyncio.gather(*flying, return_exceptions=True)


async def _send(caller: Caller, body: bytes) -> list[SubmittedItem]:
    return _ANSWERS.decode((await caller.post_bytes(path_of("executions"), body)).body).items
