"""The overview of a namespace, as the client returns it."""

from datetime import datetime
from typing import Any

from horae.client.encode import instant
from horae.client.views import ApiDocument


class OverviewInfo(ApiDocument, frozen=True, kw_only=True):
    """The overview of a namespace; `raw` has the whole answer, also the series and the timeline."""

    counts: dict[str, int]
    ended: dict[str, int]
    queues: list[dict[str, Any]]
    workers: dict[str, int]
    running: list[dict[str, Any]]


def window(since: datetime | str | None, until: datetime | str | None) -> dict[str, Any]:
    """Return the query parameters of a window of time."""
    return {"from": since and instant(since), "to": until and instant(until)}
