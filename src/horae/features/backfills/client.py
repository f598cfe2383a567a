"""`client.backfills`: runs of past fires."""

from datetime import datetime
from typing import Any, Literal, Unpack

import msgspec

from horae.client.encode import encode, given, instant
from horae.client.transport.calls import Resource, path_of
from horae.client.views import ApiDocument, ResultPage, page_of
from horae.features.backfills.options import BackfillOptions

POLL_INTERVAL = 0.5  # seconds between checks of a backfill


class BackfillPlanInfo(ApiDocument, frozen=True, kw_only=True):
    """The result of a dry run of a backfill."""

    fires: int
    to_run: int
    already_ran: int = 0
    unknown: int = 0  # fires that are no longer in the ledger
    first_fire_at: datetime | None = None
    last_fire_at: datetime | None = None
    known_from: datetime | None = None  # the time since which the ledger is complete
    notes: tuple[str, ...] = ()


class BackfillInfo(ApiDocument, frozen=True, kw_only=True):
    """A backfill and its progress."""

    backfill_id: str
    job_id: str
    job_name: str
    trigger: str | None = None
    state: str
    progress: float
    fires: int
    already_ran: int = 0
    unknown: int = 0  # fires that are no longer in the ledger
    started: int = 0
    live: int = 0
    succeeded: int = 0
    failed: int = 0
    ended_otherwise: int = 0
    notes: tuple[str, ...] = ()
    created_at: datetime | None = None
    completed_at: datetime | None = None

    @property
    def id(self) -> str:
        return self.backfill_id

    @property
    def is_final(self) -> bool:
        """All executions of the backfill have ended, and no more will start."""
        return self.completed_at is not None

    @property
    def is_stuck(self) -> bool:
        """An error has paused the backfill; `notes` names it. It continues only after it is resumed."""
        return self.state == "paused" and bool(self.notes)


class BackfillsResource(Resource):
    """Backfills, by id."""

    async def create(
        self, job: str, since: datetime | str, until: datetime | str, **options: Unpack[BackfillOptions]
    ) -> BackfillInfo:
        """Run the fires of a job in [since, until) that did not run, with the options of `BackfillOptions`."""
        return BackfillInfo.of(await self._caller.post(path_of("backfills"), _body(job, since, until, options)))

    async def plan(
        self, job: str, since: datetime | str, until: datetime | str, **options: Unpack[BackfillOptions]
    ) -> BackfillPlanInfo:
        """Return the fires that `create` would run, with the same options; no execution starts."""
        body = {**_body(job, since, until, options), "dryRun": True}
        return BackfillPlanInfo.of(await self._caller.post(path_of("backfills"), body))

    async def cancel(self, backfill_id: str, *, executions: bool = False) -> BackfillInfo:
        """End a backfill: it starts no more executions. With `executions`, cancel those that have not ended."""
        body = {"executions": "cancel" if executions else "finish"}
        return BackfillInfo.of(await self._caller.post(path_of("backfills", backfill_id, "cancel"), body))

    async def wait(self, backfill_id: str) -> BackfillInfo:
        """Wait until all executions have ended and no more will start, or until an error has paused the backfill."""
        while not ((found := await self.get(backfill_id)).is_final or found.is_stuck):
            await self._caller.env.clock.sleep(POLL_INTERVAL)
        return found

    # `python -m tools.sdk` writes the methods below, from the routes of backfills.

    async def list(
        self, *, job: str | None = None, state: Literal["running", "paused", "cancelled", "done"] | None = None,
        limit: int | None = None, cursor: str | None = None,
    ) -> ResultPage[BackfillInfo]:  # fmt: skip
        """List backfills, newest first.

        `job`: Only entries of this job, by name or id. `state`: Only backfills in this state.
        """
        query = {"job": job, "state": state, "limit": limit, "cursor": cursor}
        return page_of(BackfillInfo, await self._caller.get(path_of("backfills"), query))

    async def get(self, backfill_id: str) -> BackfillInfo:
        """Read a backfill with its progress."""
        return BackfillInfo.of(await self._caller.get(path_of("backfills", backfill_id)))

    async def runs(
        self, backfill_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> ResultPage[ApiDocument]:
        """List the fires that a backfill ran, with their executions, in the order of the fires."""
        query = {"limit": limit, "cursor": cursor}
        return page_of(ApiDocument, await self._caller.get(path_of("backfills", backfill_id, "runs"), query))

    async def pause(self, backfill_id: str) -> BackfillInfo:
        """Pause a backfill until it is resumed; running executions continue."""
        return BackfillInfo.of(await self._caller.post(path_of("backfills", backfill_id, "pause")))

    async def resume(self, backfill_id: str) -> BackfillInfo:
        """Resume a paused backfill."""
        return BackfillInfo.of(await self._caller.post(path_of("backfills", backfill_id, "resume")))


def _body(job: str, since: datetime | str, until: datetime | str, options: BackfillOptions) -> dict[str, Any]:
    params = options.get("params")
    rest = {name: value for name, value in options.items() if name != "params"}
    body = {"job": job, "from": instant(since), "to": instant(until), **given(**rest)}
    return body if params is None else {**body, "params": msgspec.Raw(encode(params))}
