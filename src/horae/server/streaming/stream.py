"""Server-sent events about changes. An event may be lost; a client that is told so reads the changed things again."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager

from horae.engine.server_node import ServerNode
from horae.errors import TooOften
from horae.server.reply import UNCACHED, Receive, Response, Scope, Send
from horae.server.streaming.event_feeds import EventEncoder, SharedEventFeed, StreamFilter, StreamReader

KIND = b"text/event-stream"

Admitted = Callable[[], Awaitable[bool]]  # returns whether the credential of a stream is still valid


class EventStreams:
    """The feeds of a server, one for each namespace and filter."""

    def __init__(self, node: ServerNode) -> None:
        self._node = node
        self._write = EventEncoder()
        self._feeds: dict[tuple[int, StreamFilter], tuple[SharedEventFeed, ExitStack]] = {}
        self._followed: Counter[int] = Counter()  # streams, by namespace

    def refuse_more(self, namespace: int) -> None:
        """Raise TooOften if a namespace already has the maximum number of streams."""
        most = self._node.settings.namespace_streams
        if self._followed[namespace] >= most:
            remedy = "Close some streams, share one between several readers, or raise the setting namespace_streams."
            raise TooOften(f"This namespace already has {most} open streams on this server.", remedy, retryAfter=5)

    @contextmanager
    def follow(self, namespace: int, wanted: StreamFilter) -> Iterator[StreamReader]:
        """Yield a reader of events for as long as the block lasts."""
        key, reader = (namespace, wanted), StreamReader()
        if key not in self._feeds:
            new_feed = SharedEventFeed(self._node.env.clock, wanted, self._write)
            stack = ExitStack()
            stack.enter_context(self._node.base.events.listening(namespace, new_feed.publish))
            self._feeds[key] = new_feed, stack
        feed, stack = self._feeds[key]
        feed.add(reader)
        self._followed[namespace] += 1
        try:
            yield reader
        finally:
            self._followed[namespace] -= 1
            feed.remove(reader)
            if not feed.is_followed:
                del self._feeds[key]
                stack.close()


class EventStream(Response):
    """An answer that lasts until the client disconnects, its credential ends or the server stops.

    The credential is checked before every send, because a busy stream has no pause in which to check it. Events are
    gathered for 0.05 s, so the check runs at most twenty times per second.
    """

    __slots__ = ("_admitted", "_namespace", "_streams", "_wanted")

    def __init__(self, streams: EventStreams, namespace: int, wanted: StreamFilter, admitted: Admitted) -> None:
        super().__init__(200, kind=KIND, headers=(UNCACHED, (b"x-accel-buffering", b"no")))
        self._streams, self._namespace, self._wanted, self._admitted = streams, namespace, wanted, admitted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._streams.follow(self._namespace, self._wanted) as reader:
            await self.start(send, (b"content-type", self.kind))
            await _part(send, b"retry: 2000\n\n")
            gone = asyncio.ensure_future(_gone(receive))
            gone.add_done_callback(lambda _: reader.put(None))
            try:
                while (body := await reader.get()) is not None and await self._admitted():
                    await _part(send, body)
            finally:
                gone.cancel()
        await send({"type": "http.response.body", "body": b""})


async def _part(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
