"""`client.events`: send events, read their effects, and create webhooks."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from horae.client.encode import given, span
from horae.client.transport.calls import Resource, path_of
from horae.client.views import ApiDocument, ResultPage, page_of
from horae.model.executions.job_exceptions import Span


class SentEvent(ApiDocument, frozen=True, kw_only=True):
    """An event and its effects: executions that it started, and triggers that did not fire, with the reasons."""

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


class EventsResource(Resource):
    """External events, and the triggers that listen to them."""

    async def send(self, name: str, payload: Any = None, *, id: str | None = None) -> SentEvent:  # noqa: A002
        """Send an event to all triggers that listen to its name. It is stored when this returns.

        A repetition with the same `id` fires no trigger; its answer is the first one, marked `repeated`.
        """
        body = {"name": name, "payload": payload, **given(id=id)}
        return SentEvent.of(await self._caller.post(path_of("events"), body))

    async def plan(self, name: str, payload: Any = None, *, id: str | None = None) -> ApiDocument:  # noqa: A002
        """Return the effects that an event would have now, in `fires`, `skipped` and `note`; nothing is stored."""
        body = {"name": name, "payload": payload, **given(id=id)}
        return ApiDocument.of(await self._caller.post(path_of("events") + "?dryRun=true", body))

    async def send_many(self, events: Iterable[dict[str, Any]]) -> list[SentEvent]:
        """Send up to a thousand events, each `{"name": ..., "payload": ..., "id": ...}`, in one transaction."""
        answer = await self._caller.post(path_of("events"), {"events": list(events)})
        return [SentEvent.of(one) for one in answer["items"]]

    # `python -m tools.sdk` writes the methods below, from the routes of events, hooks (get: webhook,
    # create: create_webhook, delete: delete_webhook, receive: none).

    async def list(
        self, *, name: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> ResultPage[SentEvent]:
        """List events, newest first, with the triggers that fired, and why others did not; without large payloads.

        `name`: Only events of this name.
        """
        query = {"name": name, "limit": limit, "cursor": cursor}
        return page_of(SentEvent, await self._caller.get(path_of("events"), query))

    async def webhook(self, ref: str, name: str) -> ApiDocument:
        """Read a trigger's webhook, without its URL and secret, which are shown only when they are created."""
        return ApiDocument.of(await self._caller.get(path_of("jobs", ref, "triggers", name, "webhook")))

    async def create_webhook(
        self, ref: str, name: str, *, secret: str | None = None, new_url: bool = False, overlap: Span | None = None
    ) -> ApiDocument:
        """Create a trigger's webhook, or give it a new secret; the old one stays valid for `overlap`.

        URL and secret are shown only in this answer. `new_url` creates a new URL, too. A webhook without
        signatures always gets a new URL, because its URL is its only secret.

        `secret`: The sender's secret; by default a new secret is generated. `new_url`: Create a new URL beside
        the old one. `overlap`: How long the old secret or URL stays valid. "5m", "1h30m", ISO 8601 or seconds; 1d
        by default.
        """
        body = given(secret=secret, new_url=new_url or None, overlap=span(overlap))
        return ApiDocument.of(await self._caller.post(path_of("jobs", ref, "triggers", name, "webhook"), body))

    async def delete_webhook(self, ref: str, name: str) -> None:
        """End a trigger's webhook at once."""
        await self._caller.delete(path_of("jobs", ref, "triggers", name, "webhook"))
