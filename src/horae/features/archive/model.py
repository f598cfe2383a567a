"""The archive as the API shows it."""

from horae.model.base.view import View
from horae.model.executions.execution_view import ExecutionView


class ArchivePage(View, frozen=True, kw_only=True):
    """A page of archived executions; `nextCursor` is null on the last page, `notes` names files that cannot be read."""

    items: list[ExecutionView]
    next_cursor: str | None = None
    notes: list[str] = []
