"""The archive as the API shows it."""

from horae.model.execution_view import ExecutionView
from horae.model.view import View


class ArchivePage(View, frozen=True, kw_only=True):
    """Executions of the archive; `nextCursor` is null at the end, and `notes` name files that could not be read."""

    items: list[ExecutionView]
    next_cursor: str | None = None
    notes: list[str] = []
