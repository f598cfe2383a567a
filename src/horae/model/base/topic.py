"""Topics: one kind of happening, and its subscribers in the order in which they subscribed."""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Topic(Generic[T]):
    """Tell every subscriber of a happening, at once and in order. Print a topic to see who subscribed."""

    __slots__ = ("_calls", "_names", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._names: list[str] = []
        self._calls: tuple[Callable[[T], object], ...] = ()

    def subscribe(self, name: str, call: Callable[[T], object]) -> None:
        """Add a subscriber after those that are there. A subscriber must not wait and must not raise."""
        self._names.append(name)
        self._calls = (*self._calls, call)

    def __call__(self, happened: T) -> None:
        for call in self._calls:
            call(happened)

    def __str__(self) -> str:
        return f"{self.name}: {', '.join(self._names) or 'nobody'}"
