"""Server-sent events, gathered for a moment and encoded once for all listeners with the same filter.

An event itself costs little, but encoding and sending it for each of many listeners costs much. So listeners with the
same filter share a feed, which gathers and encodes events once and sends the same bytes to all of them.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol
from uuid import UUID

from msgspec import Struct

from horae.env import Clock
from horae.model.base.event import LEFT_OUT, ChangeEvent
from horae.model.base.ids import index_of, parcel_of
from horae.model.base.instant import format_instant
from horae.server.reply import encode

HEARTBEAT = 15.0  # seconds between comments on a quiet stream
PACE = 0.05  # seconds for which events are gathered; the first event after a quiet time is sent at once
MOST_PENDING = 1000  # gathered events, above which the oldest are dropped
MOST_BEHIND = 100  # batches that a listener may be behind
MOST_CHANGES = 200  # counts in one event `changes`; after that, further jobs are counted together
MISSED = b"event: missed\ndata: {}\n\n"
STILL_HERE = b": still here\n\n"


class StreamEventView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The data of one event: a thing of this kind is now in this state.

    If `count` is more than 1, the event is about that many consecutive executions of a parcel, beginning with `id`.
    """

    kind: str
    id: UUID
    state: str
    at: str
    job_id: UUID | None = None
    count: int = 1
    step: str = ""  # the step that changed, if `id` is the execution of a workflow


class ChangeView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The number of things of a kind, and of a job, that entered a state."""

    kind: str
    state: str
    job_id: UUID | None = None
    count: int


class ChangesView(Struct, frozen=True, kw_only=True, rename="camel"):
    """The data of an event `changes`: counts of changes since the previous such event.

    If too many jobs changed, some changes are counted without their job.
    """

    at: str
    changes: list[ChangeView]


class StreamFilter(Struct, frozen=True):
    """The events that a stream carries: those about kinds of things, and those about one execution, its steps and log.

    With `every` (microseconds), the events about `kinds` are sent as counts, at most once in that time. The events
    about `execution` are always sent one by one.
    """

    kinds: frozenset[str]
    execution: UUID | None = None
    every: int = 0

    def __contains__(self, event: ChangeEvent) -> bool:
        return event.kind in self.kinds or event.kind == LEFT_OUT or self.follows(event)

    def follows(self, event: ChangeEvent) -> bool:
        """Return whether an event is about `execution`."""
        if self.execution is None or event.kind not in ("execution", "step", "log"):
            return False
        place = index_of(self.execution) - index_of(event.id)
        return parcel_of(event.id) == parcel_of(self.execution) and 0 <= place < event.count


class EventEncoder:
    """Encodes events. It remembers the last one, because feeds encode the same event one after another."""

    def __init__(self) -> None:
        self._last: tuple[ChangeEvent | None, bytes] = (None, b"")

    def __call__(self, event: ChangeEvent) -> bytes:
        if self._last[0] is not event:
            view = StreamEventView(
                kind=event.kind, id=event.id, state=event.state, at=format_instant(event.at), job_id=event.job,
                count=event.count, step=event.step,
            )  # fmt: skip
            self._last = (event, b"event: %b\ndata: %b\n\n" % (event.kind.encode(), encode(view)))
        return self._last[1]


class PendingEvents(Protocol):
    """Gathered events that are not sent yet."""

    def add(self, event: ChangeEvent) -> None: ...

    def take(self) -> bytes:
        """Remove and return all gathered events, encoded for listeners; empty if there are none."""
        ...


class EventBuffer:
    """Pending events that are sent one by one."""

    def __init__(self, write: Callable[[ChangeEvent], bytes]) -> None:
        self._write = write
        self._encoded: list[bytes] = []
        self._missed = False

    def add(self, event: ChangeEvent) -> None:
        if event.kind == LEFT_OUT:
            self._missed = True
            return
        self._encoded.append(self._write(event))
        if len(self._encoded) > MOST_PENDING:
            del self._encoded[: MOST_PENDING // 2]
            self._missed = True

    def take(self) -> bytes:
        body = b"".join(self._encoded)
        missed, self._encoded, self._missed = self._missed, [], False
        return MISSED + body if missed else body


class EventCounts:
    """Pending events that are sent as counts by kind, state and job; events of one execution are sent one by one."""

    def __init__(self, wanted: StreamFilter, write: Callable[[ChangeEvent], bytes]) -> None:
        self._wanted = wanted
        self._followed = EventBuffer(write)
        self._counts: dict[tuple[str, str, UUID | None], int] = {}
        self._at = 0

    def add(self, event: ChangeEvent) -> None:
        if event.kind == LEFT_OUT or self._wanted.follows(event):
            self._followed.add(event)
        if event.kind not in self._wanted.kinds:
            return
        key = event.kind, event.state, event.job
        if key not in self._counts and len(self._counts) >= MOST_CHANGES:
            key = event.kind, event.state, None
        self._counts[key] = self._counts.get(key, 0) + event.count
        self._at = max(self._at, event.at)

    def take(self) -> bytes:
        body = self._followed.take()
        if not self._counts:
            return body
        changes = [
            ChangeView(kind=kind, state=state, job_id=job, count=count)
            for (kind, state, job), count in self._counts.items()
        ]
        self._counts = {}
        return body + b"event: changes\ndata: %b\n\n" % encode(
            ChangesView(at=format_instant(self._at), changes=changes)
        )


class StreamReader:
    """The queue of one listener. If the listener falls behind, its queue is replaced by a notice of missed events."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()

    def put(self, body: bytes | None) -> None:
        if self._queue.qsize() >= MOST_BEHIND:
            while not self._queue.empty():
                self._queue.get_nowait()
            self._queue.put_nowait(MISSED)
        self._queue.put_nowait(body)

    async def get(self) -> bytes | None:
        """Return the next bytes to send; None at the end of the stream."""
        return await self._queue.get()


class SharedEventFeed:
    """The events that one filter selects, sent to all listeners with this filter."""

    def __init__(self, clock: Clock, wanted: StreamFilter, write: Callable[[ChangeEvent], bytes]) -> None:
        self._clock, self._wanted = clock, wanted
        self._every = wanted.every / 1_000_000 if wanted.every else PACE
        self._pending: PendingEvents = EventCounts(wanted, write) if wanted.every else EventBuffer(write)
        self._happened = asyncio.Event()
        self._readers: set[StreamReader] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_followed(self) -> bool:
        return bool(self._readers)

    def add(self, reader: StreamReader) -> None:
        self._readers.add(reader)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def remove(self, reader: StreamReader) -> None:
        self._readers.discard(reader)
        if not self._readers and self._task is not None:
            self._task.cancel()
            self._task = None

    def publish(self, event: ChangeEvent | None) -> None:
        """Add an event; None when the server stops."""
        if event is None:
            self._send(None)
        elif event in self._wanted:
            self._pending.add(event)
            self._happened.set()

    def _send(self, body: bytes | None) -> None:
        for reader in self._readers:
            reader.put(body)

    async def _run(self) -> None:
        while True:
            if not self._happened.is_set() and not await self._happens():
                self._send(STILL_HERE)
                continue
            self._happened.clear()
            if body := self._pending.take():
                self._send(body)
            await self._clock.sleep(self._every)

    async def _happens(self) -> bool:
        """Wait for an event; return False if there was none for HEARTBEAT seconds."""
        happens = asyncio.ensure_future(self._happened.wait())
        quiet = asyncio.ensure_future(self._clock.sleep(HEARTBEAT))
        try:
            await asyncio.wait({happens, quiet}, return_when=asyncio.FIRST_COMPLETED)
            return self._happened.is_set()
        finally:
            happens.cancel()
            quiet.cancel()
