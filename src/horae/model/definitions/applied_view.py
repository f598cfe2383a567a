"""The result of an apply, as the API shows it."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta

from horae.model.base.view import View
from horae.model.definitions.reading.diff import Difference

Outcome = Literal["created", "changed", "unchanged"]


class AppliedDocumentView(View, frozen=True, kw_only=True):
    """The result of an apply for one document."""

    kind: Literal["calendar", "template", "job"]
    name: str
    outcome: Outcome
    version: int
    job_id: UUID | None = None
    changes: Annotated[list[Difference], Meta(description="Changes of an existing job.")] = []
    affected: Annotated[list[str], Meta(description="Jobs that changed because they use the template.")] = []


class AppliedDocumentsView(View, frozen=True, kw_only=True):
    """The results for all documents: calendars and templates first, then jobs in order of application."""

    items: list[AppliedDocumentView]
    dry_run: bool = False
