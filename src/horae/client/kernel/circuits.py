"""`client.circuits`: how circuit breakers of jobs stand; opened, closed and reset by hand."""

from datetime import datetime
from typing import Any

from horae.client.encode import given, span
from horae.client.transport.calls import Resource, path_of
from horae.client.views import ApiDocument, ResultPage, page_of
from horae.model.executions.job_exceptions import Span


class CircuitInfo(ApiDocument, frozen=True, kw_only=True):
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


class JobCircuitInfo(ApiDocument, frozen=True, kw_only=True):
    """The circuits of a job."""

    job: str
    definition: dict[str, Any]
    circuits: list[CircuitInfo]


class CircuitsResource(Resource):
    """Circuit breakers. `ref` is a job's name or id; where each value of a key has a circuit, `key` is the value."""

    # `python -m tools.sdk` writes what follows, from the routes of circuits.

    async def list(self) -> ResultPage[CircuitInfo]:
        """List circuits that are open or half-open."""
        return page_of(CircuitInfo, await self._caller.get(path_of("circuits")))

    async def get(self, ref: str, *, key: str | None = None) -> JobCircuitInfo:
        """Read a job's circuit, or those of its keys, and what they went through.

        `key`: The value whose circuit is meant, where each has one.
        """
        return JobCircuitInfo.of(await self._caller.get(path_of("jobs", ref, "circuit"), {"key": key}))

    async def open(
        self, ref: str, *, length: Span | None = None, key: str | None = None, reason: str | None = None
    ) -> CircuitInfo:
        """Open a circuit by hand: once this is answered, no server starts anything of it.

        `length`: How long it stays open; then probes are tried. `key`: The value whose circuit is meant, where
        each has one. `reason`: Why; it is kept with the change.
        """
        body = given(**{"for": span(length), "key": key, "reason": reason})
        return CircuitInfo.of(await self._caller.post(path_of("jobs", ref, "circuit", "open"), body))

    async def close(self, ref: str, *, key: str | None = None, reason: str | None = None) -> CircuitInfo:
        """Close a circuit by hand: it does not open, whatever fails, until it is reset.

        `key`: The value whose circuit is meant, where each has one. `reason`: Why; it is kept with the change.
        """
        body = given(key=key, reason=reason)
        return CircuitInfo.of(await self._caller.post(path_of("jobs", ref, "circuit", "close"), body))

    async def reset(self, ref: str, *, key: str | None = None, reason: str | None = None) -> CircuitInfo:
        """Close a circuit and count anew; what was done by hand ends.

        `key`: The value whose circuit is meant, where each has one. `reason`: Why; it is kept with the change.
        """
        body = given(key=key, reason=reason)
        return CircuitInfo.of(await self._caller.post(path_of("jobs", ref, "circuit", "reset"), body))
