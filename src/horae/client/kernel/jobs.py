"""`client.jobs`: definitions, their versions, and triggering them."""

from datetime import datetime
from typing import Any, Literal, TypedDict, Unpack

from horae.client.encode import circumstances, definition, given, instant, span
from horae.client.transport.calls import Caller, path_of
from horae.client.views import Execution, Explanation, Job, JobPlan, JobVersion, Page, View, page_of
from horae.errors import NotFound
from horae.features.statistics.client import JobStatistics, window
from horae.model.executions.signals import Span

Outcome = Literal["created", "changed", "unchanged"]
DRY = "?dryRun=true"


class JobFields(TypedDict, total=False):
    """What a job's definition may say; the server checks it and names what is wrong."""

    schedule: Any
    triggers: list[Any]
    command: Any
    python: Any
    http: Any
    workflow: Any
    description: str
    params: dict[str, Any]
    retries: int
    retry: dict[str, Any]
    timeout: Span
    within: Span
    grace: Span
    priority: int
    queue: str
    needs: list[str]
    dependencies: list[Any]
    dependency_timeout: Span
    on_dependency_timeout: str
    tags: dict[str, str]
    env: dict[str, str]
    delivery: str
    key_for: Span
    unique: bool | dict[str, Any]
    debounce: dict[str, Any]
    batch: dict[str, Any]
    cache: dict[str, Any]
    circuit: Any
    template: str
    with_: dict[str, Any]


class Jobs:
    """Create, read, change and trigger jobs. `ref` is a job's name or id."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def create(self, name: str, **fields: Unpack[JobFields]) -> Job:
        return Job.of(await self._caller.post(path_of("jobs"), {"name": name, **definition(fields)}))

    async def get(self, ref: str) -> Job:
        return Job.of(await self._caller.get(path_of("jobs", ref)))

    async def list(self, *, limit: int | None = None, cursor: str | None = None, **filters: Any) -> Page[Job]:
        """A page of jobs, by name; filters are those of GET /api/v1/jobs (state, tag, queue, statistics, ...)."""
        return page_of(Job, await self._caller.get(path_of("jobs"), {**filters, "limit": limit, "cursor": cursor}))

    async def edit(self, ref: str, *, if_match: str | None = None, **fields: Unpack[JobFields]) -> Job:
        """Change the given fields and leave the rest; with `if_match`, only if nobody changed the job meanwhile."""
        return Job.of(await self._caller.edit("PATCH", path_of("jobs", ref), definition(fields), if_match))

    async def replace(self, ref: str, document: dict[str, Any], *, if_match: str | None = None) -> Job:
        """Give a job a whole new definition, as the API spells it."""
        return Job.of(await self._caller.edit("PUT", path_of("jobs", ref), document, if_match))

    async def plan(
        self, document: dict[str, Any], ref: str | None = None, *, patch: bool = False, if_match: str | None = None
    ) -> JobPlan:
        """What a new job would be, or what `ref` would become as a whole, or by a `patch`; nothing is written.

        What could not be written is refused in the same words.
        """
        if ref is None:
            return JobPlan.of(await self._caller.post(path_of("jobs") + DRY, document))
        method = "PATCH" if patch else "PUT"
        return JobPlan.of(await self._caller.edit(method, path_of("jobs", ref) + DRY, document, if_match))

    async def apply(self, document: dict[str, Any]) -> tuple[Job, Outcome]:
        """Make the job of this name be as the document says, as the API spells it; an equal one makes no version."""
        name = document.get("name", "")
        try:
            before = await self.get(name)
        except NotFound:
            return Job.of(await self._caller.post(path_of("jobs"), document)), "created"
        after = await self.replace(before.job_id, document)
        return after, "unchanged" if after.version == before.version else "changed"

    async def pause(self, ref: str) -> Job:
        return Job.of(await self._caller.post(path_of("jobs", ref, "pause")))

    async def resume(self, ref: str) -> Job:
        return Job.of(await self._caller.post(path_of("jobs", ref, "resume")))

    async def delete(
        self, ref: str, *, queued: str | None = None, running: str | None = None, force: bool | None = None
    ) -> Job:
        """Delete a job; its `queued` and `running` executions are cancelled or finished ("cancel" or "finish").

        Unless told otherwise, what is queued is cancelled and what runs may finish. What workflows run is deleted only
        with `force`.
        """
        query = {"queued": queued, "running": running, "force": force}
        return Job.of(await self._caller.delete(path_of("jobs", ref), query))

    async def restore(self, ref: str) -> Job:
        return Job.of(await self._caller.post(path_of("jobs", ref, "restore")))

    async def versions(self, ref: str) -> Page[JobVersion]:
        return page_of(JobVersion, await self._caller.get(path_of("jobs", ref, "versions")))

    async def limits(self, ref: str, *, limit: int | None = None, cursor: str | None = None) -> Page[View]:
        """The keys of its limits and sequence that are held, and the executions that hold them."""
        query = {"limit": limit, "cursor": cursor}
        return page_of(View, await self._caller.get(path_of("jobs", ref, "limits"), query))

    async def dependencies(self, ref: str) -> View:
        """What a job depends on, what of that is met, what waits for it, and which jobs depend on it."""
        return View.of(await self._caller.get(path_of("jobs", ref, "dependencies")))

    async def explain(self, ref: str) -> Explanation:
        """Why a job does not run: its triggers, its queue, what it depends on, and what holds its executions."""
        return Explanation.of(await self._caller.get(path_of("jobs", ref, "explain")))

    async def forget_results(self, ref: str) -> int:
        """Let no remembered result of a job answer a submission any more; how many there were."""
        forgotten: int = (await self._caller.delete(path_of("jobs", ref, "cache")))["forgotten"]
        return forgotten

    async def version(self, ref: str, version: int) -> JobVersion:
        return JobVersion.of(await self._caller.get(path_of("jobs", ref, "versions", str(version))))

    async def diff(self, ref: str, before: int, after: int) -> View:
        """What tells two versions apart: `raw["changes"]` has the fields that differ."""
        return View.of(await self._caller.get(path_of("jobs", ref, "versions", str(before), "diff", str(after))))

    async def rollback(self, ref: str, version: int, *, if_match: str | None = None) -> Job:
        """Make an old version's definition the newest one; with `if_match`, only if nobody changed it meanwhile."""
        path, body = path_of("jobs", ref, "rollback"), {"version": version}
        if if_match:
            return Job.of(await self._caller.edit("POST", path, body, if_match))
        return Job.of(await self._caller.post(path, body))

    async def statistics(
        self, ref: str, since: datetime | str | None = None, until: datetime | str | None = None
    ) -> JobStatistics:
        """What became of its executions in a window, by default the last seven days, and how long they took."""
        return JobStatistics.of(await self._caller.get(path_of("jobs", ref, "statistics"), window(since, until)))

    async def days(
        self, ref: str, since: str | None = None, until: str | None = None, *, timezone: str | None = None
    ) -> View:
        """How its executions ended on each day, and what is to come: `raw["days"]`; days are written 2026-11-15."""
        query = {"from": since, "to": until, "timezone": timezone}
        return View.of(await self._caller.get(path_of("jobs", ref, "days"), query))

    async def grid(
        self, ref: str, *, limit: int | None = None, cursor: str | None = None, by: str | None = None
    ) -> View:
        """Its executions, newest first, and how the steps of each stand: `raw["steps"]` and `raw["items"]`.

        `by="interval"` orders those of a page by the data that they are about.
        """
        query = {"limit": limit, "cursor": cursor, "by": by}
        return View.of(await self._caller.get(path_of("jobs", ref, "grid"), query))

    async def executions(
        self, ref: str, *, limit: int | None = None, cursor: str | None = None, **filters: Any
    ) -> Page[Execution]:
        query = {**filters, "limit": limit, "cursor": cursor}
        return page_of(Execution, await self._caller.get(path_of("jobs", ref, "executions"), query))

    async def trigger(
        self,
        ref: str,
        params: Any = None,
        *,
        delay: Span | None = None,
        at: datetime | str | None = None,
        key: str | None = None,
        key_for: Span | None = None,
        priority: int | None = None,
        deadline: datetime | str | None = None,
        within: Span | None = None,
        tags: dict[str, str] | None = None,
        interval: tuple[datetime | str, datetime | str] | None = None,
        propagate: bool = True,
        wait_for_dependencies: bool = False,
    ) -> Execution:
        """Run a job now, after a delay or at an instant.

        It runs whatever the job depends on, unless it is to `wait_for_dependencies`; its end is told to the jobs that
        depend on it unless `propagate` is False. `interval` is the data it is about. The answer's `note` tells of both.
        """
        when = given(delay=span(delay), at=instant(at), deadline=instant(deadline), within=span(within))
        body = {**when, **given(params=params, key=key, key_for=span(key_for), priority=priority, tags=tags)}
        body |= circumstances(interval, propagate, wait_for_dependencies)
        return Execution.of(await self._caller.post(path_of("jobs", ref, "trigger"), body))
