"""`client.events`: send events, see what they came to, and make webhooks."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from horae.client.encode import given, span
from horae.client.transport.calls import Caller, path_of
from horae.client.views import Page, View, page_of
from horae.model.executions.signals import Span


class SentEvent(View, frozen=True, kw_only=True):
    """An event and what became of it: executions it started, triggers that did not fire and why."""

    event_id: str
    name: str = ""
    source: str = "api"
    type: str | None = None
    received_at: datetime | None = None
    fired: Sequence[dict[str, Any]] = ()
    skipped: Sequence[dict[str, Any]] = ()
    repeated: bool = False
    note: str | None = None
    payload: Any = None


class Events:
    """What happens elsewhere, and the triggers that listen to it."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def send(self, name: str, payload: Any = None, *, id: str | None = None) -> SentEvent:
        """Send an event to all triggers that listen to its name. It is kept when this returns.

        The same `id` again fires nothing and is answered as then, marked `repeated`.
        """
        body = {"name": name, "payload": payload, **given(id=id)}
        return SentEvent.of(await self._caller.post(path_of("events"), body))

    async def plan(self, name: str, payload: Any = None, *, id: str | None = None) -> View:
        """What an event would come to if it came now, in `fires`, `skipped` and `note`; nothing is kept."""
        body = {"name": name, "payload": payload, **given(id=id)}
        return View.of(await self._caller.post(path_of("events") + "?dryRun=true", body))

    async def send_many(self, events: Iterable[dict[str, Any]]) -> list[SentEvent]:
        """Send up to a thousand events, each `{"name": ..., "payload": ..., "id": ...}`, in one transaction."""
        answer = await self._caller.post(path_of("events"), {"events": list(events)})
        return [SentEvent.of(one) for one in answer["items"]]

    async def list(
        self, *, name: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Page[SentEvent]:
        """Events, newest first, each with what it fired."""
        query = {"name": name, "limit": limit, "cursor": cursor}
        return page_of(SentEvent, await self._caller.get(path_of("events"), query))

    async def make_webhook(
        self, job: str, trigger: str, *, secret: str | None = None, new_url: bool = False, old_for: Span | None = None
    ) -> View:
        """Make a trigger's webhook, or give it a new secret; `url` and `secret` of the answer are told this once."""
        body = given(secret=secret, new_url=new_url, old_for=span(old_for))
        return View.of(await self._caller.post(_webhook(job, trigger), body))

    async def webhook(self, job: str, trigger: str) -> View:
        """A trigger's webhook, without its URL and secret."""
        return View.of(await self._caller.get(_webhook(job, trigger)))

    async def end_webhook(self, job: str, trigger: str) -> None:
        """End a trigger's webhook at once."""
        await self._caller.delete(_webhook(job, trigger))


def _webhook(job: str, trigger: str) -> str:
    return path_of("jobs", job, "triggers", trigger, "webhook")
