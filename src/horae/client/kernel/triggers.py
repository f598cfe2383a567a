"""`client.triggers` and `client.fires`: what fires jobs, and what fired or will."""

from datetime import date, datetime
from typing import Any

from horae.client.encode import definition, instant
from horae.client.transport.calls import Caller, path_of
from horae.client.views import Page, View, page_of


class Trigger(View, frozen=True, kw_only=True):
    """One of a job's triggers and how it stands; all that the server told is in `raw`."""

    job_id: str
    job: str
    name: str
    kind: str = ""
    state: str = ""
    text: str = ""
    definition: dict[str, Any] | None = None
    next_fire_at: datetime | None = None
    fired: int = 0
    trouble: str | None = None


class Preview(View, frozen=True, kw_only=True):
    """When a trigger fires."""

    fires: list[datetime]
    text: str = ""
    timezone: str = "UTC"


class Triggers:
    """Add, read, change, pause and preview triggers. `job` is a job's name or id, `name` that of its trigger."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def list(self, *, limit: int | None = None, cursor: str | None = None, **filters: Any) -> Page[Trigger]:
        """A page of triggers across jobs; filters are job, state, kind and search."""
        query = {**filters, "limit": limit, "cursor": cursor}
        return page_of(Trigger, await self._caller.get(path_of("triggers"), query))

    async def of_job(self, job: str) -> Page[Trigger]:
        return page_of(Trigger, await self._caller.get(path_of("jobs", job, "triggers")))

    async def get(self, job: str, name: str) -> Trigger:
        return Trigger.of(await self._caller.get(path_of("jobs", job, "triggers", name)))

    async def add(self, job: str, trigger: str | dict[str, Any]) -> Trigger:
        """Add a trigger: a cron text, or what `cron(...)`, `every(...)` and `once(...)` make."""
        body = {"cron": trigger} if isinstance(trigger, str) else trigger
        return Trigger.of(await self._caller.post(path_of("jobs", job, "triggers"), body))

    async def edit(self, job: str, name: str, **fields: Any) -> Trigger:
        """Change the given fields and leave the rest; None takes one back to its default."""
        path = path_of("jobs", job, "triggers", name)
        return Trigger.of(await self._caller.edit("PATCH", path, definition(fields)))

    async def remove(self, job: str, name: str) -> Trigger:
        return Trigger.of(await self._caller.delete(path_of("jobs", job, "triggers", name)))

    async def pause(self, job: str, name: str) -> Trigger:
        """Let one trigger fire nothing until it is resumed."""
        return Trigger.of(await self._caller.post(path_of("jobs", job, "triggers", name, "pause")))

    async def resume(self, job: str, name: str) -> Trigger:
        return Trigger.of(await self._caller.post(path_of("jobs", job, "triggers", name, "resume")))

    async def preview(
        self,
        trigger: str | dict[str, Any] | None = None,
        *,
        job: str | None = None,
        name: str | None = None,
        since: datetime | str | None = None,
        count: int = 10,
    ) -> Preview:
        """When a trigger would fire, or with `job` and `name` when one that exists will."""
        spelled = {"cron": trigger} if isinstance(trigger, str) else trigger or {}
        asked = {"job": job, "trigger": name, "from": instant(since), "count": count}
        body = {**spelled, **{field: value for field, value in asked.items() if value is not None}}
        return Preview.of(await self._caller.post(path_of("triggers", "preview"), body))


class Fires:
    """What fired and what will."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def list(
        self,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        **filters: Any,
    ) -> Page[View]:
        """Fires in [since, until), from an hour ago to a day ahead unless given; filters are job, trigger and
        disposition. What had to be left out is in `raw["notes"]`.
        """
        query = {"from": instant(since), "to": instant(until), **filters, "limit": limit, "cursor": cursor}
        return page_of(View, await self._caller.get(path_of("fires"), query))

    async def counts(
        self,
        since: date | str | None = None,
        until: date | str | None = None,
        *,
        by: str = "day",
        timezone: str = "UTC",
        job: str | None = None,
    ) -> View:
        """What fired, was missed or skipped and what is to come from one day to another, by minute, hour or day."""
        query = {"from": since and str(since), "to": until and str(until), "by": by, "timezone": timezone, "job": job}
        return View.of(await self._caller.get(path_of("fires", "counts"), query))
