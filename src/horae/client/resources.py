"""The smaller resources: `client.dlq`, `.workers`, `.servers`, `.audit` and `.clock`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from horae.client.encode import given, instant, span
from horae.client.transport.calls import Caller, path_of
from horae.client.views import Bulk, DeadLetter, Page, Replay, Signals, View, Worker, page_of
from horae.model.executions.signals import Span


class DeadLetters:
    """Executions that failed after their last try."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def get(self, id: str) -> DeadLetter:
        return DeadLetter.of(await self._caller.get(path_of("dlq", id)))

    async def list(self, *, limit: int | None = None, cursor: str | None = None, **filters: Any) -> Page[DeadLetter]:
        query = {**filters, "limit": limit, "cursor": cursor}
        return page_of(DeadLetter, await self._caller.get(path_of("dlq"), query))

    async def groups(self, **filters: Any) -> View:
        """How many there are of each job and error, the largest group first."""
        return View.of(await self._caller.get(path_of("dlq", "groups"), filters))

    async def retry(
        self, ids: Sequence[str] | None = None, *, params: Mapping[str, Any] | None = None, **filters: Any
    ) -> Bulk:
        """Run dead letters again as new executions, by id or by filter; `params` replace theirs, None takes away."""
        body = _which(ids, filters) if params is None else {**_which(ids, filters), "params": dict(params)}
        return Bulk.of(await self._caller.post(path_of("dlq", "retry"), body))

    async def discard(self, ids: Sequence[str] | None = None, **filters: Any) -> Bulk:
        """Take dead letters off the list, by id or by filter; their history stays."""
        return Bulk.of(await self._caller.post(path_of("dlq", "discard"), _which(ids, filters)))

    async def replay(
        self, *, rate: str | None = None, params: Mapping[str, Any] | None = None, **filters: Any
    ) -> Replay:
        """Run all that match now again, at a pace such as "10/1s"; the servers go on with it by themselves."""
        body = {"filter": given(**filters), **given(rate=rate)}
        if params is not None:
            body["params"] = dict(params)
        return Replay.of(await self._caller.post(path_of("dlq", "replays"), body))

    async def replays(
        self, *, state: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Page[Replay]:
        """Replays, newest first."""
        query = {"state": state, "limit": limit, "cursor": cursor}
        return page_of(Replay, await self._caller.get(path_of("dlq", "replays"), query))

    async def get_replay(self, id: str) -> Replay:
        return Replay.of(await self._caller.get(path_of("dlq", "replays", id)))

    async def pause_replay(self, id: str) -> Replay:
        """Run nothing more of it until it is resumed."""
        return Replay.of(await self._caller.post(path_of("dlq", "replays", id, "pause")))

    async def resume_replay(self, id: str) -> Replay:
        return Replay.of(await self._caller.post(path_of("dlq", "replays", id, "resume")))

    async def cancel_replay(self, id: str) -> Replay:
        """Run nothing more of it, for good."""
        return Replay.of(await self._caller.post(path_of("dlq", "replays", id, "cancel")))


def _which(ids: Sequence[str] | None, filters: dict[str, Any]) -> dict[str, Any]:
    return {"ids": ids} if ids is not None else {"filter": given(**filters)}


class Workers:
    """Processes that execute."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def get(self, id: str) -> Worker:
        return Worker.of(await self._caller.get(path_of("workers", id)))

    async def list(self) -> Page[Worker]:
        return page_of(Worker, await self._caller.get(path_of("workers")))

    async def drain(self, id: str) -> Worker:
        """Ask a worker to finish what it runs and leave."""
        return Worker.of(await self._caller.post(path_of("workers", id, "drain")))

    async def enrol(self, *, queues: Sequence[str] = (), expires_in: Span = "1h") -> View:
        """A token that one worker exchanges for a key of its own: its `token`, and when it ends."""
        body = {"queues": list(queues), "expiresIn": span(expires_in)}
        return View.of(await self._caller.post(path_of("enrolments"), body))

    async def redeem(self, token: str, name: str) -> View:
        """Exchange a token for a worker's key, which works without a credential, and once."""
        return View.of(await self._caller.post(path_of("enrolments", "redeem"), {"token": token, "name": name}))

    async def signals(self, queue: str = "default", *, target_wait: Span = "5s", slots: int | None = None) -> Signals:
        """How a queue stands, and how many workers it wants so that nothing waits longer; `slots` of a worker."""
        query = {"targetWait": span(target_wait), "slots": slots}
        return Signals.of(await self._caller.get(path_of("autoscale", "queues", queue), query))


class Listing:
    """Things that are only looked at."""

    def __init__(self, caller: Caller, noun: str) -> None:
        self._caller, self._noun = caller, noun

    async def list(self) -> Page[View]:
        return page_of(View, await self._caller.get(path_of(self._noun)))


class Audit:
    """Checks of a live store, and the log of who did what."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def executions(self, *, repair: bool = False) -> View:
        """Check that each execution is in one place and has an owner; with `repair`, queue again what has none."""
        path = path_of("audit", "executions")
        timeout = 600.0
        return View.of(await (self._caller.post(path, timeout=timeout) if repair else self._caller.get(path)))

    async def fires(self, job: str, since: datetime | str, until: datetime | str, trigger: str | None = None) -> View:
        """Check that each nominal fire of a job's triggers in [since, until) is covered by exactly one ledger row."""
        query = {"job": job, "from": instant(since), "to": instant(until), "trigger": trigger}
        return View.of(await self._caller.get(path_of("audit", "fires"), query))

    async def log(
        self,
        *,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        **filters: Any,
    ) -> Page[View]:
        """Who did what, newest first; filters are `actor`, `action` and `target`."""
        times = {"from": since and instant(since), "to": until and instant(until)}
        query = {**times, **filters, "limit": limit, "cursor": cursor}
        return page_of(View, await self._caller.get(path_of("audit", "log"), query))

    async def verify_log(self) -> View:
        """Check that the audit log is whole; `broken` names the first row that is not as it was written."""
        return View.of(await self._caller.get(path_of("audit", "log", "verdict")))


class ServerClock:
    """What the server believes about time."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def get(self) -> View:
        """Server time, and whether it is trusted."""
        return View.of(await self._caller.get(path_of("clock")))

    async def accept(self) -> View:
        """Take the present time for true on all servers."""
        return View.of(await self._caller.post(path_of("clock", "accept")))
