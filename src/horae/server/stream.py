"""Server-sent events: what changed, as it changes. They are hints; whoever missed some reads again."""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

from msgspec import Struct

from horae.engine.events import Subscription
from horae.engine.node import Node
from horae.model.event import Event
from horae.model.ids import index_of, parcel_of
from horae.model.instant import format_instant
from horae.server.reply import UNCACHED, Receive, Reply, Scope, Send, encode

HEARTBEAT = 15.0  # seconds between comments on a quiet stream
KIND = b"text/event-stream"

Admitted = Callable[[], Awaitable[bool]]


class EventView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The data of one event: this thing is now in this state; `count` executions of one parcel from this one on."""

    kind: str
    id: UUID
    state: str
    at: str
    job_id: UUID | None = None
    count: int = 1
    step: str = ""  # of the execution, which is a workflow's


class Wanted(Struct, frozen=True):
    """Which events a stream carries: kinds of things, and one execution with its steps and its log."""

    kinds: frozenset[str]
    execution: UUID | None = None

    def __contains__(self, event: Event) -> bool:
        if event.kind in self.kinds:
            return True
        if self.execution is None or event.kind not in ("execution", "step", "log"):
            return False
        place = index_of(self.execution) - index_of(event.id)
        return parcel_of(event.id) == parcel_of(self.execution) and 0 <= place < event.count


class Stream(Reply):
    """An answer that goes on until the client leaves, its credential ends or the server stops.

    Whether the credential is still good is asked before each event: one that is busy has no quiet moment for it.
    """

    __slots__ = ("_admitted", "_namespace", "_node", "_wanted")

    def __init__(self, node: Node, namespace: int, wanted: Wanted, admitted: Admitted) -> None:
        super().__init__(200, kind=KIND, headers=(UNCACHED, (b"x-accel-buffering", b"no")))
        self._node, self._namespace, self._wanted, self._admitted = node, namespace, wanted, admitted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._node.events.subscribe(self._namespace) as subscription:
            await self.start(send, (b"content-type", self.kind))
            await _part(send, b"retry: 2000\n\n")
            await self._follow(subscription, receive, send)
        await send({"type": "http.response.body", "body": b""})

    async def _follow(self, subscription: Subscription, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(_gone(receive))
        coming = asyncio.ensure_future(subscription.get())
        try:
            while True:
                quiet = asyncio.ensure_future(self._node.env.clock.sleep(HEARTBEAT))
                await asyncio.wait({gone, coming, quiet}, return_when=asyncio.FIRST_COMPLETED)
                quiet.cancel()
                if gone.done():
                    return
                if coming.done():
                    event = coming.result()
                    if event is None:
                        return
                    coming = asyncio.ensure_future(subscription.get())
                    if event in self._wanted and not await self._admitted():
                        return
                    await self._tell(event, subscription, send)
                elif await self._admitted():
                    await _part(send, b": still here\n\n")
                else:
                    return
        finally:
            gone.cancel()
            coming.cancel()

    async def _tell(self, event: Event, subscription: Subscription, send: Send) -> None:
        if subscription.missed:
            subscription.missed = False
            await _part(send, b"event: missed\ndata: {}\n\n")
        if event in self._wanted:
            await _part(send, b"event: %b\ndata: %b\n\n" % (event.kind.encode(), encode(_view(event))))


def _view(event: Event) -> EventView:
    return EventView(
        kind=event.kind, id=event.id, state=event.state, at=format_instant(event.at), job_id=event.job,
        count=event.count, step=event.step,
    )  # fmt: skip


async def _part(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
