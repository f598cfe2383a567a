"""The ASGI application: it finds the route of a request and returns the route's answer."""

from collections.abc import Collection
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from horae.engine.parts.part import ROLES
from horae.engine.server_node import ServerNode
from horae.errors import BadInput, Forbidden
from horae.server.audit_recording import AuditRecorder
from horae.server.body_budget import BodyBudget
from horae.server.cors import Cors
from horae.server.dispatch import answer, unmatched
from horae.server.http.proxies import Proxies
from horae.server.metrics.exposition import Metrics
from horae.server.problems import PROPER_ID, REQUEST_ID, problem
from horae.server.reply import Receive, Response, Send, encode
from horae.server.route import Route
from horae.server.router import Found, Router
from horae.server.routes.table import ROUTES, routes_for
from horae.server.shaping import adapt_answer
from horae.server.streaming.stream import EventStreams


class Application:
    """Serves requests to a node. The creator of the node starts and stops the node; this class does not."""

    def __init__(
        self,
        node: ServerNode,
        parts: Collection[str] = ROLES,
        *,
        certified: bool = False,
        proxies: Proxies | None = None,
        cors: Cors | None = None,
    ) -> None:
        """Create the application with the routes of `parts`, such as "api" and "gateway".

        With `certified`, workers must present a client certificate.
        """
        self.node, self._parts, self._certified = node, parts, certified
        self.proxies, self._cors = proxies or Proxies(), cors or Cors()
        self.metrics = Metrics(node)
        self.streams, self.body_budget, self.recorder = EventStreams(node), BodyBudget(), AuditRecorder(ROUTES)
        self._served, refusing = routes_for(node.features)
        routes = (route for route in (*self._served, *refusing) if has_route(parts, route))
        self._router = Router((route.method, route.path, route) for route in routes)

    @cached_property
    def document(self) -> bytes:
        """Return the OpenAPI document of this server's routes, encoded."""
        from horae.server.openapi import build

        return encode(build(self._served))

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer a call of an ASGI server or of this process, and add the header X-Request-Id to the answer.

        `HttpListener` does not call this method: it calls `answer` and adds the header itself.
        """
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
            return
        if scope["type"] != "http":
            raise NotImplementedError(f"This application has no {scope['type']}: start and stop its node yourself.")
        own = dict(scope["headers"]).get(b"x-request-id", b"")
        request_id = own if PROPER_ID.fullmatch(own) else self.node.env.new_id().hex.encode()

        async def send_with_id(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (b"x-request-id", request_id)]}
            await send(message)

        before = REQUEST_ID.set(request_id.decode("latin-1"))
        try:
            await (await self.answer(scope, receive))(scope, receive, send_with_id)
        finally:
            REQUEST_ID.reset(before)

    async def answer(self, scope: dict[str, Any], receive: Receive) -> Response:
        """Answer a request. If the settings allow the origin of the request, add CORS headers for its pages."""
        headers = scope["fields"] = dict(scope["headers"])
        origin = self._cors.allowed(headers)
        if origin is None:
            return await self._answer(scope, headers, receive)
        if scope["method"] == "OPTIONS" and b"access-control-request-method" in headers:
            return self._cors.preflight(origin)
        return self._cors.open(await self._answer(scope, headers, receive), origin)

    async def _answer(self, scope: dict[str, Any], headers: dict[bytes, bytes], receive: Receive) -> Response:
        found = self._router.find(scope["path"]) if b"%2" not in scope.get("raw_path", b"") else self._quoted(scope)
        method = scope["method"]
        route = None if found is None else found[0].get("GET" if method == "HEAD" else method)
        if found is None or route is None:
            return await unmatched(self.node, scope, {} if found is None else found[0], self._parts)
        if self.proxies.hosts and route.tag != "health" and not self.proxies.is_own_host(scope):
            return problem(wrong_host(), scope["path"])
        if self._certified and route.tag == "sessions" and not scope.get("certified"):
            return problem(missing_certificate(), scope["path"])
        scope["app"], scope["path_params"] = self, found[1]
        monotonic = self.node.env.clock.monotonic
        began = monotonic()
        reply = await answer(self.node, route, scope, receive)
        self.metrics.answered(route, reply.status, monotonic() - began)
        return await adapt_answer(reply, route, headers) if route.method == "GET" else reply

    def _quoted(self, scope: dict[str, Any]) -> Found[Route] | None:
        """Find the routes of a path with a percent-encoded slash, which belongs to a name: `jobs/etl%2Fload`."""
        found = self._router.find(scope["raw_path"].decode("latin-1"))
        return None if found is None else (found[0], {name: unquote(text) for name, text in found[1].items()})


def has_route(parts: Collection[str], route: Route) -> bool:
    """Return whether a server that runs these parts has this route. Every server has routes for health and metrics."""
    return route.tag in ("health", "metrics") or ("gateway" if route.tag == "sessions" else "api") in parts


def wrong_host() -> BadInput:
    """Return the refusal of a request for a host name that is not this server's."""
    return BadInput(
        "The Host of this request is not a name of this server.",
        "Use a host name that the server's setting allowed_hosts lists.",
        field="Host",
    )


def missing_certificate() -> Forbidden:
    """Return the refusal of a worker without a certificate."""
    return Forbidden(
        "This server requires a client certificate of workers, and this worker presented none.",
        "Set HORAE_CLIENT_CERT and HORAE_CLIENT_KEY to a certificate that the server's tls_client_ca signed.",
    )
