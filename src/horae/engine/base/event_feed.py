"""Events for listeners on this server. A listener gets the events of its own namespace."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from horae.engine.base.hints import Hint, Hints
from horae.model.base.event import ChangeEvent

Listener = Callable[[ChangeEvent | None], object]  # is called with None when the server stops; must not block


class EventFeed:
    """Distributes events to this server's listeners."""

    def __init__(self, hints: Hints) -> None:
        self._listeners: dict[int, tuple[Listener, ...]] = {}  # namespace -> its listeners
        hints.listen(self._on_hint)

    @contextmanager
    def listening(self, namespace: int, listener: Listener) -> Iterator[None]:
        """Call a listener with every event of a namespace while the block runs."""
        self._listeners[namespace] = (*self._listeners.get(namespace, ()), listener)
        try:
            yield
        finally:
            left = tuple(other for other in self._listeners[namespace] if other is not listener)
            self._listeners[namespace] = left
            if not left:
                del self._listeners[namespace]

    def close(self) -> None:
        """Tell all listeners that the feed has ended."""
        for listeners in list(self._listeners.values()):
            for listener in listeners:
                listener(None)

    @property
    def wanted(self) -> bool:
        return bool(self._listeners)

    def _on_hint(self, hint: Hint) -> None:
        if not self._listeners:
            return
        for event in hint.events:
            for listener in self._listeners.get(event.namespace, ()):
                listener(event)
