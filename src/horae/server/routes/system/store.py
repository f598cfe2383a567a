"""The store: its kind, the revision of its tables, and important settings."""

from horae.model.base.store_view import StoreView
from horae.server.access import OVERSEE
from horae.server.call import ApiCall
from horae.server.reply import Response, ok
from horae.server.route import API, get
from horae.server.scopes import closed


@get(f"{API}/store", "store.get", StoreView, access=OVERSEE, scope=closed)
async def get_store(call: ApiCall) -> Response:
    """Read the store's kind, revision, settings and sealed data, and the problem of the archive, if there is one."""
    return ok(await call.node.report())
