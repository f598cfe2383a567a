"""Metrics for Prometheus."""

from horae.server.access import OVERSEE
from horae.server.call import ApiCall
from horae.server.metrics.exposition import CONTENT_TYPE, exposition
from horae.server.reply import Response
from horae.server.route import get
from horae.server.scopes import closed


@get("/metrics", "metrics.read", str, access=OVERSEE, scope=closed, media="text/plain")
async def read(call: ApiCall) -> Response:
    """Read this server's metrics in Prometheus' text format."""
    return Response(200, await exposition(call), CONTENT_TYPE)
