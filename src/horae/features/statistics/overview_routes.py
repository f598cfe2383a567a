"""The route of the overview of a namespace."""

from horae.errors import BadInput
from horae.features.statistics.model.overview_view import OverviewView
from horae.features.statistics.part import StatisticsPart
from horae.server.access import VIEW
from horae.server.call import ApiCall
from horae.server.reading.queries import TimeWindow
from horae.server.reply import Response, ok
from horae.server.route import API, get
from horae.server.scopes import closed


@get(f"{API}/overview", "overview.get", OverviewView, access=VIEW, scope=closed, refuses=(BadInput,))
async def overview(call: ApiCall, query: TimeWindow) -> Response:
    """Read the current state of a namespace, and outcomes in the last hour or another window of the last 31 days."""
    return ok(await call.node.part(StatisticsPart).overview.show(call.namespace, query.since, query.until))
