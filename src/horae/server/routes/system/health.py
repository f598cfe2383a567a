"""The health of this server: liveness, readiness, metrics for Prometheus, and trust in the clock.

After a jump of the clock, firing stops until a user accepts the new time.
"""

from horae.env import SECOND
from horae.errors import StoreUnavailable
from horae.model.base.instant import format_instant
from horae.model.base.view import Time, View
from horae.server.access import INSTALLATION, OVERSEE, PUBLIC, VIEW
from horae.server.call import ApiCall
from horae.server.metrics.exposition import CONTENT_TYPE, exposition
from horae.server.reply import Response, ok
from horae.server.route import API, REQUEST, get, post
from horae.server.scopes import closed, unscoped
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


@get("/metrics", "metrics.read", str, access=OVERSEE, scope=closed, media="text/plain")
async def read_metrics(call: ApiCall) -> Response:
    """Read this server's metrics in Prometheus' text format."""
    return Response(200, await exposition(call), CONTENT_TYPE)


class ClockView(View, frozen=True, kw_only=True):
    """The server's time, whether it is trusted, and the jump of the store's clock since it was last trusted."""

    now: Time
    trusted: bool
    jump_seconds: float


def _clock_view(call: ApiCall) -> ClockView:
    clock = call.node.base.clock
    return ClockView(
        now=format_instant(call.node.env.now()), trusted=clock.trusted, jump_seconds=clock.jump / 1_000_000
    )


@get(f"{API}/clock", "clock.get", ClockView, access=VIEW, scope=unscoped)
async def read_clock(call: ApiCall) -> Response:
    """Read the server's clock."""
    return ok(_clock_view(call))


@post(f"{API}/clock/accept", "clock.accept", ClockView, access=INSTALLATION, scope=closed, audit=REQUEST, status=200)
async def accept_time(call: ApiCall) -> Response:
    """Accept the present time on all servers, so that triggers fire and old data expires again."""
    call.node.base.clock.accept()
    return ok(_clock_view(call))
