"""Failed sign-ins, told to the audit log."""

from horae.errors import HoraeError
from horae.features.users.model import NAME
from horae.server.call import Call


async def failed(call: Call, error: HoraeError, name: str = "") -> None:
    """The audit log hears of who did not get in, but not of a server that could not look.

    What cannot be a name is left out: it may be a password in the wrong place.
    """
    if error.status < 500:
        known = name if NAME.fullmatch(name) else ""
        await call.node.audit_log.fail(call.route.name, known, call.address, error.detail)
