"""Quotas of namespaces and what they used, as the API shows them."""

from typing import TYPE_CHECKING, Any

from horae.model.admission.quota import QUOTA, Quota
from horae.model.base.view import View
from horae.model.fields.derived import view


class _OfNamespace(View, frozen=True, kw_only=True):
    namespace: str


if TYPE_CHECKING:

    class QuotaView(_OfNamespace, frozen=True, kw_only=True):
        pass
else:
    QuotaView = view(QUOTA, "QuotaView", "What a namespace may have and use; null is without a bound.", _OfNamespace)


class QuotaDayView(View, frozen=True, kw_only=True):
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
    days: list[QuotaDayView]


def show_quota(namespace: str, quota: Quota) -> QuotaView:
    return QuotaView(namespace=namespace, **QUOTA.keywords(QUOTA.write(quota)))
