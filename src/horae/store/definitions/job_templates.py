"""Which templates jobs are made from, as changes of jobs look at them.

Whoever changes a template, or makes a job from one, holds the lock of the namespace's dependencies: so what was read
under it is still true when it is written, and a change finds all that it affects.
"""

from uuid import UUID

from horae.model.definitions.template_use import TemplateUse
from horae.store.script import Fetch, Insert, Script, Statement

PRESENT = Statement("template_version", "SELECT version FROM templates WHERE id = $1 AND deleted_at IS NULL")
FORGET = Statement("forget_template_job", "DELETE FROM template_jobs WHERE job = $1")


def present(id: UUID) -> Script[int | None]:
    """A template's present version; None when it is deleted."""
    rows = yield Fetch(PRESENT, (id,))
    return int(rows[0][0]) if rows else None


def use(job: UUID, before: TemplateUse | None, after: TemplateUse | None) -> Script[None]:
    """Note which template a job is made from now."""
    if (before and before.template) == (after and after.template):
        return
    yield Fetch(FORGET, (job,))
    if after is not None:
        yield Insert("template_jobs", (("job", "uuid"), ("template", "uuid")), [(job, after.template)])
