"""What an apply has done, as the API shows it."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta

from horae.model.base.view import View
from horae.model.definitions.reading.diff import Difference

Outcome = Literal["created", "changed", "unchanged"]


class AppliedView(View, frozen=True, kw_only=True):
    """What became of one document."""

    kind: Literal["calendar", "template", "job"]
    name: str
    outcome: Outcome
    version: int
    job_id: UUID | None = None
    changes: Annotated[list[Difference], Meta(description="What changed of a job that was there.")] = []
    affected: Annotated[list[str], Meta(description="Jobs that changed because they are made from the template.")] = []


class AppliedListView(View, frozen=True, kw_only=True):
    """What became of all documents, calendars and templates first, jobs in the order in which they were applied."""

    items: list[AppliedView]
    dry_run: bool = False
