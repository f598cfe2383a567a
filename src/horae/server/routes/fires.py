"""Fires: what became of each nominal fire, and what is to come."""

from horae.errors import BadInput, NotFound
from horae.model.fire_view import FirePage
from horae.server.call import Call
from horae.server.queries import FireList
from horae.server.reply import Reply, ok
from horae.server.route import API, get


@get(f"{API}/fires", "fires.list", FirePage, refuses=(NotFound, BadInput))
async def list_fires(call: Call, query: FireList) -> Reply:
    """Everything that fired or will fire in a window, across jobs, in the order of time."""
    page = await call.node.fires.list(
        call.namespace, since=query.from_, until=query.to, job=query.job, trigger=query.trigger,
        disposition=query.disposition, limit=query.limit, cursor=query.cursor,
    )  # fmt: skip
    return ok(page)
