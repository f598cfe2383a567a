"""Dry runs: the job that a creation or an edit would produce. The change is written, and rolled back."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import UUID

from horae.engine.definitions import job_changes
from horae.engine.definitions.job_changes import JobDraft
from horae.engine.definitions.job_views import notes_of, show_version, when_in_words
from horae.engine.definitions.jobs import Jobs
from horae.env import Instant
from horae.errors import Busy
from horae.model.definitions.job import JobVersion
from horae.model.definitions.job_view import JobPlanView
from horae.model.definitions.reading.diff import differences
from horae.store.contract import Store
from horae.store.definitions.jobs import StoredJob
from horae.store.script import Script

NO_JOB = UUID(int=0)  # the id in the plan of a job that does not exist


class _Rollback(Exception):
    """Rolls back a change that was not refused."""


class JobPlans:
    """Dry runs of creations and edits. They refuse the same input as the real operations, and store nothing."""

    def __init__(self, store: Store, jobs: Jobs) -> None:
        self._store, self._jobs = store, jobs

    async def create(self, namespace: int, body: Any) -> JobPlanView:
        """Return the job that POST /api/v1/jobs would create. Raises BadInput, Conflict."""
        draft = await self._jobs.draft(namespace, body)
        new_id = self._store.env.new_id
        await self._try(lambda now: job_changes.create(new_id(), namespace, draft, new_id, now))
        return await self._shown(draft, None)

    async def edit(
        self, namespace: int, ref: str, body: Any, *, if_match: int | None = None, replace: bool = False
    ) -> JobPlanView:
        """Return the job as PATCH (with `replace`: PUT) /api/v1/jobs/{ref} would make it. Raises the same errors."""
        before, draft = await self._jobs.draft_change(namespace, ref, body, if_match, replace=replace)
        if draft.spec != before.job.spec:
            await self._try(lambda now: _edit(before, draft, self._store.env.new_id, now))
        return await self._shown(draft, before)

    async def _try(self, change: Callable[[Instant], Script[None]]) -> None:
        """Run a change and roll it back. Raises as the change does."""

        def trial(now: Instant) -> Script[None]:
            yield from change(now)
            raise _Rollback

        with suppress(_Rollback):
            await self._store.change(trial)

    async def _shown(self, draft: JobDraft, before: StoredJob | None) -> JobPlanView:
        names = await self._jobs.names_of([draft.spec, *([] if before is None else [before.job.spec])])
        job, number = (NO_JOB, 0) if before is None else (before.job.id, before.job.version)
        after = show_version(JobVersion(job=job, version=number + 1, spec=draft.spec, created_at=0), number, names)
        changes = []
        if before is not None:
            old = JobVersion(job=job, version=number, spec=before.job.spec, created_at=0)
            changes = differences(show_version(old, number, names).definition, after.definition)
        triggers = {when.name: when.trigger for when in draft.whens}
        return JobPlanView(
            name=draft.spec.name,
            version=number if before is not None and not changes else number + 1,
            schedule_text=when_in_words(draft.spec, triggers),
            definition=after.definition,
            changes=changes,
            notes=notes_of(draft.spec, triggers),
        )


def _edit(before: StoredJob, draft: JobDraft, new_id: job_changes.NewId, now: Instant) -> Script[None]:
    if not (yield from job_changes.edit(before, draft, new_id, now)):
        raise Busy(f'Job "{before.job.name}" was changed meanwhile.')
