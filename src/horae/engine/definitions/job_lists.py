"""Reads of jobs: one job, a page of them, or the versions of one."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta, structs

from horae.engine.base.lookup import Lookup
from horae.engine.base.refs import find_job, job_ref, no_such_job, tag_ref
from horae.engine.definitions.job_views import RenderingCache, render, runs_of, show_job, show_version
from horae.engine.triggers.trigger_calendars import may_be_due_without_run, next_runs
from horae.errors import BadInput, NotFound
from horae.model.base.cursor import check_limit, make_cursor, read_cursor
from horae.model.base.instant import format_instant
from horae.model.base.view import Page, shown_time
from horae.model.definitions.job import Job, JobVersion, Spec
from horae.model.definitions.job_view import AutomaticPause, JobDiffView, JobVersionView, JobView
from horae.model.definitions.reading.diff import differences
from horae.model.fields.values import a_text
from horae.model.workflows.decisions.naming import is_owned_name
from horae.store.contract import Store
from horae.store.definitions import job_pages, job_reads, rollouts
from horae.store.definitions import owned as owned_jobs
from horae.store.definitions.job_pages import JobFilter
from horae.store.definitions.jobs import StoredJob
from horae.store.triggers import streaks, triggers
from horae.store.triggers.dependencies import dependency_reads

READ_TOGETHER = 64  # jobs per read: a definition has up to 256 KB
MOST_BYTES = 4 * 1024 * 1024  # bytes of the definitions on one page; the last job may exceed it
MOST_SCANNED = 5_000  # jobs read for one page of a rare tag
STATES = ("active", "paused", "deleted")
NO_COMMON_INSTANTS = (
    "{} have different schedules. Executions are joined when their data intervals begin at the same instant. With these"
    " schedules that may never happen: give the jobs the same cron expression and zone, or the same anchor."
)

Name = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9._/:-]{1,1024}\Z")]
HoldReason = Callable[[int, str], str | None]
FindWarning = Callable[[int, Spec], Awaitable[str | None]]


class JobLists:
    """Read operations on jobs. A `ref` is a job's name or id."""

    def __init__(self, store: Store, held: HoldReason, warn: FindWarning) -> None:
        """Make an object that reads the jobs of a store.

        `held` takes a namespace and the name of a queue, and returns in words why the queue starts nothing. `warn`
        returns a warning about a spec.
        """
        self._store, self._held, self._warn = store, held, warn
        self._renderings = RenderingCache()
        self._snapshots: Lookup[job_reads.Ref, job_reads.JobSnapshot] = Lookup(
            lambda refs: self._store.look_up(lambda: job_reads.job_snapshots(refs))
        )

    async def get(self, namespace: int, ref: str) -> JobView:
        """Return a job; a deleted one by its id only. Raises NotFound with the nearest names."""
        job = await self._snapshots.get((namespace, job_ref(ref)))
        if job is None:
            raise await no_such_job(self._store, namespace, ref)
        rendering = self._renderings.of(job.id, job.version, job.spec)
        names = await self.names_of([rendering.spec])
        view = show_job(job, rendering, job.activity, names)
        if is_owned_name(job.name):
            view = (await self._belonging([view]))[0]
        if rendering.spec.pause_after is not None or job.state == "paused":
            view = await self._by_streak(view)
        upstream = {UUID(job_id): names[UUID(job_id)] for job_id in rendering.spec.dependencies}
        if upstream and (note := await self._apart({**upstream, job.id: job.name})):
            view = structs.replace(view, notes=[*view.notes, note])
        if warning := await self._warn(namespace, rendering.spec):
            view = structs.replace(view, notes=[warning, *view.notes])
        if job.state != "deleted" and (reason := self._held(namespace, rendering.spec.queue)):
            view = structs.replace(view, notes=[reason, *view.notes])
        return await self._by_calendars(namespace, view) if may_be_due_without_run(rendering.spec) else view

    async def _apart(self, names: Mapping[UUID, str]) -> str | None:
        """Return a note if a job and the jobs it depends on have schedules without common instants."""
        apart = await self._store.read(lambda: dependency_reads.without_common_schedule(names))
        return NO_COMMON_INSTANTS.format(", ".join(f'"{names[job_id]}"' for job_id in apart)) if apart else None

    async def _by_streak(self, view: JobView) -> JobView:
        """Add to a view the automatic pause of the job or, after failures in a row, of its triggers, if any."""
        pause = (await self._store.read(lambda: streaks.pauses([view.job_id]))).get(view.job_id)
        if pause is None:
            return view
        auto_paused = AutomaticPause(
            at=format_instant(pause.at), failures=pause.failures, execution_id=pause.execution,
            triggers=list(pause.triggers), reason=pause.reason or None,
        )  # fmt: skip
        if pause.reason:
            reason = pause.reason.rstrip(".")
            note = f"The job is paused: {reason}. Remove this cause, then run `horae jobs resume {view.name}`."
            return structs.replace(view, auto_paused=auto_paused, notes=[note, *view.notes])
        resume = f"`horae jobs resume {view.name}` resumes them."
        note = f"The job's triggers are paused: {pause.failures} executions failed in a row. {resume}"
        return structs.replace(view, auto_paused=auto_paused, notes=[note, *view.notes])

    async def _by_calendars(self, namespace: int, view: JobView) -> JobView:
        """Replace the next fire in a view by the next one that starts an execution.

        The stored next fire may be one that a calendar or a clock change skips.
        """
        timers = await self._store.read(lambda: triggers.of_job(view.job_id))
        runs = await next_runs(self._store, namespace, timers)
        following = min((at for at in runs.values() if at is not None), default=None)
        idle = following is None and view.status == "scheduled"
        return structs.replace(view, next_fire_at=shown_time(following), status="idle" if idle else view.status)

    async def find(self, namespace: int, ref: str) -> Job:
        """Return a job's definition; of a deleted job by its id only. Raises NotFound, Forbidden."""
        return (await find_job(self._store, namespace, ref)).job

    async def named(self, namespace: int, name: str) -> Job | None:
        """Return the job that has this name now."""
        stored = await self._store.job_named(namespace, name)
        return None if stored is None else stored.job

    async def versions(self, namespace: int, ref: str) -> list[JobVersionView]:
        """Return all versions, newest first, with their shares while a rollout is on."""
        stored = await find_job(self._store, namespace, ref)
        versions = await self._store.versions(stored.job.id)
        names = await self.names_of([version.spec for version in versions])
        rollout = await self._store.read(lambda: rollouts.newest(stored.job.id))
        shares = rollout.plan.percents() if rollout is not None and rollout.state == "on" else {}
        return [
            structs.replace(show_version(version, stored.job.version, names), share=shares.get(version.version))
            for version in versions
        ]

    async def version(self, namespace: int, ref: str, version: str) -> JobVersionView:
        """Return one version of a job. Raises NotFound."""
        stored, (found,) = await self._found_versions(namespace, ref, version)
        return show_version(found, stored.job.version, await self.names_of([found.spec]))

    async def diff(self, namespace: int, ref: str, before: str, after: str) -> JobDiffView:
        """Return the differences between two versions of a job, field by field. Raises NotFound."""
        stored, (old, new) = await self._found_versions(namespace, ref, before, after)
        names = await self.names_of([old.spec, new.spec])
        shown = [show_version(version, stored.job.version, names).definition for version in (old, new)]
        return JobDiffView(
            job_id=stored.job.id, job=stored.job.name, before=old.version, after=new.version,
            changes=differences(*shown),
        )  # fmt: skip

    async def _found_versions(self, namespace: int, ref: str, *wanted: str) -> "tuple[StoredJob, list_of[JobVersion]]":
        stored = await find_job(self._store, namespace, ref)
        known = await self._store.versions(stored.job.id)
        by_number = {str(version.version): version for version in known}
        for text in wanted:
            if text not in by_number:
                raise no_such_version(stored.job.name, text, known)
        return stored, [by_number[text] for text in wanted]

    async def list(
        self,
        namespace: int,
        *,
        search: str | None = None,
        prefix: str | None = None,
        state: str | None = None,
        tag: str | None = None,
        queue: str | None = None,
        owner: str | None = None,
        owned: bool = False,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[JobView]:
        """Return a page of jobs by name; deleted ones only when `state` selects them.

        `search` is a part of the name, the description or a tag; `tag` is "name" or "name=value". Jobs that workflows
        own are returned only with `owned`, or for one `owner`. A page may be short, even empty, while `nextCursor` says
        that more follow.
        """
        if state is not None:
            check_choice(state, "state", STATES)
        owner_id = None if owner is None else (await find_job(self._store, namespace, owner)).job.id
        wanted = JobFilter(
            search=search, prefix=prefix, state=state, tag=tag_ref(tag), queue=queue, owner=owner_id, owned=owned
        )
        for field, text in (("search", search), ("prefix", prefix), ("tag", tag), ("queue", queue)):
            a_text(text or "", field, most=256)
        after = None if cursor is None else read_cursor(cursor, tuple[Name, UUID])
        found, after = await self._page(namespace, wanted, after, check_limit(limit))
        return Page(items=await self._views(found), next_cursor=None if after is None else make_cursor(after))

    async def _page(
        self, namespace: int, wanted: JobFilter, after: tuple[str, UUID] | None, limit: int
    ) -> "tuple[list_of[StoredJob], tuple[str, UUID] | None]":
        """Return up to `limit` jobs, fewer if they are large, and the position of the next page.

        For a rare tag, at most `MOST_SCANNED` jobs are read.
        """
        found: list_of[StoredJob] = []
        room, size = MOST_BYTES, min(limit + 1, READ_TOGETHER)
        for _ in range(0, MOST_SCANNED, size):
            rows = await self._store.read(lambda: job_pages.page(namespace, wanted, after, size))  # noqa: B023
            for stored in rows:
                if len(found) == limit or room < 0:
                    return found, after
                if wanted.matches_exactly(stored.job.spec):
                    found.append(stored)
                    room -= len(msgspec.json.encode(stored.job.spec))
                after = (stored.job.name, stored.job.id)
            if len(rows) < size:
                return found, None
        return found, after

    async def _views(self, jobs: Sequence[StoredJob]) -> "list_of[JobView]":
        # All shelves are read at one instant. Otherwise an execution that moves from one shelf to another could be
        # missed on both.
        activities = await self._store.read_at_once(lambda: job_reads.activities([stored.job.id for stored in jobs]))
        names = await self.names_of([stored.job.spec for stored in jobs])
        views = [show_job(stored.job, render(stored.job.spec), activities[stored.job.id], names) for stored in jobs]
        if any(is_owned_name(stored.job.name) for stored in jobs):
            views = await self._belonging(views)
        return [
            await self._by_calendars(stored.job.namespace, view) if may_be_due_without_run(stored.job.spec) else view
            for stored, view in zip(jobs, views, strict=True)
        ]

    async def _belonging(self, views: "list_of[JobView]") -> "list_of[JobView]":
        """Return jobs with the workflows that own them and the jobs that they were derived from."""
        found = await self._store.read(lambda: owned_jobs.owners_of([view.job_id for view in views]))
        bases = sorted({owner.base for owner in found.values() if owner.base is not None})
        names = await self._store.read(lambda: job_reads.names_of(bases)) if bases else {}
        return [
            structs.replace(
                view, owner_workflow=owner.name, base_job=None if owner.base is None else names.get(owner.base)
            )
            if (owner := found.get(view.job_id))
            else view
            for view in views
        ]

    async def names_of(self, specs: Sequence[Spec]) -> dict[UUID, str]:
        """Return the names of jobs that these specs depend on or run, by id."""
        named = sorted({UUID(job_id) for spec in specs for job_id in (*spec.dependencies, *runs_of(spec))})
        return await self._store.read(lambda: job_reads.names_of(named)) if named else {}


list_of = list  # inside the class, `list` is its method


def no_such_version(job: str, version: str | int, known: Sequence[JobVersion]) -> NotFound:
    """Return the error for a missing version; `known` are the existing ones, newest first."""
    return NotFound(
        f'Job "{job}" has no version {str(version)[:40]}.', f"Its versions run from 1 to {known[0].version}."
    )


def check_choice(value: str, field: str, choices: Sequence[str]) -> None:
    """Check that a value is one of the choices. Raises BadInput."""
    if value not in choices:
        raise BadInput(f"{field} cannot be {value[:40]!r}.", f"Choose one of: {', '.join(choices)}.", field=field)
