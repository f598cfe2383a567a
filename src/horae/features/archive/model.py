"""The archive as the API shows it."""

from horae.model.base.view import View
from horae.model.executions.execution_view import ExecutionView


class ArchivePage(View, frozen=True, kw_only=True):
    """Executions of the archive; `nextCursor` is null at the end, and `notes` name files that could not be read."""

    items: list[ExecutionView]
    next_cursor: str | None = None
    notes: list[str] = []
