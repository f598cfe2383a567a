"""The application: Litestar matches requests to routes; the door and the routes do the rest.

Litestar's own layers for bodies, answers and schemas are not used: its schemas know neither `forbid_unknown_fields` nor
`extra_json_schema`, and its way through a handler costs more than everything here together (28 us a request, not 60).
"""

from collections.abc import Awaitable, Callable, Collection
from typing import Any

from litestar import Litestar, Request, Response
from litestar.datastructures import State
from litestar.exceptions import HTTPException, MethodNotAllowedException, NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin
from litestar.types import ASGIApp

from horae.engine.node import PARTS, Node
from horae.errors import BadInput
from horae.server.door import answer, unmatched
from horae.server.metrics import Metrics
from horae.server.problems import broken, problem
from horae.server.reply import Receive, Scope, Send
from horae.server.route import Route
from horae.server.routes import ROUTES

Respond = Callable[[Scope, Receive, Send], Awaitable[None]]
Unmatched = NotFoundException | MethodNotAllowedException


class _Lean(Litestar):
    """Litestar without its plugins for pydantic and attrs, which nothing here uses: they cost a tenth of the start."""

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return [*plugins, MsgspecDIPlugin()]


def create_app(node: Node, parts: Collection[str] = PARTS) -> Litestar:
    """The ASGI application that serves these parts of a node; whoever made the node starts and stops it."""
    metrics = Metrics(node)
    routes = [route for route in ROUTES if serves(parts, route)]
    return _Lean(
        route_handlers=[_no_options({_path(r) for r in routes}), *(_handler(node, metrics, r) for r in routes)],
        exception_handlers={
            NotFoundException: _no_route,
            MethodNotAllowedException: _no_route,
            Exception: _not_routed,
        },
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


class _Answer(Response[None]):
    """What an error handler of Litestar may return: it cannot wait, but its answer can."""

    def __init__(self, respond: Respond) -> None:
        super().__init__(None)
        self._respond = respond

    def to_asgi_response(self, app: Litestar | None, request: Request[Any, Any, Any], **_: Any) -> Any:
        """The answer as an ASGI application."""
        return self._respond


def _no_route(request: Request[Any, Any, Any], error: Unmatched) -> _Answer:
    """Ask who is asking before saying that there is nothing here."""
    node: Node = request.app.state.node
    methods = (error.headers or {}).get("allow")
    allow = None if methods is None else ", ".join(m for m in methods.split(", ") if m != "OPTIONS")

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        reply = await unmatched(node, scope, allow)
        await reply(scope, receive, send)

    return _Answer(respond)


def _not_routed(request: Request[Any, Any, Any], error: Exception) -> _Answer:
    """Litestar refused the request, for its Host header say, or failed itself."""
    path = request.scope["path"]
    if isinstance(error, HTTPException) and error.status_code < 500:
        return _Answer(problem(BadInput(f"{error.detail}.", "Send a valid HTTP request."), path))
    return _Answer(broken(error, "routing", path))
