"""Events: send them to triggers, and list them with their results."""

from typing import Annotated, Any

from msgspec import Meta

from horae.errors import BadInput, Conflict
from horae.features.events.model.read import read_event, read_events
from horae.features.events.model.view import EventPlan, EventsReceipt, EventView
from horae.features.events.part import EventsPart
from horae.model.base.view import Page
from horae.model.triggers.events.values import MOST_ID, NewEvent, with_id
from horae.server.access import OPERATE, VIEW
from horae.server.call import ApiCall
from horae.server.reading.bodies import LARGE_LIMIT, Key, RequestBody
from horae.server.reading.queries import DryRun, Paged, Text
from horae.server.reply import Response, ok
from horae.server.route import API, UNRECORDED, get, post
from horae.server.scopes import closed


class EventList(Paged, frozen=True, kw_only=True):
    """The query of a page of events."""

    name: Annotated[Text, Meta(description="Only events of this name.")] | None = None


class EventBody(RequestBody, frozen=True, kw_only=True):
    """An event: its name, its payload, and an id by which repetitions are recognized."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$")]
    payload: Annotated[Any, Meta(description="Any JSON; filters and params see it as `event.payload`.")] = None
    id: Key | None = None


class ManyEvents(RequestBody, frozen=True, kw_only=True):
    """Several events, of which all are accepted or none."""

    events: Annotated[list[EventBody], Meta(min_length=1, max_length=1000)]


@post(
    f"{API}/events", "events.send", {202: (EventView, EventsReceipt), 200: (EventView, EventsReceipt, EventPlan)},
    access=OPERATE, scope=closed, audit=UNRECORDED, takes=(EventBody, ManyEvents), limit=LARGE_LIMIT,
    idempotency="none", refuses=(Conflict,),
)  # fmt: skip
async def send(call: ApiCall, body: dict[str, Any], query: DryRun) -> Response:
    """Send an event, or several, to all triggers that listen to its name.

    When this answers 202, the event and the executions that it started are stored. A repeated `id` answers 200 with the
    first result and starts nothing; without an `id`, the Idempotency-Key is used. An event without listeners is no
    error: `note` says so. With `dryRun`, which takes one event, nothing is stored; the answer (200) shows which
    triggers would fire, and why others would not.
    """
    if query.dry_run:
        return ok(await call.node.part(EventsPart).intake.plan(call.namespace, _alone(body)))
    if "events" in body:
        given = read_events(body)
        views = await call.node.part(EventsPart).intake.send(call.namespace, _known(call, given))
        answer = EventsReceipt(
            items=views,
            fired=sum(len(view.fired) for view in views if not view.repeated),
            repeated=sum(view.repeated for view in views),
        )
        return ok(answer, 200 if answer.repeated == len(views) else 202)
    (view,) = await call.node.part(EventsPart).intake.send(call.namespace, _known(call, [read_event(body)]))
    return ok(view, 200 if view.repeated else 202)


def _alone(body: dict[str, Any]) -> NewEvent:
    if "events" in body:
        raise BadInput("A dry run takes one event.", "Send them one by one.", field="events")
    return read_event(body)


def _known(call: ApiCall, given: list[NewEvent]) -> list[NewEvent]:
    """Give events without an id one made from the Idempotency-Key, if any, so that a repeated request is recognized."""
    key = call.idempotency_key()
    if key is None or all(event.id is not None for event in given):
        return given
    if len(key) > MOST_ID - 8:
        raise BadInput("The Idempotency-Key is too long for an event.", "Use a UUID.", field="Idempotency-Key")
    return [with_id(event, key if len(given) == 1 else f"{key}:{i}") for i, event in enumerate(given)]


@get(f"{API}/events", "events.list", Page[EventView], access=VIEW, scope=closed)
async def list_events(call: ApiCall, query: EventList) -> Response:
    """List events, newest first, with the triggers that fired, and why others did not; without large payloads."""
    page = await call.node.part(EventsPart).intake.list(
        call.namespace, name=query.name, limit=query.limit, cursor=query.cursor
    )
    return ok(page)
