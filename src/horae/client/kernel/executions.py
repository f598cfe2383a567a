"""`client.executions`: read, wait for, follow and cancel executions."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import datetime
from math import inf
from typing import Any, Literal

import msgspec

from horae.client.encode import given, instant
from horae.client.kernel.explanation_view import Explanation
from horae.client.transport.calls import Resource, path_of
from horae.client.views import (
    ApiDocument,
    ArtifactInfo,
    AttemptInfo,
    Cancellation,
    ExecutionInfo,
    LogLine,
    ResultPage,
    SignalReceipt,
    Status,
    page_of,
)
from horae.model.executions.output.artifact import RESULT

FIRST_LOOK = 0.02  # seconds until the second check; each check doubles the pause up to LAST_LOOK
LAST_LOOK = 1.0
LOOKS = 32  # executions that `wait_all` checks at the same time
LINES = 5_000  # log lines per request, after the first request


class ExecutionsResource(Resource):
    """Read, wait for, follow and cancel executions by id."""

    async def signal(
        self, execution_id: str, name: str, payload: Any = None, *, key: str | None = None
    ) -> SignalReceipt:
        """Send a signal to an execution that waits, or will wait, for it. With the same `key`, it is sent only once."""
        body = {"name": name, "payload": payload}
        return SignalReceipt.of(await self._caller.post(path_of("executions", execution_id, "signals"), body, key=key))

    async def graph(self, execution_id: str) -> Mapping[str, Any]:
        """Read the steps of a workflow's execution, as GET /api/v1/executions/{id}/graph returns them."""
        graph: Mapping[str, Any] = await self._caller.get(path_of("executions", execution_id, "graph"))
        return graph

    async def rerun(
        self, execution_id: str, *, since: str | None = None, params: Mapping[str, Any] | None = None,
        latest: bool = False, breakpoints: Sequence[str] = (),
    ) -> str:  # fmt: skip
        """Run an ended execution again, as a new execution; return its id.

        `since` is the step from which a workflow is run again, or "failed" for its failed steps. `params` are a
        merge patch of the first run's params. With `latest`, the present definitions are used instead of those of the
        first run. `breakpoints` are steps before which the workflow pauses.
        """
        body = {"from": since or "", "params": params, "latest": latest, "breakpoints": list(breakpoints)}
        return str((await self._caller.post(path_of("executions", execution_id, "rerun"), body))["executionId"])

    async def read_artifact(self, execution_id: str, name: str) -> AsyncIterator[bytes]:
        """Yield the content of a file that an execution stored, piece by piece."""
        async with self._caller.open(path_of("executions", execution_id, "artifacts", name), None, "*/*") as opened:
            async for chunk in opened.chunks:
                yield chunk

    async def result(self, execution: ExecutionInfo) -> Any:
        """Return the result of an execution. A large result that is stored as an artifact is downloaded."""
        value = execution.result
        stored = value.get("$artifact") if isinstance(value, dict) and len(value) == 1 else None
        if not isinstance(stored, dict) or stored.get("name") != RESULT:
            return value
        pieces = [piece async for piece in self.read_artifact(execution.execution_id, RESULT)]
        return msgspec.json.decode(b"".join(pieces))

    async def wait(self, execution_id: str, *, timeout: float | None = None) -> ExecutionInfo:
        """Wait until the execution is final and return it.

        Raises TimeoutError after `timeout` seconds; the execution continues.
        """
        return await self._wait(execution_id, timeout, nullcontext())

    async def wait_all(self, ids: Sequence[str], *, timeout: float | None = None) -> Sequence[ExecutionInfo]:
        """Wait until all executions are final; return them in the order of `ids`."""
        turn = asyncio.Semaphore(LOOKS)
        waits = [asyncio.ensure_future(self._wait(one, timeout, turn)) for one in ids]
        try:
            return await asyncio.gather(*waits)
        finally:
            for wait in waits:
                wait.cancel()

    async def _wait(
        self, execution_id: str, timeout: float | None, turn: AbstractAsyncContextManager[None]
    ) -> ExecutionInfo:
        """Check an execution until it is final; enter `turn` for each check."""
        clock = self._caller.env.clock
        ends_at = inf if timeout is None else clock.monotonic() + timeout
        pause, is_over = FIRST_LOOK, False
        while True:
            async with turn:
                execution = await self.get(execution_id)
            if execution.is_final:
                return execution
            if is_over:
                raise TimeoutError(f"Execution {execution_id} is still {execution.status} after {timeout} s.")
            left = max(0.0, ends_at - clock.monotonic())
            is_over = left <= pause
            await clock.sleep(min(pause, left))
            pause = min(LAST_LOOK, pause * 2)

    async def logs(
        self,
        execution_id: str,
        *,
        follow: bool = False,
        attempt: int | None = None,
        tail: int | None = None,
        grep: str | None = None,
        level: str | None = None,
    ) -> AsyncIterator[LogLine]:
        """Yield the log lines written so far, oldest first; with `follow`, continue until the execution is final.

        `tail` is the number of last lines to select. `grep` selects lines that contain a text, in which `*` is a
        wildcard, or, after `re:`, lines that match a regular expression. `level` selects lines of this level or higher.
        """
        async for page in self.log_pages(
            execution_id, follow=follow, attempt=attempt, tail=tail, grep=grep, level=level
        ):
            for line in page:
                yield line

    async def log_pages(
        self,
        execution_id: str,
        *,
        follow: bool = False,
        attempt: int | None = None,
        tail: int | None = None,
        grep: str | None = None,
        level: str | None = None,
        on_open: Callable[[Sequence[LogLine]], object] | None = None,
    ) -> AsyncIterator[Sequence[LogLine]]:
        """Yield the same lines as `logs`, in the batches in which they arrive.

        With `follow`, `on_open` is called with the unfinished lines whenever no new line has arrived.
        """
        pause = FIRST_LOOK
        wanted = {"attempt": attempt, "grep": grep, "level": level}
        query: dict[str, Any] = {"cursor": None, "tail": tail, **wanted}
        while True:
            page = await self._caller.get(path_of("executions", execution_id, "logs"), query)
            going_on = page.get("more", False)
            if query.get("tail") is not None:  # the page has the newest lines already
                await self._complete(execution_id, page, query["tail"], wanted)
                going_on = False
            query = {"cursor": page["nextCursor"], "limit": LINES, **wanted}
            if page["items"]:
                yield [LogLine.of(item) for item in page["items"]]
                pause = FIRST_LOOK
            elif going_on:
                continue
            elif page["ended"] or not follow:
                if unfinished := page.get("unfinishedLines"):
                    yield [LogLine.of(item) for item in unfinished]
                if (cut := page.get("truncated")) and cut["ends"]:  # otherwise a line of the log has the notice
                    yield [LogLine.of({"stream": "log", "level": "warning", "text": cut["notice"]})]
                return
            else:
                if on_open is not None:
                    on_open([LogLine.of(item) for item in page.get("unfinishedLines", ())])
                await self._caller.env.clock.sleep(pause)
                pause = min(LAST_LOOK, pause * 2)

    async def _complete(self, execution_id: str, page: Mapping[str, Any], tail: int, wanted: Mapping[str, Any]) -> None:
        """Add earlier lines to a page until it has `tail` lines: with long lines, or in a search, it may have fewer."""
        items, older = page["items"], page
        while older.get("more") and len(items) < tail and older["from"] > 1:
            query = {"before": older["from"], "limit": tail - len(items), **wanted}
            older = await self._caller.get(path_of("executions", execution_id, "logs"), query)
            items[:0] = older["items"]

    async def read_log(
        self,
        execution_id: str,
        *,
        attempt: int | None = None,
        grep: str | None = None,
        level: str | None = None,
        timestamps: bool = False,
    ) -> AsyncIterator[bytes]:
        """Yield the log as one text, in pieces of any size. With `timestamps`, each line begins with its time."""
        query = {"attempt": attempt, "grep": grep, "level": level, "timestamps": "true" if timestamps else None}
        async with self._caller.open(
            path_of("executions", execution_id, "logs", "download"), query, "text/plain"
        ) as opened:
            async for chunk in opened.chunks:
                yield chunk

    # `python -m tools.sdk` writes the methods below, from the routes of executions (submit: none, skip-step: skip,
    # complete-step: complete, artifact: read_artifact, download-log: read_log).

    async def counts(self) -> ApiDocument:
        """Count executions by status.

        Executions that have not ended are counted exactly. Ended ones are counted from statistics, which may miss
        the last five seconds of other servers, or up to two minutes after a server was killed.
        """
        return ApiDocument.of(await self._caller.get(path_of("executions", "counts")))

    async def list(
        self, *, job: str | None = None, queue: str | None = None, parent: str | None = None,
        status: Status | Literal["pending"] | None = None, tag: str | None = None, worker: str | None = None,
        since: datetime | str | None = None, until: datetime | str | None = None, limit: int | None = None,
        cursor: str | None = None,
    ) -> ResultPage[ExecutionInfo]:  # fmt: skip
        """List executions, newest first. Large params and results are left out, and sensitive ones are hidden.

        `job`: Only entries of this job, by name or id. `queue`: Only entries of this queue. `parent`: Only
        executions that this execution submitted, or runs as steps. `status`: `pending` means waiting or queued.
        `tag`: Only executions with this tag: "name" or "name=value". `worker`: Only executions that this worker
        runs or ran. `since`: Only from this time on. `until`: Only before this time.
        """
        query = {
            "job": job, "queue": queue, "parent": parent, "status": status, "tag": tag, "worker": worker,
            "since": instant(since), "until": instant(until), "limit": limit, "cursor": cursor,
        }  # fmt: skip
        return page_of(ExecutionInfo, await self._caller.get(path_of("executions"), query))

    async def get(self, execution_id: str) -> ExecutionInfo:
        """Read an execution."""
        return ExecutionInfo.of(await self._caller.get(path_of("executions", execution_id)))

    async def cancel(self, execution_id: str, *, reason: str | None = None) -> Cancellation:
        """Cancel an execution that has not started; ask the worker to stop a running one.

        `reason`: The reason, stored with the execution.
        """
        body = given(reason=reason)
        return Cancellation.of(await self._caller.post(path_of("executions", execution_id, "cancel"), body))

    async def attempts(self, execution_id: str) -> ResultPage[AttemptInfo]:
        """List the attempts of an execution in order, each with its error."""
        return page_of(AttemptInfo, await self._caller.get(path_of("executions", execution_id, "attempts")))

    async def explain(self, execution_id: str) -> Explanation:
        """Explain why an execution does not run: its closed gates in order, the remedy for each, and the probable
        start.
        """
        return Explanation.of(await self._caller.get(path_of("executions", execution_id, "explain")))

    async def artifacts(
        self, execution_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> ResultPage[ArtifactInfo]:
        """List the files that an execution left behind, in the order of their names."""
        query = {"limit": limit, "cursor": cursor}
        return page_of(ArtifactInfo, await self._caller.get(path_of("executions", execution_id, "artifacts"), query))

    async def archived(
        self, *, status: Literal["success", "failed", "cancelled", "skipped"] | None = None, job: str | None = None,
        tag: str | None = None, since: datetime | str | None = None, until: datetime | str | None = None,
        limit: int | None = None, cursor: str | None = None,
    ) -> ResultPage[ExecutionInfo]:  # fmt: skip
        """List archived executions, beginning with the newest files.

        A page may be short or empty although `nextCursor` says that there are more.

        `job`: The id of a job, or its name when it was archived. `tag`: Only executions with this tag: "name" or
        "name=value". `since`: Only from this time on. `until`: Only before this time.
        """
        query = {
            "status": status, "job": job, "tag": tag, "since": instant(since), "until": instant(until), "limit": limit,
            "cursor": cursor,
        }  # fmt: skip
        return page_of(ExecutionInfo, await self._caller.get(path_of("archive"), query))

    async def pause(self, execution_id: str) -> ExecutionInfo:
        """Pause a workflow and the workflows below it: no step starts until it is resumed; running steps continue."""
        return ExecutionInfo.of(await self._caller.post(path_of("executions", execution_id, "pause")))

    async def resume(self, execution_id: str) -> ExecutionInfo:
        """Resume a paused workflow, also a workflow that stopped at a breakpoint."""
        return ExecutionInfo.of(await self._caller.post(path_of("executions", execution_id, "resume")))

    async def approvals(self, *, limit: int | None = None, cursor: str | None = None) -> ResultPage[ApiDocument]:
        """List steps of workflows that wait for approval, the longest wait first."""
        return page_of(ApiDocument, await self._caller.get(path_of("approvals"), {"limit": limit, "cursor": cursor}))

    async def approve(self, execution_id: str, *, step: str | None = None, comment: str | None = None) -> ExecutionInfo:
        """Approve a waiting step of a workflow.

        `step`: The step; required if several steps wait. `comment`: The reason, stored with the step.
        """
        body = given(step=step, comment=comment)
        return ExecutionInfo.of(await self._caller.post(path_of("executions", execution_id, "approve"), body))

    async def reject(self, execution_id: str, *, step: str | None = None, comment: str | None = None) -> ExecutionInfo:
        """Reject a waiting step of a workflow; the step fails.

        `step`: The step; required if several steps wait. `comment`: The reason, stored with the step.
        """
        body = given(step=step, comment=comment)
        return ExecutionInfo.of(await self._caller.post(path_of("executions", execution_id, "reject"), body))

    async def skip(self, execution_id: str, step: str, *, reason: str | None = None) -> ExecutionInfo:
        """Skip a step of a workflow; its executions are cancelled.

        `reason`: The reason, stored with the step.
        """
        body = given(reason=reason)
        return ExecutionInfo.of(
            await self._caller.post(path_of("executions", execution_id, "steps", step, "skip"), body)
        )

    async def complete(
        self, execution_id: str, step: str, *, result: Any | None = None, reason: str | None = None
    ) -> ExecutionInfo:
        """Complete a step of a workflow with a given result; its executions are cancelled.

        `result`: The step's result for later steps; null by default. `reason`: The reason, stored with the step.
        """
        body = given(result=result, reason=reason)
        return ExecutionInfo.of(
            await self._caller.post(path_of("executions", execution_id, "steps", step, "complete"), body)
        )
