"""The store: what it is, which revision its tables have, and the settings that matter."""

from horae.model.base.store_view import StoreView
from horae.server.access import OVERSEE
from horae.server.call import ApiCall
from horae.server.reply import Response, ok
from horae.server.route import API, get
from horae.server.scopes import closed


@get(f"{API}/store", "store.get", StoreView, access=OVERSEE, scope=closed)
async def get_store(call: ApiCall) -> Response:
    """Read what the store says of itself: kind, revision, settings, what is sealed, and why nothing is archived."""
    return ok(await call.node.report())
