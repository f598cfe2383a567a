"""Metrics for Prometheus."""

from horae.server.access import OVERSEE
from horae.server.call import Call
from horae.server.metrics.exposition import CONTENT_TYPE, exposition
from horae.server.reply import Reply
from horae.server.route import get
from horae.server.scopes import closed


@get("/metrics", "metrics.read", str, access=OVERSEE, scope=closed, media="text/plain")
async def read(call: Call) -> Reply:
    """Read this server's metrics in Prometheus' text format."""
    return Reply(200, await exposition(call), CONTENT_TYPE)
