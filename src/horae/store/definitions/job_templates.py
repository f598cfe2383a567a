"""The templates of jobs, read and written by changes of jobs.

A change of a template, and the creation of a job from one, hold the lock of the namespace's dependencies. So the data
read under the lock is still true when it is written, and a change of a template finds all its jobs.
"""

from uuid import UUID

from horae.model.definitions.template_use import TemplateUse
from horae.store.script import Fetch, Insert, Script, Statement

PRESENT = Statement("template_version", "SELECT version FROM templates WHERE id = $1 AND deleted_at IS NULL")
FORGET = Statement("forget_template_job", "DELETE FROM template_jobs WHERE job = $1")


def present(template: UUID) -> Script[int | None]:
    """Return a template's present version; None when it is deleted."""
    rows = yield Fetch(PRESENT, (template,))
    return int(rows[0][0]) if rows else None


def use(job: UUID, before: TemplateUse | None, after: TemplateUse | None) -> Script[None]:
    """Record the template that a job is made from now."""
    if (before and before.template) == (after and after.template):
        return
    yield Fetch(FORGET, (job,))
    if after is not None:
        yield Insert("template_jobs", (("job", "uuid"), ("template", "uuid")), [(job, after.template)])
