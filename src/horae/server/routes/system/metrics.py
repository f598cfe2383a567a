"""Metrics for Prometheus."""

from horae.server.call import Call
from horae.server.metrics.exposition import CONTENT_TYPE, exposition
from horae.server.reply import Reply
from horae.server.route import get


@get("/metrics", "metrics.read", str, media="text/plain")
async def read(call: Call) -> Reply:
    """Read this server's metrics in Prometheus' text format."""
    return Reply(200, await exposition(call), CONTENT_TYPE)
