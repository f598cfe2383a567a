"""The clock: this server's time, and trust in it. After a jump, firing stops until a user accepts the new time."""

from horae.model.base.instant import format_instant
from horae.model.base.view import Time, View
from horae.server.access import INSTALLATION, VIEW
from horae.server.call import ApiCall
from horae.server.reply import Response, ok
from horae.server.route import API, REQUEST, get, post
from horae.server.scopes import closed, unscoped


class ClockView(View, frozen=True, kw_only=True):
    """The server's time, whether it is trusted, and the jump of the store's clock since it was last trusted."""

    now: Time
    trusted: bool
    jump_seconds: float


def _view(call: ApiCall) -> ClockView:
    clock = call.node.base.clock
    return ClockView(
        now=format_instant(call.node.env.now()), trusted=clock.trusted, jump_seconds=clock.jump / 1_000_000
    )


@get(f"{API}/clock", "clock.get", ClockView, access=VIEW, scope=unscoped)
async def read(call: ApiCall) -> Response:
    """Read the server's clock."""
    return ok(_view(call))


@post(f"{API}/clock/accept", "clock.accept", ClockView, access=INSTALLATION, scope=closed, audit=REQUEST, status=200)
async def accept(call: ApiCall) -> Response:
    """Accept the present time on all servers, so that triggers fire and old data expires again."""
    call.node.base.clock.accept()
    return ok(_view(call))
