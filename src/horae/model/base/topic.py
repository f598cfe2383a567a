"""Topics: each is one kind of event inside a process, and its subscribers in order of subscription."""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Topic(Generic[T]):
    """A kind of event. A call of the topic calls its subscribers at once, in order; `str` of it names them."""

    __slots__ = ("_calls", "_names", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._names: list[str] = []
        self._calls: tuple[Callable[[T], object], ...] = ()

    def subscribe(self, name: str, call: Callable[[T], object]) -> None:
        """Append a subscriber. A subscriber must not block and must not raise."""
        self._names.append(name)
        self._calls = (*self._calls, call)

    def __call__(self, happened: T) -> None:
        for call in self._calls:
            call(happened)

    def __str__(self) -> str:
        return f"{self.name}: {', '.join(self._names) or 'nobody'}"
