"""Keywords of requests. `python -m tools.sdk` writes this module from the tables of their fields."""

from datetime import datetime
from typing import TypedDict

from horae.model.executions.job_exceptions import Span


class DeadLetterFilters(TypedDict, total=False):
    """A selection of dead letters: all given conditions must hold."""

    job: str | None
    """Only dead letters of this job, by name or id."""
    queue: str | None
    """Only dead letters of this queue."""
    error_type: str | None
    """The type of their error."""
    reason: str | None
    """The reason of their end: retries, permanent, runTimeout..."""
    text: str | None
    """A part of the error's message."""
    since: datetime | str | None
    """Only dead letters created at this time or later."""
    until: datetime | str | None
    """Only dead letters created before this time."""
    older_than: Span | None
    """Created longer ago than this, such as 7d."""
