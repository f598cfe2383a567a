"""The record of which jobs use which template.

Each change of a template, and each creation of a job from a template, holds the lock of the namespace's dependencies.
So data that is read under the lock stays true until the commit, and a change of a template finds all jobs that use it.
"""

from uuid import UUID

from horae.model.definitions.template_use import TemplateUse
from horae.store.script import Fetch, Insert, Script, Statement

PRESENT = Statement("template_version", "SELECT version FROM templates WHERE id = $1 AND deleted_at IS NULL")
FORGET = Statement("forget_template_job", "DELETE FROM template_jobs WHERE job = $1")


def present(template: UUID) -> Script[int | None]:
    """Return a template's current version, or None if it was deleted."""
    rows = yield Fetch(PRESENT, (template,))
    return int(rows[0][0]) if rows else None


def use(job: UUID, before: TemplateUse | None, after: TemplateUse | None) -> Script[None]:
    """Record the template that a job uses `after` a change, if it differs from the one `before`."""
    if (before and before.template) == (after and after.template):
        return
    yield Fetch(FORGET, (job,))
    if after is not None:
        yield Insert("template_jobs", (("job", "uuid"), ("template", "uuid")), [(job, after.template)])
