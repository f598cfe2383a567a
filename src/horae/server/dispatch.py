"""The processing of every request before and after its route runs.

The credential and its role are checked before the body is read, and its scope after the body is decoded. Every error
becomes a problem document; no detail of an unexpected exception leaves the process.
"""

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from horae.engine.definitions.permits import ACTOR
from horae.engine.parts.part import ROLES
from horae.engine.server_node import ServerNode
from horae.errors import BadInput, Forbidden, HoraeError, Misdirected, NotFound
from horae.model.tenancy.principal import Principal
from horae.server.audit_recording import AuditRecorder
from horae.server.auth import authenticate, authenticate_monitoring, authorise
from horae.server.body_budget import BodyBudget, large_body_size
from horae.server.call import NOBODY, ApiCall
from horae.server.idempotency import run_once
from horae.server.problems import MethodNotAllowed, problem, unexpected_problem
from horae.server.reading.bodies import ClientGone, check_media, decode, read_body, refuse_nul
from horae.server.reading.queries import decode_query
from horae.server.reading.worker_bodies import INSTALLATION, STRICT, decode_worker_body
from horae.server.reply import Receive, Response, Scope
from horae.server.route import Route

BODIED = frozenset({"POST", "PUT", "PATCH"})


async def answer(node: ServerNode, route: Route, scope: Scope, receive: Receive) -> Response:
    """Answer a request that a route matched."""
    try:
        headers = scope["fields"]
        public = route.is_public
        who = NOBODY if public else await _admit(node, route, scope, headers, receive)
        if route.method not in BODIED or route.streams:
            return await _acting(ApiCall(node, route, scope, headers, who, b"", receive))
        size = 0 if public else large_body_size(route, headers)
        budget: BodyBudget = scope["app"].body_budget
        if size:
            await budget.enter(who.namespace, size)
        try:
            body = await _read(route, headers, receive)
            if size and route.name == "sessions.exchange":  # it may wait for work long after its body was read
                budget.leave(who.namespace, size)
                size = 0
            return await _acting(ApiCall(node, route, scope, headers, who, body, receive))
        finally:
            if size:
                budget.leave(who.namespace, size)
    except HoraeError as error:
        return problem(error, scope["path"])
    except ClientGone:
        return Response(499)  # the client is gone
    except Exception as error:
        if isinstance(error, OverflowError) or isinstance(error.__cause__, OverflowError):
            return problem(
                BadInput("A number is larger than the store can hold.", "Send a smaller number."), scope["path"]
            )
        return unexpected_problem(error, route.name, scope["path"])


async def _read(route: Route, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
    body = await read_body(receive, headers.get(b"content-length"), route.limit)
    if body:
        check_media(headers, body, is_json=route.body is not None)
    return body


async def _acting(call: ApiCall) -> Response:
    before = ACTOR.set(call.who)
    try:
        return await _in_turn(call)
    finally:
        ACTOR.reset(before)


async def unmatched(
    node: ServerNode, scope: Scope, there: Mapping[str, Route], parts: Collection[str] = ROLES
) -> Response:
    """Answer a request that no route matched. `there` has the routes of its path by method, or nothing.

    A client without a credential does not learn which paths exist.
    """
    try:
        if scope["path"] == "*":  # a request about the whole server; no route has this path
            return Response(204, headers=((b"allow", b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"),))
        if not there or not all(route.is_public for route in there.values()):
            node.tenancy.request_rates.take(await authenticate(node.tenancy.keys, "GET", scope["fields"]))
        if there:
            return _not_allowed(scope, ", ".join([*there, *(("HEAD",) if "GET" in there else ()), "OPTIONS"]))
        remedy = "/openapi.json lists all paths."
        if len(parts) < len(ROLES):
            remedy = (
                f"This server runs only {' and '.join(sorted(parts))} (--only). Use a server that runs the other parts."
            )
        raise NotFound(f"There is nothing at {scope['path'][:200]}.", remedy)
    except HoraeError as error:
        return problem(error, scope["path"])
    except Exception as error:
        return unexpected_problem(error, "unmatched", scope["path"])


def _not_allowed(scope: Scope, allow: str) -> Response:
    """Answer an OPTIONS request for a path, or refuse a method that it does not have."""
    if scope["method"] == "OPTIONS":
        return Response(204, headers=((b"allow", allow.encode()),))
    detail = f"{scope['path'][:200]} has no method {scope['method'][:20]}."
    raise MethodNotAllowed(detail, f"Its methods are {allow}.", allow=allow)


async def _admit(
    node: ServerNode, route: Route, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive
) -> Principal:
    ask = authenticate_monitoring if route.is_monitoring else authenticate
    who = await ask(node.tenancy.keys, route.method, headers)
    node.base.fair_access.note_use(who.namespace)
    if route.is_counted:
        node.tenancy.request_rates.take(who)
        node.base.fair_access.count_request(who.namespace)
    try:
        authorise(who, route)
    except Forbidden as error:
        await _recorder(scope).record_denial(ApiCall(node, route, scope, headers, who, b"", receive), error)
        raise
    return who


def _body(call: ApiCall, decoder: msgspec.json.Decoder[Any]) -> Any:
    if call.route.tag == "sessions":
        return decode_worker_body(call.body, decoder, strict=call.headers.get(STRICT, b"0") != b"0")
    return decode(call.body, decoder)


async def _check_scope(call: ApiCall, arguments: Mapping[str, Any]) -> None:
    try:
        await call.route.scope(call, arguments)
    except Forbidden as error:
        await _recorder(call.scope).record_denial(call, error)
        raise


def _check_installation(call: ApiCall) -> None:
    """Refuse a worker that registered with another installation, such as a copy of this one with the same servers."""
    named, known = call.headers.get(INSTALLATION, b"").decode("latin-1"), call.node.base.epochs.installation
    if named and known is not None and not known.accepts(named):
        detail = "This worker registered with another installation of Horae than this server belongs to."
        remedy = "Use that installation's servers. To use the worker here, restart it with the URL of this server."
        raise Misdirected(detail, remedy, installation=str(known.id))


def _recorder(scope: Scope) -> AuditRecorder:
    recorder: AuditRecorder = scope["app"].recorder
    return recorder


async def _in_turn(call: ApiCall) -> Response:
    """Perform a call, after waiting for its namespace's turn if its route requires that."""
    if call.route.tag == "sessions":
        _check_installation(call)
    if not call.route.takes_turn:
        return await _perform(call)
    try:
        await call.node.base.fair_access.enter(call.who.namespace)
        return await _perform(call)
    finally:
        call.node.base.fair_access.leave(call.who.namespace)


async def _perform(call: ApiCall) -> Response:
    """Decode the input of a call and run its route. A repetition with an Idempotency-Key gets the stored answer."""
    route, arguments = call.route, dict[str, Any]()
    if "\0" in call.scope["path"]:
        raise NotFound("The path contains the character NUL, which no name has.", "Remove the character.")
    if route.query is not None:
        arguments["query"] = decode_query(call.scope["query_string"], route.query)
    if route.body is not None:
        if route.texts:
            refuse_nul(call.body)
        arguments["body"] = _body(call, route.body)
    if call.who.scoped:
        await _check_scope(call, arguments)

    async def run() -> Response:
        return await route.run(call, **arguments)

    async def act() -> Response:
        return await run() if route.audit is None else await _recorder(call.scope).record(call, run)

    if getattr(arguments.get("query"), "dry_run", False):  # nothing changes: no audit entry, no stored answer
        return await run()
    if route.idempotency == "stored" and (key := call.idempotency_key()) is not None:
        return await run_once(call, key, act)
    return await act()
