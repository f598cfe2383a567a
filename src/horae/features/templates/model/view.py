"""Templates as the API shows them, and the effect of a change on the jobs made from one."""

from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta

from horae.features.templates.model.values import JobTemplate
from horae.model.base.instant import format_instant
from horae.model.base.view import Time, Versioned, View
from horae.model.definitions.reading.diff import Difference


class AffectedJobView(View, frozen=True, kw_only=True):
    """A job that changes with its template: its changes, or the error if it can no longer be made from the template."""

    job_id: UUID
    job: str
    changes: list[Difference]
    error: str | None = None


class TemplateView(View, Versioned, frozen=True, kw_only=True):
    """A template: its parameters, the definition with placeholders, and the jobs made from it."""

    template_id: UUID
    name: str
    version: int
    created_at: Time
    updated_at: Time
    description: str
    parameters: Annotated[
        dict[str, Any],
        Meta(description="A JSON schema for each parameter. Jobs may omit parameters whose schema has a default."),
    ]
    job: dict[str, Any]
    jobs: Annotated[list[str], Meta(description="The jobs made from the template; empty in lists of templates.")]
    affected: Annotated[
        list[AffectedJobView], Meta(description="The jobs that this change of the template changed, or would change.")
    ]
    dry_run: bool = False


def show_template(template: JobTemplate) -> TemplateView:
    """Return the view of a template."""
    return TemplateView(
        template_id=template.id,
        name=template.name,
        version=template.version,
        created_at=format_instant(template.created_at),
        updated_at=format_instant(template.updated_at),
        description=template.body.description,
        parameters=template.body.parameters,
        job=template.body.job,
        jobs=[],
        affected=[],
    )
