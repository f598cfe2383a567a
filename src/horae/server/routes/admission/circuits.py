"""Circuit breakers: their states, and opening, closing and resetting by hand. A `ref` is a job's name or id."""

from typing import Annotated

from msgspec import Meta, field

from horae.engine.admission.circuit_breakers import MOST_REASON
from horae.errors import Conflict, NotFound
from horae.model.admission.circuit_view import CircuitView, JobCircuitView
from horae.model.base.key_templates import MOST_KEY
from horae.model.base.view import CompleteList
from horae.server.access import OPERATE, VIEW
from horae.server.call import ApiCall
from horae.server.reading.bodies import Duration, RequestBody
from horae.server.reading.queries import Query
from horae.server.reply import Response, ok
from horae.server.route import API, CHANGES, get, post
from horae.server.scopes import by_job, closed

Key = Annotated[str, Meta(max_length=MOST_KEY, description="The key of the circuit, if each key has its own circuit.")]
Why = Annotated[str, Meta(max_length=MOST_REASON, description="The reason, stored with the change.")]


class CircuitQuery(Query, frozen=True, kw_only=True):
    """The selection of a circuit."""

    key: Key | None = None


class CircuitOverride(RequestBody, frozen=True, kw_only=True):
    """The selection of a circuit, and a reason."""

    key: Key | None = None
    reason: Why = ""


class CircuitOpenBody(CircuitOverride, frozen=True, kw_only=True):
    """The selection of a circuit, a reason, and a duration. By default, the circuit stays open until it is reset."""

    length: (
        Annotated[Duration, Meta(description="The time for which the circuit stays open before probes are tried.")]
        | None
    ) = field(name="for", default=None)


@get(f"{API}/circuits", "circuits.list", CompleteList[CircuitView], access=VIEW, scope=closed)
async def list_circuits(call: ApiCall) -> Response:
    """List circuits that are open or half-open."""
    return ok(CompleteList(items=await call.node.admission.circuit_breakers.list(call.namespace)))


@get(
    f"{API}/jobs/{{ref}}/circuit", "circuits.get", JobCircuitView,
    access=VIEW, scope=by_job, refuses=(NotFound, Conflict),
)  # fmt: skip
async def get_circuit(call: ApiCall, query: CircuitQuery) -> Response:
    """Read a job's circuit, or the circuits of its keys, with their recent changes."""
    return ok(await call.node.admission.circuit_breakers.show(call.namespace, call.path("ref"), query.key))


@post(
    f"{API}/jobs/{{ref}}/circuit/open", "circuits.open", CircuitView,
    access=OPERATE, scope=by_job, audit=CHANGES, refuses=(NotFound, Conflict),
)  # fmt: skip
async def open_circuit(call: ApiCall, body: CircuitOpenBody) -> Response:
    """Open a circuit by hand. After the answer, no server starts executions of the circuit."""
    shown = await call.node.admission.circuit_breakers.open(
        call.namespace, call.path("ref"), by=call.caller, key=body.key, reason=body.reason, length=body.length
    )
    return ok(shown)


@post(
    f"{API}/jobs/{{ref}}/circuit/close", "circuits.close", CircuitView,
    access=OPERATE, scope=by_job, audit=CHANGES, refuses=(NotFound, Conflict),
)  # fmt: skip
async def close_circuit(call: ApiCall, body: CircuitOverride) -> Response:
    """Close a circuit by hand. Failures do not open it until it is reset."""
    shown = await call.node.admission.circuit_breakers.close(
        call.namespace, call.path("ref"), by=call.caller, key=body.key, reason=body.reason
    )
    return ok(shown)


@post(
    f"{API}/jobs/{{ref}}/circuit/reset", "circuits.reset", CircuitView,
    access=OPERATE, scope=by_job, audit=CHANGES, refuses=(NotFound, Conflict),
)  # fmt: skip
async def reset_circuit(call: ApiCall, body: CircuitOverride) -> Response:
    """Close a circuit, reset its counts, and end any manual override."""
    shown = await call.node.admission.circuit_breakers.reset(
        call.namespace, call.path("ref"), by=call.caller, key=body.key, reason=body.reason
    )
    return ok(shown)
