"""Approvals as the API shows them."""

from uuid import UUID

from horae.model.base.view import Time, View


class ApprovalView(View, frozen=True, kw_only=True):
    """A workflow step that waits for an approval.

    If `roles` is empty, every user with the role operator or a higher one may answer. `until` is when the wait times
    out, if it has a timeout.
    """

    execution_id: UUID
    job_id: UUID
    job_name: str
    step: str
    message: str
    roles: list[str]
    since: Time
    until: Time | None = None
