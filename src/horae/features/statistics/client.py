"""How jobs and whole namespaces fare, as the client gives it back."""

from datetime import datetime
from typing import Any

from horae.client.encode import instant
from horae.client.views import ApiDocument


class OverviewInfo(ApiDocument, frozen=True, kw_only=True):
    """A namespace at a glance; the series and the timeline are in `raw`."""

    counts: dict[str, int]
    ended: dict[str, int]
    queues: list[dict[str, Any]]
    workers: dict[str, int]
    running: list[dict[str, Any]]


def window(since: datetime | str | None, until: datetime | str | None) -> dict[str, Any]:
    """A window as a query spells it."""
    return {"from": since and instant(since), "to": until and instant(until)}
