"""Keyword arguments of the client. `python -m tools.sdk` writes this module from the tables of the fields."""

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
    """Only dead letters with this type of error."""
    reason: str | None
    """Only dead letters that ended for this reason: retries, permanent, ..."""
    text: str | None
    """Only dead letters whose error message contains this text."""
    since: datetime | str | None
    """Only dead letters created at this time or later."""
    until: datetime | str | None
    """Only dead letters created before this time."""
    older_than: Span | None
    """Only dead letters created longer ago than this, such as 7d."""
