"""Operations on jobs: create, edit, pause, delete and restore, each in one transaction."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal
from uuid import UUID

import msgspec

from horae.engine.base.refs import as_id, find_job
from horae.engine.definitions import job_changes as changes
from horae.engine.definitions.announcer import Announcer, FireDue
from horae.engine.definitions.job_changes import JobDraft
from horae.engine.definitions.job_deletions import JobDeletions
from horae.engine.definitions.job_drafts import CheckPlace, Derive, JobDrafter
from horae.engine.definitions.job_lists import FindWarning, HoldReason, JobLists, check_choice, no_such_version
from horae.engine.definitions.owned_changes import refuse_owned
from horae.engine.definitions.owned_jobs import NO_SIBLINGS, SiblingChanges
from horae.engine.definitions.permits import check_name, visible
from horae.env import Env
from horae.errors import Busy, Conflict, Stale
from horae.model.definitions.job import Job, Spec
from horae.model.definitions.job_view import JobView
from horae.model.definitions.reading.read import Definition
from horae.model.definitions.template_use import source_of
from horae.model.fields.values import NAME
from horae.store.contract import Store
from horae.store.definitions import job_reads
from horae.store.definitions.jobs import StoredJob
from horae.store.executions.deduplication.key_expiry import forget_results
from horae.store.executions.leaving import cancel_job
from horae.store.executions.promote import Ranker
from horae.store.triggers import streaks
from horae.store.triggers.dependencies.starts import Consequences

TRIES = 5  # tries of a change that conflicts with concurrent changes
BATCH = 500  # slices queued in one transaction

Change = Literal["created", "changed", "unchanged"]


class Jobs(JobLists):
    """Operations on jobs. A `ref` is a job's name or id."""

    def __init__(
        self,
        env: Env,
        store: Store,
        *,
        announcer: Announcer,
        fire_due: FireDue,
        rank: Ranker,
        deletions: JobDeletions,
        check_place: CheckPlace,
        held: HoldReason,
        default_queue: Callable[[int], str],
        warn: FindWarning,
        derive: Derive,
    ) -> None:
        """Make an object that reads and writes jobs.

        `deletions` cancels the executions of a deleted job. `check_place` refuses a place that must not be watched.
        `held` returns the reason why a queue starts nothing. `default_queue` returns the queue for jobs that name no
        queue. `warn` returns a warning about a spec. `derive` makes a definition from a template.
        """
        super().__init__(store, held, warn)
        self._env, self._announcer, self._fire_due, self._rank = env, announcer, fire_due, rank
        self._drafts = JobDrafter(env, store, check_place, default_queue, derive)
        self._deletions = deletions

    async def create(self, namespace: int, body: Any) -> JobView:
        """Create a job from the decoded body of POST /api/v1/jobs. Raises BadInput, Conflict (with `jobId`)."""
        return await self.get(namespace, str(await self._create(namespace, body)))

    async def put(self, namespace: int, body: Any) -> tuple[JobView, Change]:
        """Create or replace the job that the body names; return whether it was created, changed or unchanged."""
        before, after = await self.apply(namespace, body)
        return await self.get(namespace, str(after.job.id)), change_of(before, after)

    async def apply(self, namespace: int, body: Any) -> tuple[StoredJob | None, StoredJob]:
        """Create or replace the job that the body names. A definition equal to the present one makes no new version.

        Return the job as it was before, or None if it is new, and the job as it is now.
        """
        # The creation time is 0, because the job may already exist with a trigger at an instant that has passed.
        name = (await self._drafts.parse(namespace, body, 0)).spec.name
        for _ in range(TRIES):
            before = await self._store.job_named(namespace, name)
            try:
                if before is None:
                    job_id = await self._create(namespace, body)
                else:
                    job_id = await self._edit(namespace, str(before.job.id), body, None, replace=True)
            except Conflict as error:
                if before is not None or "jobId" not in error.fields:
                    raise
                continue  # the name was taken meanwhile
            return before, await find_job(self._store, namespace, str(job_id))
        raise Busy(f'Job "{name}" was created and deleted again and again meanwhile.')

    async def edit(
        self, namespace: int, ref: str, patch: Any, *, if_match: int | None = None, replace: bool = False
    ) -> JobView:
        """Apply a patch to a job (`replace`: a whole definition). Every real change makes a version.

        Raises Stale when `if_match` is not the present version.
        """
        return await self.get(namespace, str(await self._edit(namespace, ref, patch, if_match, replace=replace)))

    async def rollback(self, namespace: int, ref: str, version: int, *, if_match: int | None = None) -> JobView:
        """Make a new version with the definition of an earlier one."""
        for _ in range(TRIES):
            before = await self.find_changeable(namespace, ref, if_match)
            known = await self._store.versions(before.job.id)
            versions = {stored.version: stored for stored in known}
            if version not in versions:
                raise no_such_version(before.job.name, version, known)
            definition = await self._drafts.earlier_definition(before, versions[version].spec)
            if await self._write(before, definition, revive=True):
                return await self.get(namespace, str(before.job.id))
        raise _too_busy(ref)

    async def draft(self, namespace: int, body: Any) -> JobDraft:
        """Return the draft of a new job without writing it. Raises as a creation does, except for a taken name."""
        return await self._drafts.create(namespace, body)

    async def draft_change(
        self, namespace: int, ref: str, patch: Any, if_match: int | None, *, replace: bool = False
    ) -> tuple[StoredJob, JobDraft]:
        """Return a job, and its draft after a patch, without writing it. Raises as an edit does."""
        before = await self.find_changeable(namespace, ref, if_match)
        definition = await self._drafts.change(before, patch, replace=replace)
        return before, await self._drafts.resolve(namespace, definition, before)

    async def redraft(self, before: StoredJob, derive: Derive, beside: SiblingChanges = NO_SIBLINGS) -> JobDraft:
        """Return the draft of a job after its template changed; `derive` makes its definition from the new template.

        Raises as an edit does.
        """
        job = before.job
        assert job.spec.made is not None
        body = source_of(job.name, job.spec.made)
        definition = await self._drafts.change(before, body, replace=True, derive=derive)
        draft = await self._drafts.resolve(job.namespace, definition, before, beside)
        if (draft.spec.schedule, draft.spec.triggers) != (job.spec.schedule, job.spec.triggers):
            await self._fire_due()
        return draft

    async def check_template(self, namespace: int, template: str, derive: Derive) -> None:
        """Refuse a template whose defaults make no valid job. Nothing is written."""
        await self._drafts.parse(namespace, {"name": template, "template": template}, 0, derive)

    async def adopt(self, before: StoredJob, spec: Spec, adoption: changes.Adoption) -> bool:
        """Write a definition that a rollout tried as the job's current version; return False after another change."""
        return await self._write(
            before, await self._drafts.stored_definition(before, spec), revive=True, adopt=adoption
        )

    async def find_changeable(self, namespace: int, ref: str, if_match: int | None = None) -> StoredJob:
        """Return a job that may be changed. Raises NotFound, Conflict, Stale."""
        stored = await find_job(self._store, namespace, ref)
        job = stored.job
        if job.state == "deleted":
            raise Conflict(f'Job "{job.name}" is deleted.', f"Bring it back first: `horae jobs restore {job.id}`.")
        return _matched(stored, if_match)

    def announce_change(self, job: Job) -> None:
        """Announce that a job changed."""
        self._announcer.job_changed(job.namespace, job.id, job.state)

    async def pause(self, namespace: int, ref: str) -> JobView:
        """Pause a job: nothing of it starts until it is resumed. Running executions go on."""
        return await self._switch(namespace, ref, "paused")

    async def resume(self, namespace: int, ref: str) -> JobView:
        """Resume a job. Skipped fires are in the ledger as skipped-paused; waiting executions are queued."""
        return await self._switch(namespace, ref, "active")

    async def delete(
        self,
        namespace: int,
        ref: str,
        *,
        queued: Literal["cancel", "finish"] = "cancel",
        running: Literal["finish", "cancel"] = "finish",
        if_match: int | None = None,
        force: bool = False,
    ) -> JobView:
        """Stop a job's triggers at once and free its name.

        Its history stays readable, and `restore` undoes the deletion.

        Queued executions are cancelled or finished, running ones are finished or asked to stop. A job that workflows
        run is deleted only with `force`; otherwise Conflict names the workflows.
        """
        check_choice(queued, "queued", ("cancel", "finish"))
        check_choice(running, "running", ("finish", "cancel"))
        job = await self._delete(namespace, ref, _ending(queued, running), if_match, force)
        if queued == "finish":
            await self.open_gate(job)
        await self._deletions.finish(job)  # the sweeper ends executions that other transactions lock now
        dependents = await self._store.read(lambda: job_reads.dependents(job))
        shown = visible(dependents)
        notes = [f"Jobs that depend on it: {', '.join(shown)}."] if shown else []
        view = await self.get(namespace, str(job))
        return msgspec.structs.replace(view, notes=[*notes, *view.notes])

    async def forget_results(self, namespace: int, ref: str) -> int:
        """Delete the cached results of a job; return their number."""
        job = (await find_job(self._store, namespace, ref)).job
        return await self._store.write(lambda: forget_results(job.id))

    async def restore(self, namespace: int, ref: str) -> JobView:
        """Undo a deletion. A job that was paused is paused again.

        If `ref` is a name, restore the job that was deleted last under this name. The jobs of a workflow's steps follow
        the jobs that they were made from, as if the workflow had not been deleted.

        Raises Conflict when the name is taken, and BadInput when the definition would be refused now.
        """
        check_name(ref)
        stored = await self._deleted(namespace, ref)
        refuse_owned(stored.job, "restored")
        if stored.job.state == "deleted":
            whens = (await self._drafts.stored_definition(stored, stored.job.spec)).whens
            definition = await self._drafts.earlier_definition(stored, stored.job.spec)
            draft = await self._drafts.resolve(namespace, definition, stored)
            consequences = Consequences()
            restore = partial(changes.restore, stored, whens, draft, self._env.new_id, consequences=consequences)
            state = await self._store.change(restore)
            if state is not None:
                self._announce(stored.job, state, draft, consequences)
        return await self.get(namespace, str(stored.job.id))

    async def open_gate(self, job: UUID) -> None:
        """Queue all executions that waited for a job to be resumed.

        A claim may move more executions to `waiting` meanwhile; the sweeper finds these.
        """
        rows = BATCH
        while rows == BATCH:
            promoted = await self._store.open_gate(job, BATCH, self._rank)
            self._announcer.queued(promoted.lanes)
            rows = promoted.rows

    # Helpers

    async def _create(self, namespace: int, body: Any) -> UUID:
        draft = await self._drafts.create(namespace, body)
        job_id = self._env.new_id()
        await self._store.change(lambda now: changes.create(job_id, namespace, draft, self._env.new_id, now))
        self._announcer.job_changed(namespace, job_id, "active")
        return job_id

    async def _edit(self, namespace: int, ref: str, patch: Any, if_match: int | None, *, replace: bool) -> UUID:
        for _ in range(TRIES):
            before = await self.find_changeable(namespace, ref, if_match)
            if await self._write(before, await self._drafts.change(before, patch, replace=replace)):
                return before.job.id
        raise _too_busy(ref)

    async def _deleted(self, namespace: int, ref: str) -> StoredJob:
        """Return the job to restore: by id, or the job that was deleted last under a name."""
        named = not as_id(ref) and NAME.fullmatch(ref)
        deleted_id = await self._store.read(lambda: job_reads.last_deleted(namespace, ref)) if named else None
        stored = await find_job(self._store, namespace, str(deleted_id or ref))
        if named and deleted_id is None:
            raise Conflict(f'Job "{ref}" is not deleted.', "There is nothing to restore.")
        return stored

    async def _write(
        self,
        before: StoredJob,
        definition: Definition,
        *,
        revive: bool = False,
        adopt: changes.Adoption | None = None,
    ) -> bool:
        """Write the next version unless nothing changes; return False after a concurrent change."""
        job = before.job
        refuse_owned(job)
        draft = await self._drafts.resolve(job.namespace, definition, before)
        if draft.spec == job.spec and adopt is None:
            return True
        if (draft.spec.schedule, draft.spec.triggers) != (job.spec.schedule, job.spec.triggers):
            await self._fire_due()
        consequences = Consequences()
        edit = partial(
            changes.edit, before, draft, self._env.new_id, revive=revive, consequences=consequences, adopt=adopt
        )
        if not await self._store.change(edit):
            return False
        self._announce(job, job.state, draft, consequences)
        return True

    def _announce(self, job: Job, state: str, draft: JobDraft, consequences: Consequences) -> None:
        """Announce that a job was changed or restored, together with the jobs that it owns."""
        self._store.started(consequences)
        self._announcer.job_changed(job.namespace, job.id, state)
        for owned_job in () if draft.owned_jobs is None else draft.owned_jobs.drafts:
            self._announcer.timers_changed(owned_job.id)

    async def _switch(self, namespace: int, ref: str, state: Literal["active", "paused"]) -> JobView:
        for _ in range(TRIES):
            before = await self.find_changeable(namespace, ref, None)
            if before.job.state == state:
                if state == "active":
                    await self._resume_failing(before.job)
                return await self.get(namespace, str(before.job.id))
            change = changes.pause if state == "paused" else changes.resume
            await self._fire_due()
            if await self._store.change(lambda now: change(before, now)):  # noqa: B023
                self._announcer.job_changed(namespace, before.job.id, state)
                if state == "active":
                    await self.open_gate(before.job.id)
                return await self.get(namespace, str(before.job.id))
        raise _too_busy(ref)

    async def _resume_failing(self, job: Job) -> None:
        """Resume triggers that were paused after failures, although the job itself is not paused."""
        if await self._store.change(lambda now: streaks.resume(job.id, job.namespace, job.version, now)):
            self._announcer.job_changed(job.namespace, job.id, "active")

    async def _delete(
        self, namespace: int, ref: str, ending: cancel_job.Ending | None, if_match: int | None, force: bool
    ) -> UUID:
        """Delete a job. If it is already deleted, only record the further executions that must end (`ending`)."""
        for _ in range(TRIES):
            before = _matched(await find_job(self._store, namespace, ref), if_match)
            refuse_owned(before.job, "deleted")
            if before.job.state == "deleted":
                if ending is not None:
                    await self._store.write(lambda: cancel_job.add_ending(before.job.id, ending))  # noqa: B023
                return before.job.id
            await self._fire_due()
            consequences = Consequences()
            cancelled = await self._store.change(
                lambda now: changes.delete(before, self._env.new_id, now, ending, consequences, force=force)  # noqa: B023
            )
            if cancelled is not None:
                self._store.started(consequences)
                self._deletions.outcomes.publish_cancelled(before.job.id, cancelled)
                self._announcer.job_changed(namespace, before.job.id, "deleted")
                return before.job.id
        raise _too_busy(ref)


def change_of(before: StoredJob | None, after: StoredJob) -> Change:
    """Return the effect of a write on a job."""
    if before is None:
        return "created"
    return "unchanged" if before.job.version == after.job.version else "changed"


def _matched(stored: StoredJob, if_match: int | None) -> StoredJob:
    """Return a job if it has the version that the caller has seen. Raises Stale."""
    job = stored.job
    if if_match is not None and if_match != job.version:
        remedy = "Read it again and repeat the change if it still makes sense."
        raise Stale(f'Job "{job.name}" is at version {job.version}, not {if_match}.', remedy, version=job.version)
    return stored


def _ending(queued: str, running: str) -> cancel_job.Ending | None:
    """Return which executions of a job a deletion ends."""
    if queued == "cancel":
        return "all" if running == "cancel" else "pending"
    return "running" if running == "cancel" else None


def _too_busy(ref: str) -> Busy:
    return Busy(f'Job "{ref}" was changed again and again meanwhile.')
