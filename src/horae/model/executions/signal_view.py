"""What is shown of a signal."""

from uuid import UUID

from horae.model.base.view import View


class SignalView(View, frozen=True, kw_only=True):
    """A signal that was taken: `delivered` to a step that waited for it, or kept for one that will."""

    execution_id: UUID
    name: str
    delivered: bool
