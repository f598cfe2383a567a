"""Approvals as the API shows them."""

from uuid import UUID

from horae.model.base.view import Time, View


class ApprovalView(View, frozen=True, kw_only=True):
    """A step of a workflow that waits for somebody: what it asks, and whom; `roles` is empty for whoever operates.

    `until` is when the wait ends by itself, if it does.
    """

    execution_id: UUID
    job_id: UUID
    job_name: str
    step: str
    message: str
    roles: list[str]
    since: Time
    until: Time | None = None
