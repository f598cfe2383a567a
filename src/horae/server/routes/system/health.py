"""Health checks: liveness and readiness."""

from horae.env import SECOND
from horae.errors import StoreUnavailable
from horae.model.base.view import View
from horae.server.access import PUBLIC
from horae.server.call import ApiCall
from horae.server.reply import Response, ok
from horae.server.route import get
from horae.server.scopes import closed
from horae.version import __version__


class Health(View, frozen=True, kw_only=True):
    """The state of the server; `note` names a stopped function of a server that otherwise works."""

    status: str
    version: str
    note: str | None = None


@get("/healthz", "health.live", Health, access=PUBLIC, scope=closed)
async def live(call: ApiCall) -> Response:
    """Answer while the process is alive."""
    return ok(Health(status="ok", version=__version__))


@get("/readyz", "health.ready", Health, access=PUBLIC, scope=closed, refuses=(StoreUnavailable,))
async def ready(call: ApiCall) -> Response:
    """Check that the store answers, its disk is not full, and the server can work."""
    if not call.node.ready:
        detail = "The store cannot be reached, or its disk is full."
        raise StoreUnavailable(detail, "Check the store; this server continues as soon as the store works.")
    return ok(Health(status="ready", version=__version__, note=_note(call)))


def _note(call: ApiCall) -> str | None:
    clock = call.node.base.clock
    if clock.trusted:
        return None
    note = f"Schedules are stopped: the store's clock jumped by {clock.jump / SECOND:+.0f} s."
    return f"{note} Correct the clock, or accept its time: horae doctor --accept-clock."
