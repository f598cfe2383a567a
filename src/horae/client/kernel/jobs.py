"""`client.jobs`: definitions, their versions, and triggering them."""

from datetime import datetime
from typing import Any, Literal, Unpack

from horae.client.encode import definition, instant
from horae.client.kernel.explanation_view import Explanation
from horae.client.options import JobFields, SubmitOptions
from horae.client.submission_options import OF_ONE, described
from horae.client.transport.calls import Resource, path_of
from horae.client.views import (
    ApiDocument,
    ExecutionInfo,
    JobInfo,
    JobPlan,
    JobStatisticsInfo,
    JobVersionInfo,
    ResultPage,
    Status,
    page_of,
)
from horae.errors import NotFound

Outcome = Literal["created", "changed", "unchanged"]
DRY = "?dryRun=true"


class JobsResource(Resource):
    """Create, read, change and trigger jobs. `ref` is a job's name or id."""

    async def create(self, name: str, **fields: Unpack[JobFields]) -> JobInfo:
        return JobInfo.of(await self._caller.post(path_of("jobs"), {"name": name, **definition(fields)}))

    async def edit(self, ref: str, *, if_match: str | None = None, **fields: Unpack[JobFields]) -> JobInfo:
        """Change the given fields and keep the rest; with `if_match`, only if the job is still at that version."""
        return JobInfo.of(await self._caller.edit("PATCH", path_of("jobs", ref), definition(fields), if_match))

    async def replace(self, ref: str, document: dict[str, Any], *, if_match: str | None = None) -> JobInfo:
        """Replace the whole definition of a job, in the API's form."""
        return JobInfo.of(await self._caller.edit("PUT", path_of("jobs", ref), document, if_match))

    async def plan(
        self, document: dict[str, Any], ref: str | None = None, *, patch: bool = False, if_match: str | None = None
    ) -> JobPlan:
        """Return the result of a change without making it.

        Without `ref`, the change creates a job. With `ref`, it replaces the definition of that job; with `patch`, only
        the fields in `document`.

        An invalid definition is refused with the same error as in a real change.
        """
        if ref is None:
            return JobPlan.of(await self._caller.post(path_of("jobs") + DRY, document))
        method = "PATCH" if patch else "PUT"
        return JobPlan.of(await self._caller.edit(method, path_of("jobs", ref) + DRY, document, if_match))

    async def apply(self, document: dict[str, Any]) -> tuple[JobInfo, Outcome]:
        """Create or change the job of this name to match a document.

        The document has the API's form. If it is equal to the present definition, no version is created.
        """
        name = document.get("name", "")
        try:
            before = await self.get(name)
        except NotFound:
            return JobInfo.of(await self._caller.post(path_of("jobs"), document)), "created"
        after = await self.replace(before.job_id, document)
        return after, "unchanged" if after.version == before.version else "changed"

    async def forget_results(self, ref: str) -> int:
        """Forget the cached results of a job, so that they answer no submission; return their number."""
        forgotten: int = (await self._caller.delete(path_of("jobs", ref, "cache")))["forgotten"]
        return forgotten

    async def version(self, ref: str, version: int) -> JobVersionInfo:
        return JobVersionInfo.of(await self._caller.get(path_of("jobs", ref, "versions", str(version))))

    async def diff(self, ref: str, before: int, after: int) -> ApiDocument:
        """Compare two versions: `raw["changes"]` has the fields that differ."""
        return ApiDocument.of(await self._caller.get(path_of("jobs", ref, "versions", str(before), "diff", str(after))))

    async def rollback(self, ref: str, version: int, *, if_match: str | None = None) -> JobInfo:
        """Restore an old version's definition as the newest one.

        With `if_match`, only if the job is still at that version.
        """
        path, body = path_of("jobs", ref, "rollback"), {"version": version}
        if if_match:
            return JobInfo.of(await self._caller.edit("POST", path, body, if_match))
        return JobInfo.of(await self._caller.post(path, body))

    async def trigger(self, ref: str, params: Any = None, **options: Unpack[SubmitOptions]) -> ExecutionInfo:
        """Run a job now, after a delay or at an instant.

        The execution does not wait for the job's dependencies unless `wait_for_dependencies` is set. Its end starts
        dependent jobs unless `propagate` is False. The answer's `note` explains the effect of these two options.
        `interval` is the data interval of the execution.
        """
        body = {**described(options, OF_ONE, "trigger(...)"), **({} if params is None else {"params": params})}
        return ExecutionInfo.of(await self._caller.post(path_of("jobs", ref, "trigger"), body))

    # `python -m tools.sdk` writes the methods below, from the routes of jobs.

    async def list(
        self, *, search: str | None = None, prefix: str | None = None,
        state: Literal["active", "paused", "deleted"] | None = None, tag: str | None = None,
        queue: str | None = None, owner_workflow: str | None = None, owned: bool = False, statistics: bool = False,
        limit: int | None = None, cursor: str | None = None,
    ) -> ResultPage[JobInfo]:  # fmt: skip
        """List jobs, sorted by name; deleted jobs only if `state` selects them.

        If jobs are large, or if the credential is for some jobs only, a page may have fewer than `limit` jobs
        although more follow.

        `search`: A part of the name, the description or a tag. `prefix`: The start of the name. `state`: Only
        jobs in this state. `tag`: Only jobs with this tag: "name" or "name=value". `queue`: Only entries of this
        queue. `owner_workflow`: Only jobs that this workflow owns for its steps. `owned`: Include jobs that
        workflows own for their steps. `statistics`: Include each job's newest executions, success rate and
        durations.
        """
        query = {
            "search": search, "prefix": prefix, "state": state, "tag": tag, "queue": queue,
            "owner_workflow": owner_workflow, "owned": owned or None, "statistics": statistics or None, "limit": limit,
            "cursor": cursor,
        }  # fmt: skip
        return page_of(JobInfo, await self._caller.get(path_of("jobs"), query))

    async def get(self, ref: str) -> JobInfo:
        """Read a job. A deleted job is found only by its id."""
        return JobInfo.of(await self._caller.get(path_of("jobs", ref)))

    async def delete(
        self, ref: str, *, queued: Literal["cancel", "finish"] | None = None,
        running: Literal["cancel", "finish"] | None = None, force: bool = False,
    ) -> JobInfo:  # fmt: skip
        """Delete a job: its triggers stop at once, its history stays readable, its name is free again.

        `queued`: The treatment of queued executions; cancel by default. `running`: The treatment of running
        executions; finish by default. `force`: Delete the job even if workflows run it.
        """
        query = {"queued": queued, "running": running, "force": force or None}
        return JobInfo.of(await self._caller.delete(path_of("jobs", ref), query))

    async def pause(self, ref: str) -> JobInfo:
        """Pause a job: none of its executions starts until it is resumed; running executions continue."""
        return JobInfo.of(await self._caller.post(path_of("jobs", ref, "pause")))

    async def resume(self, ref: str) -> JobInfo:
        """Resume a paused job."""
        return JobInfo.of(await self._caller.post(path_of("jobs", ref, "resume")))

    async def restore(self, ref: str) -> JobInfo:
        """Undo a deletion; a name means the last deleted job of that name."""
        return JobInfo.of(await self._caller.post(path_of("jobs", ref, "restore")))

    async def dependencies(self, ref: str) -> ApiDocument:
        """Read a job's dependencies, their states, its waiting executions, and the jobs that depend on it."""
        return ApiDocument.of(await self._caller.get(path_of("jobs", ref, "dependencies")))

    async def executions(
        self, ref: str, *, status: Status | Literal["pending"] | None = None, tag: str | None = None,
        worker: str | None = None, since: datetime | str | None = None, until: datetime | str | None = None,
        limit: int | None = None, cursor: str | None = None,
    ) -> ResultPage[ExecutionInfo]:  # fmt: skip
        """List a job's executions, newest first.

        `status`: `pending` means waiting or queued. `tag`: Only executions with this tag: "name" or "name=value".
        `worker`: Only executions that this worker runs or ran. `since`: Only from this time on. `until`: Only
        before this time.
        """
        query = {
            "status": status, "tag": tag, "worker": worker, "since": instant(since), "until": instant(until),
            "limit": limit, "cursor": cursor,
        }  # fmt: skip
        return page_of(ExecutionInfo, await self._caller.get(path_of("jobs", ref, "executions"), query))

    async def limits(self, ref: str, *, limit: int | None = None, cursor: str | None = None) -> ResultPage[ApiDocument]:
        """List the held keys of a job's limits and sequence, with the executions that hold them; at most 100 per
        page.
        """
        query = {"limit": limit, "cursor": cursor}
        return page_of(ApiDocument, await self._caller.get(path_of("jobs", ref, "limits"), query))

    async def statistics(
        self, ref: str, *, since: datetime | str | None = None, until: datetime | str | None = None
    ) -> JobStatisticsInfo:
        """Read outcomes and durations of a job's executions in a window, by default the last seven days.

        `since`: Only from this time on, rounded down to a whole step. `until`: Only before this time, rounded up
        to a whole minute, hour or day; now by default.
        """
        query = {"from": instant(since), "to": instant(until)}
        return JobStatisticsInfo.of(await self._caller.get(path_of("jobs", ref, "statistics"), query))

    async def days(
        self, ref: str, *, since: str | None = None, until: str | None = None, timezone: str | None = None
    ) -> ApiDocument:
        """Read outcomes of a job's executions and numbers of future fires by day, by default a year back and 14 days
        ahead.

        Days that are more than 100 days ago are days of UTC instead of the time zone.

        `since`: The first day, as 2026-11-15, or the day of an instant. `until`: The last day. `timezone`: An
        IANA name such as "Europe/Paris"; UTC by default.
        """
        query = {"from": since, "to": until, "timezone": timezone}
        return ApiDocument.of(await self._caller.get(path_of("jobs", ref, "days"), query))

    async def versions(self, ref: str) -> ResultPage[JobVersionInfo]:
        """List a job's versions, newest first."""
        return page_of(JobVersionInfo, await self._caller.get(path_of("jobs", ref, "versions")))

    async def explain(self, ref: str) -> Explanation:
        """Explain why a job does not run: its triggers, its queue, its workers, and the gates of its executions."""
        return Explanation.of(await self._caller.get(path_of("jobs", ref, "explain")))

    async def grid(
        self, ref: str, *, by: Literal["run", "interval"] | None = None, limit: int | None = None,
        cursor: str | None = None,
    ) -> ApiDocument:  # fmt: skip
        """List a job's executions, newest first, with the states of their steps if it is a workflow.

        `by`: `run`: newest execution first; `interval`: in the order of data intervals; run by default.
        """
        query = {"by": by, "limit": limit, "cursor": cursor}
        return ApiDocument.of(await self._caller.get(path_of("jobs", ref, "grid"), query))
