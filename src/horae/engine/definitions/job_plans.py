"""Dry runs: the job that a creation or an edit would produce, without writing anything."""

from typing import Any
from uuid import UUID

from horae.engine.definitions.job_changes import JobDraft, name_conflict, rollout_conflict
from horae.engine.definitions.job_views import notes_of, show_version, when_in_words
from horae.engine.definitions.jobs import Jobs
from horae.model.definitions.job import JobVersion
from horae.model.definitions.job_view import JobPlanView
from horae.model.definitions.reading.diff import differences
from horae.store.contract import Store
from horae.store.definitions import jobs
from horae.store.definitions.jobs import StoredJob

NO_JOB = UUID(int=0)  # the id in the plan of a job that does not exist


class JobPlans:
    """Dry runs of creations and edits. They refuse the same input as the real operations, and store nothing."""

    def __init__(self, store: Store, jobs: Jobs) -> None:
        self._store, self._jobs = store, jobs

    async def create(self, namespace: int, body: Any) -> JobPlanView:
        """Return the job that POST /api/v1/jobs would create. Raises BadInput, Conflict."""
        draft = await self._jobs.draft(namespace, body)
        taken = await self._store.job_named(namespace, draft.spec.name)
        if taken is not None:
            raise name_conflict(draft.spec.name, taken.job.id)
        return await self._shown(draft, None)

    async def edit(
        self, namespace: int, ref: str, body: Any, *, if_match: int | None = None, replace: bool = False
    ) -> JobPlanView:
        """Return the job as PATCH (with `replace`: PUT) /api/v1/jobs/{ref} would make it. Raises the same errors."""
        before, draft = await self._jobs.draft_change(namespace, ref, body, if_match, replace=replace)
        job = before.job
        taken = await self._store.job_named(namespace, draft.spec.name)
        if taken is not None and taken.job.id != job.id:
            raise name_conflict(draft.spec.name, taken.job.id)
        if draft.spec != job.spec and await self._store.read(lambda: jobs.active_rollout(job.id)) is not None:
            raise rollout_conflict(job)
        return await self._shown(draft, before)

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
