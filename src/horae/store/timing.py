"""Measurement of the durations of the store's operations."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from horae.env import Env
from horae.model.base.buckets import Buckets

# seconds: the upper bounds of the buckets in which durations are counted
SPANS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class Timings:
    """The distribution of the durations of each operation, by the name of its method in the contract."""

    def __init__(self) -> None:
        self.of: dict[str, Buckets] = {}

    def add(self, operation: str, seconds: float) -> None:
        """Record the duration of an operation, whether it succeeded or failed."""
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
    """Decorate a method so that the duration of each call is recorded under its name."""
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
