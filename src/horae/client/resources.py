"""The smaller resources: `client.dlq`, `.workers`, `.servers`, `.audit` and `.clock`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Unpack

from horae.client.dead_letter_options import DeadLetterFilters
from horae.client.encode import given, instant, span
from horae.client.transport.calls import Resource, path_of
from horae.client.views import (
    ApiDocument,
    AutoscaleSignals,
    BulkResult,
    DeadLetter,
    ReplayInfo,
    ResultPage,
    WorkerInfo,
    page_of,
)
from horae.model.executions.job_exceptions import Span


class DeadLettersResource(Resource):
    """Executions that failed after their last retry."""

    async def retry(
        self, ids: Sequence[str] | None = None, *, params: Mapping[str, Any] | None = None, limit: int | None = None,
        cursor: str | None = None, **filters: Unpack[DeadLetterFilters],
    ) -> BulkResult:  # fmt: skip
        """Run dead letters again as new executions, by id or by filter.

        `params` override single params of the dead letters; None removes a param.
        """
        body = _which(ids, filters, limit, cursor)
        if params is not None:
            body["params"] = dict(params)
        return BulkResult.of(await self._caller.post(path_of("dlq", "retry"), body))

    async def discard(
        self, ids: Sequence[str] | None = None, *, limit: int | None = None, cursor: str | None = None,
        **filters: Unpack[DeadLetterFilters],
    ) -> BulkResult:  # fmt: skip
        """Remove dead letters from the list, by id or by filter; their history stays."""
        return BulkResult.of(await self._caller.post(path_of("dlq", "discard"), _which(ids, filters, limit, cursor)))

    async def replay(
        self, *, rate: str | None = None, params: Mapping[str, Any] | None = None, **filters: Unpack[DeadLetterFilters]
    ) -> ReplayInfo:
        """Run all matching dead letters again, at a rate such as "10/1s"; the servers do it in the background."""
        body = {"filter": _filter(filters), **given(rate=rate)}
        if params is not None:
            body["params"] = dict(params)
        return ReplayInfo.of(await self._caller.post(path_of("dlq", "replays"), body))

    # `python -m tools.sdk` writes the methods below, from the routes of dlq.

    async def list(
        self, *, state: Literal["open", "retried", "discarded", "all"] | None = None, job: str | None = None,
        queue: str | None = None, error_type: str | None = None, reason: str | None = None, text: str | None = None,
        since: datetime | str | None = None, until: datetime | str | None = None, older_than: Span | None = None,
        limit: int | None = None, cursor: str | None = None,
    ) -> ResultPage[DeadLetter]:  # fmt: skip
        """List dead letters, newest first.

        `state`: The state of the dead letters; open by default. `job`: Only dead letters of this job, by name or
        id. `queue`: Only dead letters of this queue. `error_type`: Only dead letters with this type of error.
        `reason`: Only dead letters that ended for this reason: retries, permanent, ... `text`: Only dead letters
        whose error message contains this text. `since`: Only dead letters created at this time or later. RFC 3339
        with an offset. `until`: Only dead letters created before this time. RFC 3339 with an offset.
        `older_than`: Only dead letters created longer ago than this, such as 7d.
        """
        query = {
            "state": state, "job": job, "queue": queue, "error_type": error_type, "reason": reason, "text": text,
            "since": instant(since), "until": instant(until), "older_than": span(older_than), "limit": limit,
            "cursor": cursor,
        }  # fmt: skip
        return page_of(DeadLetter, await self._caller.get(path_of("dlq"), query))

    async def groups(
        self, *, state: Literal["open", "retried", "discarded", "all"] | None = None, job: str | None = None,
        queue: str | None = None, error_type: str | None = None, reason: str | None = None, text: str | None = None,
        since: datetime | str | None = None, until: datetime | str | None = None, older_than: Span | None = None,
    ) -> ApiDocument:  # fmt: skip
        """Count dead letters by job and error type, the largest group first; each has its newest one as an example.

        `state`: The state of the dead letters; open by default. `job`: Only dead letters of this job, by name or
        id. `queue`: Only dead letters of this queue. `error_type`: Only dead letters with this type of error.
        `reason`: Only dead letters that ended for this reason: retries, permanent, ... `text`: Only dead letters
        whose error message contains this text. `since`: Only dead letters created at this time or later. RFC 3339
        with an offset. `until`: Only dead letters created before this time. RFC 3339 with an offset.
        `older_than`: Only dead letters created longer ago than this, such as 7d.
        """
        query = {
            "state": state, "job": job, "queue": queue, "error_type": error_type, "reason": reason, "text": text,
            "since": instant(since), "until": instant(until), "older_than": span(older_than),
        }  # fmt: skip
        return ApiDocument.of(await self._caller.get(path_of("dlq", "groups"), query))

    async def get(self, execution_id: str) -> DeadLetter:
        """Read a dead letter."""
        return DeadLetter.of(await self._caller.get(path_of("dlq", execution_id)))

    async def replays(
        self, *, state: Literal["running", "paused", "cancelled", "done"] | None = None, limit: int | None = None,
        cursor: str | None = None,
    ) -> ResultPage[ReplayInfo]:  # fmt: skip
        """List replays, newest first.

        `state`: Only replays in this state.
        """
        query = {"state": state, "limit": limit, "cursor": cursor}
        return page_of(ReplayInfo, await self._caller.get(path_of("dlq", "replays"), query))

    async def get_replay(self, replay_id: str) -> ReplayInfo:
        """Read a replay with its progress."""
        return ReplayInfo.of(await self._caller.get(path_of("dlq", "replays", replay_id)))

    async def pause_replay(self, replay_id: str) -> ReplayInfo:
        """Pause a replay until it is resumed."""
        return ReplayInfo.of(await self._caller.post(path_of("dlq", "replays", replay_id, "pause")))

    async def resume_replay(self, replay_id: str) -> ReplayInfo:
        """Resume a paused replay."""
        return ReplayInfo.of(await self._caller.post(path_of("dlq", "replays", replay_id, "resume")))

    async def cancel_replay(self, replay_id: str) -> ReplayInfo:
        """Cancel a replay for good; executions that it retried are not affected."""
        return ReplayInfo.of(await self._caller.post(path_of("dlq", "replays", replay_id, "cancel")))


def _which(
    ids: Sequence[str] | None, filters: DeadLetterFilters, limit: int | None, cursor: str | None
) -> dict[str, Any]:
    return {"ids": ids} if ids is not None else {"filter": {**_filter(filters), **given(limit=limit, cursor=cursor)}}


def _filter(filters: DeadLetterFilters) -> dict[str, Any]:
    times = {"since": instant(filters.get("since")), "until": instant(filters.get("until"))}
    return given(**{**filters, **times, "older_than": span(filters.get("older_than"))})


class WorkersResource(Resource):
    """Worker processes."""

    # `python -m tools.sdk` writes the methods below, from the routes of workers, autoscale (queue: signals), enrolments
    # (create: enrol).

    async def list(self) -> ResultPage[WorkerInfo]:
        """List workers that are present or were lost recently, newest first."""
        return page_of(WorkerInfo, await self._caller.get(path_of("workers")))

    async def get(self, worker_id: str) -> WorkerInfo:
        """Read a worker, by its name or its session's id."""
        return WorkerInfo.of(await self._caller.get(path_of("workers", worker_id)))

    async def drain(self, worker_id: str) -> WorkerInfo:
        """Ask a worker to finish its running executions and leave."""
        return WorkerInfo.of(await self._caller.post(path_of("workers", worker_id, "drain")))

    async def signals(
        self, queue: str, *, target_wait: Span | None = None, slots: int | None = None
    ) -> AutoscaleSignals:
        """Read the load of a queue, and the number of workers for a target wait.

        `target_wait`: The time that an execution may wait, such as 5s; 5s by default. `slots`: Slots per worker;
        the mean of present workers by default.
        """
        query = {"target_wait": span(target_wait), "slots": slots}
        return AutoscaleSignals.of(await self._caller.get(path_of("autoscale", "queues", queue), query))

    async def enrol(self, *, queues: Sequence[str] = (), expires_in: Span | None = None) -> ApiDocument:
        """Create a token that one worker exchanges for its own key. A repeated request creates another token.

        `queues`: The only queues that the worker may serve. `expires_in`: The validity of the token, up to 30d;
        1h by default.
        """
        body = given(queues=list(queues) or None, expires_in=span(expires_in))
        return ApiDocument.of(await self._caller.post(path_of("enrolments"), body))

    async def redeem(self, token: str, *, name: str | None = None) -> ApiDocument:
        """Exchange a token for a worker's key, which is shown once.

        A token works once, so a repeated request is refused.

        `name`: The worker's name, which users see.
        """
        return ApiDocument.of(await self._caller.post(path_of("enrolments", "redeem"), given(token=token, name=name)))


class ServersResource(Resource):
    """The servers of an installation."""

    # `python -m tools.sdk` writes the methods below, from the routes of servers.

    async def list(self) -> ResultPage[ApiDocument]:
        """List the servers with a recent heartbeat."""
        return page_of(ApiDocument, await self._caller.get(path_of("servers")))


class AuditResource(Resource):
    """Checks of a live store, and the audit log."""

    async def executions(self, *, repair: bool = False) -> ApiDocument:
        """Check that each execution is stored in exactly one place and has an owner.

        With `repair`, give executions without an owner a new one.
        """
        ask = self._caller.post if repair else self._caller.get
        return ApiDocument.of(await ask(path_of("audit", "executions"), timeout=600.0))

    # `python -m tools.sdk` writes the methods below, from the routes of audit (verify: verify_log, repair: executions).

    async def log(
        self, *, since: datetime | str | None = None, until: datetime | str | None = None, actor: str | None = None,
        target: str | None = None, action: str | None = None, limit: int | None = None, cursor: str | None = None,
    ) -> ResultPage[ApiDocument]:  # fmt: skip
        """List the actions of users and programs, newest first, with the changed fields before and after.

        `since`: Only rows from this time on. `until`: Only rows before this time. `actor`: Only this actor:
        `key:` and a key's id, or `user:` and a name. `target`: Only this object and its parts, such as
        `jobs/etl`, or all objects of a kind, such as `jobs`. `action`: Only this operation, such as `jobs.edit`,
        or, with a dot at the end, all such operations: `jobs.`.
        """
        query = {
            "from": instant(since), "to": instant(until), "actor": actor, "target": target, "action": action,
            "limit": limit, "cursor": cursor,
        }  # fmt: skip
        return page_of(ApiDocument, await self._caller.get(path_of("audit", "log"), query))

    async def verify_log(self) -> ApiDocument:
        """Check that no row of the audit log was edited, removed, moved or cut off; name the first such row."""
        return ApiDocument.of(await self._caller.get(path_of("audit", "log", "verdict")))

    async def fires(
        self, job: str, since: datetime | str, until: datetime | str, *, trigger: str | None = None
    ) -> ApiDocument:
        """Check that each nominal fire of a job's triggers is covered by exactly one row of the ledger.

        `job`: A job's name or id. `since`: The start of the range, RFC 3339. `until`: The end of the range,
        exclusive. `trigger`: Only this trigger, by name.
        """
        query = {"job": job, "from": instant(since), "to": instant(until), "trigger": trigger}
        return ApiDocument.of(await self._caller.get(path_of("audit", "fires"), query))


class ClockResource(Resource):
    """The server's clock and its trust in it."""

    # `python -m tools.sdk` writes the methods below, from the routes of clock.

    async def get(self) -> ApiDocument:
        """Read the server's clock."""
        return ApiDocument.of(await self._caller.get(path_of("clock")))

    async def accept(self) -> ApiDocument:
        """Accept the present time on all servers, so that triggers fire and old data expires again."""
        return ApiDocument.of(await self._caller.post(path_of("clock", "accept")))
