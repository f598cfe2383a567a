"""The intake of events from the API and from webhooks: it stores and decides each event, and returns its results.

To decide an event means to decide, for each trigger that listens to it, whether it starts an execution.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from msgspec import UNSET, Raw, structs

from horae.engine.admission.quotas import Quotas
from horae.engine.base.hints import Hint, Hints
from horae.engine.base.refs import as_id, in_quotes, nearest
from horae.engine.batcher import Batcher
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.definitions.params import ParamsChecker
from horae.engine.executions.submitter import creation_event
from horae.engine.topics import Topics
from horae.env import Env
from horae.errors import BadInput, Conflict, HoraeError, OverQuota
from horae.features.events.model.read import MOST_EVENTS
from horae.features.events.model.view import EventDecision, EventFired, EventPlan, EventView
from horae.features.events.store import event_reads, events
from horae.features.events.store.event_reads import StoredEvent
from horae.features.events.store.events import IntakeResult
from horae.features.events.store.listeners import Check
from horae.model.base.instant import format_instant
from horae.model.base.view import Page
from horae.model.definitions.job import Job
from horae.model.documents.schema import CheckBudget
from horae.model.executions.show_execution import MOST_SHOWN
from horae.model.triggers.events.values import NewEvent
from horae.store.contract import Store
from horae.store.triggers.refusals import Room
from horae.store.triggers.targets import Target

COSTS = 10  # an event counts as this many executions towards the submission rate


class EventIntake:
    """The operations on events: send, plan and list."""

    def __init__(
        self,
        env: Env,
        store: Store,
        directory: LocalDirectory,
        hints: Hints,
        quotas: Quotas,
        topics: Topics,
    ) -> None:
        self._topics = topics
        self._env, self._store, self._directory, self._hints, self._quotas = env, store, directory, hints, quotas
        self._params = ParamsChecker()
        self._batchers: dict[int, Batcher[Sequence[NewEvent], list[StoredEvent]]] = {}

    def checking(self) -> Check:
        """Return a check of params for one transaction; all params that it checks share one budget of steps."""
        spent = CheckBudget()
        return lambda target, item: self.check(target, item, spent)

    def check(self, target: Target, item: bytes, spent: CheckBudget | None = None) -> str | None:
        """Return why an item cannot be the params of a job's execution, or None if it can."""
        job = Job(
            id=target.job, namespace=target.namespace, name=target.name, version=target.version, state=target.state,
            spec=target.spec, created_at=0, updated_at=0,
        )  # fmt: skip
        try:
            self._params.check(item, job, spent)
        except HoraeError as error:
            return error.detail
        return None

    async def send(self, namespace: int, given: Sequence[NewEvent]) -> list[EventView]:
        """Store and decide events from the API. Raises Conflict if an id was used before with another payload."""
        self._quotas.check_submit_rate(namespace, COSTS * len(given))
        try:
            taken = await self._batcher(namespace).do(given)
        except events.PayloadConflict as other:
            raise _payload_conflict(other) from None
        views = [view_of(event) for event in taken]
        unheard = {view.name for view in views if not view.fired and not view.skipped and view.note is None}
        notes = {name: await self._no_listeners(namespace, name) for name in sorted(unheard)}
        return [structs.replace(view, note=view.note or notes.get(view.name)) for view in views]

    async def plan(self, namespace: int, event: NewEvent) -> EventPlan:
        """Return the expected results of an event that would arrive now; nothing is stored. Raises Conflict."""
        lead, event_id, now = self._directory.lead, self._env.new_id(), self._env.now()
        try:
            outcomes, again = await self._store.read(
                lambda: events.plan(namespace, event, lead, self.checking(), event_id, now)
            )
        except events.PayloadConflict as other:
            raise _payload_conflict(other) from None
        note = "This id was used before: nothing would fire again." if again else None
        if not outcomes and note is None:
            note = await self._no_listeners(namespace, event.name, "it would be stored and fire nothing")
        views = [
            EventDecision(job=o.job_name, job_id=o.job, trigger=o.trigger, disposition=o.disposition, cause=o.cause)
            for o in sorted(outcomes, key=lambda o: (o.job_name, o.trigger))
        ]
        runs = [one for one in views if one.disposition in ("fired", "moved")]
        skipped = [one for one in views if one not in runs]
        return EventPlan(name=event.name, fires=runs, skipped=skipped, repeated=again, note=note)

    def _batcher(self, namespace: int) -> Batcher[Sequence[NewEvent], list[StoredEvent]]:
        """Return the namespace's batcher: events that arrive during a transaction share the next one."""

        async def run(requests: Sequence[Sequence[NewEvent]]) -> list[list[StoredEvent] | BaseException]:
            taken = iter(await self.take(namespace, [event for given in requests for event in given], strict=True))
            return [[next(taken) for _ in given] for given in requests]

        if namespace not in self._batchers:
            self._batchers[namespace] = Batcher(run, most=MOST_EVENTS, size=len, most_size=MOST_EVENTS)
        return self._batchers[namespace]

    async def close(self) -> None:
        """Wait until all events that have arrived are stored."""
        for batcher in self._batchers.values():
            await batcher.close()

    async def take(
        self,
        namespace: int,
        given: Sequence[NewEvent],
        *,
        only: tuple[UUID, str] | None = None,
        note: str | None = None,
        strict: bool = False,
    ) -> list[StoredEvent]:
        """Store and decide events in one transaction, and send hints about the executions that they start.

        If a quota is full and its policy is to wait, the events wait for room like other requests. If there is still
        no room after that, the events are stored, but the quota refuses their executions.
        """
        env, lead, check = self._env, self._directory.lead, self.checking()

        async def take(*, patient: bool = True) -> IntakeResult:
            room = Room(bounds=self._store.bounds, delays=self._directory.delays, raise_if_full=patient)
            return await self._store.change(
                lambda now: events.take(
                    namespace, given, lead, check, env.new_id, now, only=only, note=note, strict=strict, room=room
                )
            )

        try:
            done = await self._quotas.retry_while_full((namespace, 0), len(given), take)
        except OverQuota:
            done = await take(patient=False)
        self._store.created(done.parcels)
        now = env.now()
        created = [creation_event(parcel, now) for parcel in done.parcels[:20]]
        self._hints.send(Hint(lanes=done.lanes, wake_at=done.wake_at, events=created))
        if done.blocked:
            self._topics.blocked(None)
        return done.events

    async def list(self, namespace: int, *, name: str | None, limit: int, cursor: str | None) -> Page[EventView]:
        """Return a page of events, newest first, without large payloads."""
        before = None if cursor is None else as_id(cursor)
        if cursor is not None and before is None:
            raise BadInput("The cursor is not valid.", "Send `nextCursor` of the previous page.", field="cursor")
        found = await self._store.read(lambda: event_reads.page(namespace, name, before, limit + 1))
        items = [view_of(event, payload=True) for event in found[:limit]]
        return Page(items=items, next_cursor=str(found[limit - 1].id) if len(found) > limit else None)

    async def _no_listeners(self, namespace: int, name: str, what: str = "it was stored and fired nothing") -> str:
        """Return the note of an event to which no trigger listens, with similar names that have listeners."""
        heard = await self._store.read(lambda: event_reads.listened_names(namespace))
        near = nearest(name, heard)
        hint = f" Did you mean {in_quotes(near)}?" if near else ""
        return f'No trigger listens to "{name}": {what}.{hint}'


def _payload_conflict(other: events.PayloadConflict) -> Conflict:
    remedy = "Give a new event a new id. No event of this request was stored."
    return Conflict(f'The event "{other.key}" was sent before with another payload.', remedy, eventId=other.key)


def view_of(event: StoredEvent, *, payload: bool = False) -> EventView:
    """Return the API view of an event."""
    fired, skipped = [], []
    for one in event.outcomes:
        fields: dict[str, Any] = {"job": one.job_name, "job_id": one.job, "trigger": one.trigger}
        fields |= {"disposition": one.disposition, "cause": one.cause}
        if one.execution is not None:
            fired.append(EventFired(execution_id=one.execution, **fields))
        else:
            skipped.append(EventDecision(**fields))
    note = "This event was sent before: nothing fired again." if event.repeated else event.note
    shown = event.payload if payload and event.payload is not None and len(event.payload) <= MOST_SHOWN else None
    return EventView(
        event_id=event.key, name=event.name, source=event.source, type=event.type or None,
        received_at=format_instant(event.received_at), fired=fired, skipped=skipped, repeated=event.repeated, note=note,
        payload=UNSET if shown is None else Raw(shown),
    )  # fmt: skip
