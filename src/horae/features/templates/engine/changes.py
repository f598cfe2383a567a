"""Changes of templates as scripts. In one transaction, each changes a template and all its jobs, or changes nothing."""

from collections.abc import Collection, Sequence
from uuid import UUID

from horae.engine.definitions import job_changes
from horae.engine.definitions.job_changes import JobDraft, NewId
from horae.env import Instant
from horae.features.templates.model.values import Body, JobTemplate
from horae.features.templates.store import templates
from horae.store.base import locks
from horae.store.definitions import job_templates
from horae.store.definitions.jobs import StoredJob
from horae.store.script import Script
from horae.store.triggers.dependencies.starts import Consequences

Seen = Collection[tuple[UUID, int]]  # the jobs that were made from a template when they were read, with their versions


class JobsChanged(Exception):
    """The template or its jobs have changed since they were read, so the change must be computed again."""


def create(template_id: UUID, namespace: int, name: str, body: Body, now: Instant) -> Script[bool]:
    """Create a template; return False if its name is taken."""
    yield from locks.take(locks.of_dependencies(namespace))
    return (yield from templates.add(template_id, namespace, name, body, now))


def change(
    before: JobTemplate,
    body: Body,
    seen: Seen,
    edits: Sequence[tuple[StoredJob, JobDraft]],
    new_id: NewId,
    now: Instant,
    consequences: Consequences,
) -> Script[None]:
    """Write the next version of a template and of all jobs that it changes.

    Raises JobsChanged, or the error of one job.
    """
    uses_calendars = any(when.rules.calendars for _, draft in edits for when in draft.whens)
    calendar_locks = (locks.of_calendars(before.namespace),) if uses_calendars else ()
    yield from locks.take(locks.of_dependencies(before.namespace), *calendar_locks)
    yield from _check(before, seen)  # guard: template-unchanged
    yield from templates.change(before.id, before.version + 1, body, now)
    for job, draft in edits:
        if not (yield from job_changes.edit(job, draft, new_id, now, consequences=consequences)):
            raise JobsChanged


def delete(before: JobTemplate, now: Instant) -> Script[list[str]]:
    """Delete a template, unless jobs are made from it; return the names of these jobs. Raises JobsChanged."""
    yield from locks.take(locks.of_dependencies(before.namespace))
    if (yield from job_templates.present(before.id)) != before.version:
        raise JobsChanged
    users = yield from templates.users(before.id)
    if not users:
        yield from templates.delete(before.id, now)
    return [one.job.name for one in users]


def _check(before: JobTemplate, seen: Seen) -> Script[None]:
    if (yield from job_templates.present(before.id)) != before.version:
        raise JobsChanged
    users = yield from templates.users(before.id)
    if {(one.job.id, one.job.version) for one in users} != set(seen):
        raise JobsChanged
