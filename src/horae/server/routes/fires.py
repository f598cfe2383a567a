"""Fires: what became of each nominal fire, and what is to come."""

from horae.errors import BadInput, NotFound
from horae.model.fire_view import FireCountsView, FirePage
from horae.server.call import Call
from horae.server.queries import FireCounting, FireList
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


@get(f"{API}/fires/counts", "fires.count", FireCountsView, refuses=(NotFound, BadInput))
async def count_fires(call: Call, query: FireCounting) -> Reply:
    """Count what fired, was missed or skipped and what is to come, by the hour or the day of a time zone."""
    counted = await call.node.fire_counts.of(
        call.namespace, since=query.from_, until=query.to, by=query.by, zone=query.timezone, job=query.job
    )
    return ok(counted)
