"""`client.triggers` and `client.fires`: the triggers of jobs, and past and coming fires."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, Unpack

from horae.client.encode import definition, instant
from horae.client.kernel.trigger_options import TriggerFields, TriggerKind
from horae.client.transport.calls import Resource, path_of
from horae.client.views import ApiDocument, ResultPage, page_of


class TriggerInfo(ApiDocument, frozen=True, kw_only=True):
    """A trigger of a job and its state; the server's whole answer is in `raw`."""

    job_id: str
    job: str
    name: str
    kind: str = ""
    state: str = ""
    text: str = ""  # the definition in words
    definition: dict[str, Any] | None = None
    next_fire_at: datetime | None = None
    fired: int = 0
    problem: str | None = None


class Preview(ApiDocument, frozen=True, kw_only=True):
    """The coming fires of a trigger."""

    fires: list[datetime]
    text: str = ""
    timezone: str = "UTC"


class TriggersResource(Resource):
    """Add, read, change, pause and preview triggers.

    `job` is a job's name or id, `name` the name of one of its triggers.
    """

    async def add(
        self,
        job: str,
        trigger: str | Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        **fields: Unpack[TriggerFields],
    ) -> TriggerInfo:
        """Add a trigger, given by its fields, by a cron expression, or by `cron(...)`, `every(...)` or `once(...)`."""
        spelled = {"cron": trigger} if isinstance(trigger, str) else trigger or {}
        named = {} if name is None else {"name": name}
        body = {**spelled, **named, **definition(fields)}
        return TriggerInfo.of(await self._caller.post(path_of("jobs", job, "triggers"), body))

    async def edit(
        self, ref: str, name: str, *, if_match: str | None = None, **fields: Unpack[TriggerFields]
    ) -> TriggerInfo:
        """Change fields of a trigger, which creates a version of its job.

        The trigger keeps its count of fires and its last execution.
        """
        path = path_of("jobs", ref, "triggers", name)
        return TriggerInfo.of(await self._caller.edit("PATCH", path, definition(fields), if_match))

    async def preview(
        self,
        trigger: str | dict[str, Any] | None = None,
        *,
        job: str | None = None,
        name: str | None = None,
        since: datetime | str | None = None,
        count: int = 10,
    ) -> Preview:
        """Preview the fires of a new trigger or, with `job` and `name`, of an existing one."""
        spelled = {"cron": trigger} if isinstance(trigger, str) else trigger or {}
        options = {"job": job, "trigger": name, "from": instant(since), "count": count}
        body = {**spelled, **{field: value for field, value in options.items() if value is not None}}
        return Preview.of(await self._caller.post(path_of("triggers", "preview"), body))

    # `python -m tools.sdk` writes the methods below, from the routes of triggers.

    async def list(
        self, *, job: str | None = None, state: Literal["active", "paused", "ended"] | None = None,
        kind: TriggerKind | None = None, search: str | None = None, limit: int | None = None,
        cursor: str | None = None,
    ) -> ResultPage[TriggerInfo]:  # fmt: skip
        """List triggers across jobs, in the order of creation.

        `job`: Only entries of this job, by name or id. `state`: Only triggers in this state. `kind`: Only
        triggers of this kind. `search`: A part of the trigger's or the job's name.
        """
        query = {"job": job, "state": state, "kind": kind, "search": search, "limit": limit, "cursor": cursor}
        return page_of(TriggerInfo, await self._caller.get(path_of("triggers"), query))

    async def of_job(self, ref: str) -> ResultPage[TriggerInfo]:
        """List a job's triggers, sorted by name."""
        return page_of(TriggerInfo, await self._caller.get(path_of("jobs", ref, "triggers")))

    async def get(self, ref: str, name: str) -> TriggerInfo:
        """Read one trigger; the trigger of a job's `schedule` is named "schedule"."""
        return TriggerInfo.of(await self._caller.get(path_of("jobs", ref, "triggers", name)))

    async def remove(self, ref: str, name: str) -> TriggerInfo:
        """Remove a trigger: it stops firing at once on all servers."""
        return TriggerInfo.of(await self._caller.delete(path_of("jobs", ref, "triggers", name)))

    async def pause(self, ref: str, name: str) -> TriggerInfo:
        """Stop a trigger from firing until it is resumed."""
        return TriggerInfo.of(await self._caller.post(path_of("jobs", ref, "triggers", name, "pause")))

    async def resume(self, ref: str, name: str) -> TriggerInfo:
        """Resume a paused trigger; the ledger has the fires that it skipped while it was paused."""
        return TriggerInfo.of(await self._caller.post(path_of("jobs", ref, "triggers", name, "resume")))


class FiresResource(Resource):
    """Past and coming fires."""

    # `python -m tools.sdk` writes the methods below, from the routes of fires (count: counts).

    async def list(
        self, *, since: datetime | str | None = None, until: datetime | str | None = None, job: str | None = None,
        trigger: str | None = None, disposition: str | None = None, limit: int | None = None,
        cursor: str | None = None,
    ) -> ResultPage[ApiDocument]:  # fmt: skip
        """List past and planned fires in a window, across jobs, in the order of time.

        `since`: Only from this time on. `until`: Only before this time. `job`: Only fires of this job, by name or
        id. `trigger`: Only fires of triggers with this name. `disposition`: `fired`, `planned`,
        `skipped-overlap`, ...
        """
        query = {
            "from": instant(since), "to": instant(until), "job": job, "trigger": trigger, "disposition": disposition,
            "limit": limit, "cursor": cursor,
        }  # fmt: skip
        return page_of(ApiDocument, await self._caller.get(path_of("fires"), query))

    async def counts(
        self, *, since: str | None = None, until: str | None = None,
        by: Literal["minute", "hour", "day"] | None = None, timezone: str | None = None, job: str | None = None,
    ) -> ApiDocument:  # fmt: skip
        """Count fired, missed, skipped and planned fires, by minute, hour or day of a time zone.

        `since`: The first day, such as 2026-11-15, or the day of an instant; today by default. `until`: The last
        day; the first day by default. `by`: The period that each item counts; minutes without fires are left out;
        day by default. `timezone`: An IANA name such as "Europe/Paris"; UTC by default. `job`: Only fires of this
        job, by name or id.
        """
        query = {"from": since, "to": until, "by": by, "timezone": timezone, "job": job}
        return ApiDocument.of(await self._caller.get(path_of("fires", "counts"), query))
