"""The store: what it is, which revision its tables have, and the settings that matter."""

from horae.server.call import Call
from horae.server.reply import Reply, ok
from horae.server.route import API, get
from horae.server.views import StoreView
from horae.store.checkup import examine


@get(f"{API}/store", "store.get", StoreView)
async def get_store(call: Call) -> Reply:
    """Read what the store says of itself: kind, version, revision, settings that matter, and what of it is sealed."""
    facts = await examine(call.node.store.driver, call.node.env.now())
    return ok(StoreView.of(facts, await call.node.sealing_check.look()))
