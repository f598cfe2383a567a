"""Events for subscribers of this server: bounded queues, and a mark where some were missed."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from horae.engine.hints import Hint, Hints
from horae.model.event import Event

MOST_BEHIND = 1000


class Subscription:
    """One reader's queue; when it falls behind, the oldest go and `missed` says so."""

    def __init__(self, namespace: int) -> None:
        self.namespace = namespace
        self.missed = False
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue(MOST_BEHIND)

    def put(self, event: Event | None) -> None:
        if self._queue.full():
            self._queue.get_nowait()
            self.missed = True
        self._queue.put_nowait(event)

    async def get(self) -> Event | None:
        """The next event; None when the server stops."""
        return await self._queue.get()

    async def __aiter__(self) -> AsyncIterator[Event]:
        while (event := await self.get()) is not None:
            yield event


class Events:
    """Spreads events to this server's subscribers, each within its namespace."""

    def __init__(self, hints: Hints) -> None:
        self._subscriptions: set[Subscription] = set()
        hints.listen(self._on_hint)

    @contextmanager
    def subscribe(self, namespace: int) -> Iterator[Subscription]:
        subscription = Subscription(namespace)
        self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)

    def close(self) -> None:
        """End all subscriptions."""
        for subscription in self._subscriptions:
            subscription.put(None)

    @property
    def wanted(self) -> bool:
        return bool(self._subscriptions)

    def _on_hint(self, hint: Hint) -> None:
        for event in hint.events:
            for subscription in self._subscriptions:
                if subscription.namespace == event.namespace:
                    subscription.put(event)
