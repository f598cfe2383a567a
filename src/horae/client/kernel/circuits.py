"""`client.circuits`: read the states of the circuit breakers of jobs, and open, close or reset them by hand."""

from datetime import datetime
from typing import Any

from horae.client.encode import given, span
from horae.client.transport.calls import Resource, path_of
from horae.client.views import ApiDocument, ResultPage, page_of
from horae.model.executions.job_exceptions import Span


class CircuitInfo(ApiDocument, frozen=True, kw_only=True):
    """The state of a circuit: "closed" (executions start), "open" (none start) or "half-open" (probes run)."""

    job: str
    key: str | None = None
    state: str
    forced: bool = False  # set by hand; it stays in this state until it is reset
    cause: str = ""
    changed_by: str | None = None  # the user who changed it; None if it changed by itself
    since: datetime | None = None
    until: datetime | None = None  # when the probes of an open circuit start
    attempts: int = 0  # the attempts in its window, since its last change
    failed: int = 0  # how many of these attempts failed
    waiting: int = 0  # executions that wait for the circuit


class JobCircuitInfo(ApiDocument, frozen=True, kw_only=True):
    """The circuits of a job."""

    job: str
    definition: dict[str, Any]
    circuits: list[CircuitInfo]


class CircuitsResource(Resource):
    """Circuit breakers of jobs.

    `ref` is a job's name or id. If a job has a circuit for each value of its circuit key, `key` is this value.
    """

    # `python -m tools.sdk` writes the methods below, from the routes of circuits.

    async def list(self) -> ResultPage[CircuitInfo]:
        """List circuits that are open or half-open."""
        return page_of(CircuitInfo, await self._caller.get(path_of("circuits")))

    async def get(self, ref: str, *, key: str | None = None) -> JobCircuitInfo:
        """Read a job's circuit, or the circuits of its keys, with their recent changes.

        `key`: The key of the circuit, if each key has its own circuit.
        """
        return JobCircuitInfo.of(await self._caller.get(path_of("jobs", ref, "circuit"), {"key": key}))

    async def open(
        self, ref: str, *, length: Span | None = None, key: str | None = None, reason: str | None = None
    ) -> CircuitInfo:
        """Open a circuit by hand. After the answer, no server starts executions of the circuit.

        `length`: The time for which the circuit stays open before probes are tried. `key`: The key of the
        circuit, if each key has its own circuit. `reason`: The reason, stored with the change.
        """
        body = given(**{"for": span(length), "key": key, "reason": reason})
        return CircuitInfo.of(await self._caller.post(path_of("jobs", ref, "circuit", "open"), body))

    async def close(self, ref: str, *, key: str | None = None, reason: str | None = None) -> CircuitInfo:
        """Close a circuit by hand. Failures do not open it until it is reset.

        `key`: The key of the circuit, if each key has its own circuit. `reason`: The reason, stored with the
        change.
        """
        body = given(key=key, reason=reason)
        return CircuitInfo.of(await self._caller.post(path_of("jobs", ref, "circuit", "close"), body))

    async def reset(self, ref: str, *, key: str | None = None, reason: str | None = None) -> CircuitInfo:
        """Close a circuit, reset its counts, and end any manual override.

        `key`: The key of the circuit, if each key has its own circuit. `reason`: The reason, stored with the
        change.
        """
        body = given(key=key, reason=reason)
        return CircuitInfo.of(await self._caller.post(path_of("jobs", ref, "circuit", "reset"), body))
