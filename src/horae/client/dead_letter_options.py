"""Keywords of requests. `python -m tools.sdk` writes this module from the tables of their fields."""

from datetime import datetime
from typing import TypedDict

from horae.model.executions.job_exceptions import Span


class DeadLetterFilters(TypedDict, total=False):
    """A selection of dead letters: all given conditions must hold."""

    job: str | None
    """Only those of this job, by name or id."""
    queue: str | None
    """Only those of this queue."""
    error_type: str | None
    """The type of their error."""
    reason: str | None
    """Why they ended: retries, permanent, runTimeout..."""
    text: str | None
    """A part of the error's message."""
    since: datetime | str | None
    """Not before this."""
    until: datetime | str | None
    """Before this."""
    older_than: Span | None
    """Made longer ago than this, as 7d."""
