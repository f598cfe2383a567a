"""Durations of the store's operations, by name."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from horae.env import Env
from horae.model.base.buckets import Buckets

SPANS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class Timings:
    """Durations of each operation, by its name in the contract."""

    def __init__(self) -> None:
        self.of: dict[str, Buckets] = {}

    def add(self, operation: str, seconds: float) -> None:
        """Record an operation's duration, whatever its result."""
        known = self.of.get(operation)
        if known is None:
            known = self.of[operation] = Buckets(SPANS)
        known.add(seconds)


class Timed(Protocol):
    """An object that records the durations of its operations."""

    env: Env
    timings: Timings


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=Timed)


def timed(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Record the duration of a method's calls."""
    name = method.__name__

    @wraps(method)
    async def wrapper(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        monotonic = self.env.clock.monotonic
        begun = monotonic()
        try:
            return await method(self, *args, **kwargs)
        finally:
            self.timings.add(name, monotonic() - begun)

    return wrapper
