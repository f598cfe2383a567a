"""The application: Litestar matches requests to routes; the door and the routes do the rest.

Litestar's own layers for bodies, answers and schemas are not used: its schemas know neither `forbid_unknown_fields` nor
`extra_json_schema`, and its way through a handler costs more than everything here together (28 us a request, not 60).
"""

from collections.abc import Collection
from typing import Any

from litestar import Litestar, Request, Response
from litestar.datastructures import State
from litestar.exceptions import MethodNotAllowedException, NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp

from horae.engine.node import PARTS, Node
from horae.server.door import answer, unmatched
from horae.server.metrics import Metrics
from horae.server.reply import Receive, Scope, Send
from horae.server.route import Route
from horae.server.routes import ROUTES

Unmatched = NotFoundException | MethodNotAllowedException


def create_app(node: Node, parts: Collection[str] = PARTS) -> Litestar:
    """The ASGI application that serves these parts of a node; whoever made the node starts and stops it."""
    metrics = Metrics(node)
    routes = [route for route in ROUTES if serves(parts, route)]
    return Litestar(
        route_handlers=[_no_options({_path(r) for r in routes}), *(_handler(node, metrics, r) for r in routes)],
        exception_handlers={NotFoundException: _no_route, MethodNotAllowedException: _no_route},
        openapi_config=None,
        logging_config=None,
        state=State({"node": node, "metrics": metrics}),
    )


def serves(parts: Collection[str], route: Route) -> bool:
    """Whether a server that runs these parts has this route; every server can be watched."""
    return route.tag in ("health", "metrics") or ("gateway" if route.tag == "sessions" else "api") in parts


def _handler(node: Node, metrics: Metrics, route: Route) -> HTTPRouteHandler:
    """A route as Litestar knows it: it stands where a middleware stands and answers by itself.

    So a request goes from the router straight to the door, which costs half of the way through a handler.
    """
    clock = node.env.clock

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        began = clock.monotonic()
        reply = await answer(node, route, scope, receive)
        metrics.answered(route, reply.status, clock.monotonic() - began)
        await reply(scope, receive, send)

    async def never() -> None:
        raise NotImplementedError

    return HTTPRouteHandler(
        _path(route), http_method=route.method, name=route.name, status_code=204, middleware=[lambda app: handle]
    )(never)


def _path(route: Route) -> str:
    return route.path.replace("{file}", "{file:path}").replace("{ref}", "{ref:str}").replace("{id}", "{id:str}")


def _no_options(paths: set[str]) -> HTTPRouteHandler:
    """Without this, and before all others, Litestar would answer OPTIONS by itself, to everybody."""

    async def handle(request: Request[Any, Any, Any]) -> ASGIApp:
        methods = (route.method for route in ROUTES if route.path == request.scope["path_template"])
        raise MethodNotAllowedException(headers={"allow": ", ".join(methods)})

    return HTTPRouteHandler(sorted(paths), http_method="OPTIONS", name="no-options", status_code=200)(handle)


class _NoRoute(Response[None]):
    """Litestar's error handlers cannot wait; their answers can."""

    def __init__(self, error: Unmatched) -> None:
        super().__init__(None)
        allow = (error.headers or {}).get("allow")
        self._allow = None if allow is None else ", ".join(m for m in allow.split(", ") if m != "OPTIONS")

    def to_asgi_response(self, app: Litestar | None, request: Request[Any, Any, Any], **_: Any) -> Any:
        """An answer that asks who is asking before it says that there is nothing here."""
        node: Node = request.app.state.node

        async def respond(scope: Scope, receive: Receive, send: Send) -> None:
            reply = await unmatched(node, scope, self._allow)
            await reply(scope, receive, send)

        return respond


def _no_route(request: Request[Any, Any, Any], error: Unmatched) -> Response[None]:
    return _NoRoute(error)
