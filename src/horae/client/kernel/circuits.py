"""`client.circuits`: how circuit breakers of jobs stand; opened, closed and reset by hand."""

from datetime import datetime
from typing import Any

from horae.client.encode import given, span
from horae.client.transport.calls import Caller, path_of
from horae.client.views import Page, View, page_of
from horae.model.executions.signals import Span


class Circuit(View, frozen=True, kw_only=True):
    """How a circuit stands: "closed", "open" or "half-open"."""

    job: str
    key: str | None = None
    state: str
    forced: bool = False
    cause: str = ""
    by: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    attempts: int = 0
    failed: int = 0
    waiting: int = 0


class JobCircuit(View, frozen=True, kw_only=True):
    """The circuits of a job."""

    job: str
    definition: dict[str, Any]
    circuits: list[Circuit]


class Circuits:
    """Circuit breakers. `ref` is a job's name or id; where each value of a key has a circuit, `key` says which."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def list(self) -> Page[Circuit]:
        """Circuits that are open or half-open."""
        return page_of(Circuit, await self._caller.get(path_of("circuits")))

    async def get(self, ref: str, *, key: str | None = None) -> JobCircuit:
        """A job's circuit, or those of its keys, and what they went through."""
        return JobCircuit.of(await self._caller.get(path_of("jobs", ref, "circuit"), {"key": key}))

    async def open(
        self, ref: str, *, key: str | None = None, reason: str | None = None, length: Span | None = None
    ) -> Circuit:
        """Start nothing of it, for a time or until it is reset; when this returns, no server does."""
        said = {**given(key=key, reason=reason), **({} if length is None else {"for": span(length)})}
        return Circuit.of(await self._caller.post(path_of("jobs", ref, "circuit", "open"), said))

    async def close(self, ref: str, *, key: str | None = None, reason: str | None = None) -> Circuit:
        """Start everything, whatever fails, until it is reset."""
        said = given(key=key, reason=reason)
        return Circuit.of(await self._caller.post(path_of("jobs", ref, "circuit", "close"), said))

    async def reset(self, ref: str, *, key: str | None = None, reason: str | None = None) -> Circuit:
        """Close it and count anew."""
        said = given(key=key, reason=reason)
        return Circuit.of(await self._caller.post(path_of("jobs", ref, "circuit", "reset"), said))
