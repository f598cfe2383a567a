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
from horae.errors import BadInput, TooLarge

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
    refused: dict[int, SubmittedItem] = {}
    bodies = one_body(envelope, params) if atomic else chunks(envelope, params, refused)
    results = [item async for answer in _in_order(caller, bodies) for item in answer]
    for i in sorted(refused):
        results.insert(i, refused[i])
    return results


def chunks(envelope: dict[str, Any], params: Iterable[Any], refused: dict[int, SubmittedItem]) -> Iterator[bytes]:
    """Yield request bodies below the size limit. A single item above it gets its own body, which the server refuses.

    Items that cannot be encoded are left out; `refused` gets their results by position.
    """
    left, count = iter(params), 0
    while batch := list(islice(left, MOST_ITEMS)):
        try:
            yield from _bounded(envelope, batch)
        except BadInput:  # raised before the first body
            found = [_encoded(item) for item in batch]
            if all(isinstance(one, Raw) for one in found):
                raise
            refused |= {count + i: one for i, one in enumerate(found) if isinstance(one, SubmittedItem)}
            if sound := [one for one in found if isinstance(one, Raw)]:
                yield from _bounded(envelope, sound)
        count += len(batch)


def _encoded(item: Any) -> Raw | SubmittedItem:
    """Return an item's JSON, or the result of an item that has none."""
    try:
        return Raw(encode(item))
    except BadInput as error:
        problem = {"type": f"urn:horae:{error.slug}", "title": error.title, "status": error.status}
        return SubmittedItem(error={**error.fields, **problem, "detail": error.detail, "remedy": error.remedy})


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
