"""Quotas of namespaces and what they used, as the API shows them."""

from typing import Any

from horae.model.base.view import View


class QuotaView(View, frozen=True, kw_only=True):
    """What a namespace may have and use; null is without a bound."""

    namespace: str
    queued: int | None = None
    running: int | None = None
    executions_per_day: int | None = None
    worker_seconds_per_day: int | None = None
    stored_bytes_per_day: int | None = None
    submissions_per_second: float | None = None
    over: str = "refuse"
    starts_per_second: float | None = None


class DayView(View, frozen=True, kw_only=True):
    """What was used in a day of UTC: executions that were made, time of workers, bytes of params and results; and how
    many executions a quota refused.
    """

    day: str
    executions: int
    worker_seconds: float
    stored_bytes: int
    refused: int


class UsageView(View, frozen=True, kw_only=True):
    """What a namespace has now and used by day; `over` says which quota of today is used up."""

    namespace: str
    queued: int
    waiting: int
    running: int
    over: str | None = None
    quota: dict[str, Any]
    days: list[DayView]
