"""The store: what it is, which revision its tables have, and the settings that matter."""

from horae.engine.archive.archiver import DUTY
from horae.server.call import Call
from horae.server.reply import Reply, ok
from horae.server.route import API, get
from horae.server.views import StoreView
from horae.store.checkup import examine
from horae.store.moves import sweep


@get(f"{API}/store", "store.get", StoreView)
async def get_store(call: Call) -> Reply:
    """Read what the store says of itself: kind, revision, settings, what is sealed, and why nothing is archived."""
    facts = await examine(call.node.store.driver, call.node.env.now())
    trouble = await call.node.store.read(lambda: sweep.trouble_of(DUTY))
    return ok(StoreView.of(facts, await call.node.sealing_check.look(), trouble))
