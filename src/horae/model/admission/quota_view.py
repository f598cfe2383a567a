"""Quotas and usage of namespaces, as the API shows them."""

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
    QuotaView = view(QUOTA, "QuotaView", "The quota of a namespace; null means unbounded.", _OfNamespace)


class QuotaDayView(View, frozen=True, kw_only=True):
    """The usage of a UTC day.

    It counts executions created, worker time, bytes of params and results, and executions that a quota refused.
    """

    day: str
    executions: int
    worker_seconds: float
    stored_bytes: int
    refused: int


class UsageView(View, frozen=True, kw_only=True):
    """The current and daily usage of a namespace; `exceeded` says which daily bound is used up today."""

    namespace: str
    queued: int
    waiting: int
    running: int
    exceeded: str | None = None
    quota: dict[str, Any]
    days: list[QuotaDayView]


def show_quota(namespace: str, quota: Quota) -> QuotaView:
    return QuotaView(namespace=namespace, **QUOTA.keywords(QUOTA.write(quota)))
