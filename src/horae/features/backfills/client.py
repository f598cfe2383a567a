"""`client.backfills`: fires of the past that are to run."""

from datetime import datetime
from typing import Any, Literal, Unpack

import msgspec

from horae.client.encode import encode, given, instant
from horae.client.transport.calls import Resource, path_of
from horae.client.views import ApiDocument, ResultPage, page_of
from horae.features.backfills.options import BackfillOptions

LOOK = 0.5  # seconds between looks at a backfill that is waited for


class BackfillPlan(ApiDocument, frozen=True, kw_only=True):
    """What a backfill would do."""

    fires: int
    to_run: int
    already_ran: int = 0
    unknown: int = 0
    first_fire_at: datetime | None = None
    last_fire_at: datetime | None = None
    known_from: datetime | None = None
    notes: tuple[str, ...] = ()


class BackfillInfo(ApiDocument, frozen=True, kw_only=True):
    """A backfill and how far it is."""

    backfill_id: str
    job_id: str
    job_name: str
    trigger: str | None = None
    state: str
    progress: float
    fires: int
    already_ran: int = 0
    unknown: int = 0
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
        """Nothing more starts, and all that was started has ended."""
        return self.completed_at is not None


class BackfillsResource(Resource):
    """Backfills, by id."""

    async def create(
        self, job: str, since: datetime | str, until: datetime | str, **options: Unpack[BackfillOptions]
    ) -> BackfillInfo:
        """Run what did not run of a job's fires in [since, until).

        Its options are those of `BackfillOptions`.
        """
        return BackfillInfo.of(await self._caller.post(path_of("backfills"), _body(job, since, until, options)))

    async def plan(
        self, job: str, since: datetime | str, until: datetime | str, **options: Unpack[BackfillOptions]
    ) -> BackfillPlan:
        """What `create` would run, with the same options; nothing is started."""
        body = {**_body(job, since, until, options), "dryRun": True}
        return BackfillPlan.of(await self._caller.post(path_of("backfills"), body))

    async def cancel(self, id: str, *, executions: bool = False) -> BackfillInfo:
        """Start nothing more, for good; with `executions`, what it started and has not ended is cancelled too."""
        body = {"executions": "cancel" if executions else "finish"}
        return BackfillInfo.of(await self._caller.post(path_of("backfills", id, "cancel"), body))

    async def wait(self, id: str) -> BackfillInfo:
        """Wait until nothing more starts and all that was started has ended."""
        while not (found := await self.get(id)).is_final:
            await self._caller.env.clock.sleep(LOOK)
        return found

    # `python -m tools.sdk` writes what follows, from the routes of backfills.

    async def list(
        self, *, job: str | None = None, state: Literal["running", "paused", "cancelled", "done"] | None = None,
        limit: int | None = None, cursor: str | None = None,
    ) -> ResultPage[BackfillInfo]:  # fmt: skip
        """List backfills, newest first.

        `job`: Only those of this job, by name or id. `state`: Only those in this state.
        """
        query = {"job": job, "state": state, "limit": limit, "cursor": cursor}
        return page_of(BackfillInfo, await self._caller.get(path_of("backfills"), query))

    async def get(self, id: str) -> BackfillInfo:
        """Read a backfill and how far it is."""
        return BackfillInfo.of(await self._caller.get(path_of("backfills", id)))

    async def runs(self, id: str, *, limit: int | None = None, cursor: str | None = None) -> ResultPage[ApiDocument]:
        """List the fires that a backfill ran, with their executions, in the order of the fires."""
        query = {"limit": limit, "cursor": cursor}
        return page_of(ApiDocument, await self._caller.get(path_of("backfills", id, "runs"), query))

    async def pause(self, id: str) -> BackfillInfo:
        """Start nothing more until resumed; what was started goes on."""
        return BackfillInfo.of(await self._caller.post(path_of("backfills", id, "pause")))

    async def resume(self, id: str) -> BackfillInfo:
        """Go on where it stopped."""
        return BackfillInfo.of(await self._caller.post(path_of("backfills", id, "resume")))


def _body(job: str, since: datetime | str, until: datetime | str, options: BackfillOptions) -> dict[str, Any]:
    params = options.get("params")
    rest = {name: value for name, value in options.items() if name != "params"}
    body = {"job": job, "from": instant(since), "to": instant(until), **given(**rest)}
    return body if params is None else {**body, "params": msgspec.Raw(encode(params))}
