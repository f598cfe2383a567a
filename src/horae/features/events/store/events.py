"""Events: one transaction stores them and decides, for every trigger that listens, whether it starts an execution.

Locks are taken in this order. First the keys of the events are inserted, sorted; a repeated event gets the stored
answer. Then the jobs of the listeners are locked, so that they cannot be edited or deleted meanwhile. Then the timers
of triggers with a limit of fires or an overlap rule are locked.
"""

from collections.abc import Callable, Iterable, Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.features.events.store.event_reads import EventOutcome, StoredEvent, known_events
from horae.features.events.store.listeners import (
    Check,
    EventListener,
    ListenerDecision,
    decide_at,
    lock_counts,
    lock_jobs,
    peek_counts,
    read_calendars,
    read_choices,
    read_listener,
    write_fires,
)
from horae.model.executions.parcel import Parcel
from horae.model.expressions.meter import ITEM_STEPS, Meter, shared_budget
from horae.model.triggers.decisions.external import EventTrigger
from horae.model.triggers.events.values import NewEvent, event_scope
from horae.store.base.shelves import Columns
from horae.store.script import Again, ForEach, Insert, Script, Statement
from horae.store.triggers.refusals import ALL_ROOM, Room
from horae.store.triggers.targets import COLUMNS, JOINED, Lead
from horae.store.triggers.triggers import COUNT, TIMER
from horae.store.workflows.waits import record_events

EVENTS: Columns = (
    ("id", "uuid"), ("namespace", "int"), ("within", "text"), ("key", "text"), ("name", "text"), ("type", "text"),
    ("source", "text"), ("payload", "text"), ("note", "text"), ("received_at", "bigint"),
)  # fmt: skip
BY_NAME: Columns = (("namespace", "int"), ("event", "text"))
LISTENING_JOBS = Statement(
    "listening_jobs",
    "SELECT DISTINCT g.job FROM given JOIN triggers g ON g.namespace = given.namespace AND g.event = given.event"
    " AND g.state <> 'ended'",
)
_TRIGGERS = f"JOIN timers t ON t.trigger_id = g.id JOIN jobs j ON j.id = g.job {JOINED} WHERE j.state <> 'deleted'"
LISTENERS = Statement(
    "listeners",
    f"SELECT {TIMER}, {COLUMNS}, g.event FROM given JOIN triggers g ON g.namespace = given.namespace"
    f" AND g.event = given.event AND g.state <> 'ended' {_TRIGGERS}",
)
NAMED_LISTENERS = Statement(
    "named_listeners",
    f"SELECT {TIMER}, {COLUMNS}, g.event FROM given JOIN triggers g ON g.job = given.job AND g.name = given.name"
    f" AND g.state <> 'ended' {_TRIGGERS}",
)


class PayloadConflict(Exception):
    """Raised if an event has arrived before under the same id, but with another payload."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class IntakeResult(Struct, frozen=True):
    """The results of an intake of events."""

    events: list[StoredEvent]  # the stored events with their outcomes, in the order of the request
    parcels: list[Parcel]  # new parcels
    lanes: dict[int, int]  # lane -> its lowest new rank, for hints
    wake_at: Instant | None  # the earliest instant at which an execution or a step is due, for hints
    blocked: bool = False  # whether an execution waits for its turn


def take(
    namespace: int,
    events: Sequence[NewEvent],
    lead: Lead,
    check: Check,
    new_id: Callable[[], UUID],
    now: Instant,
    *,
    only: tuple[UUID, str] | None = None,
    note: str | None = None,
    strict: bool = False,
    room: Room = ALL_ROOM,
) -> Script[IntakeResult]:
    """Store events, and decide each at every trigger that listens to its name, or with `only` at one trigger of a job.

    A repeated event gets the stored answer and fires nothing. With `strict`, a repeated event with another payload
    raises PayloadConflict, and none of the events is stored. An event without listeners is stored, too. With
    `room.raise_if_full`, an execution that must wait for a quota raises OverQuota, and nothing is stored.
    """
    ids = [new_id() for _ in events]
    fresh = yield from _insert(namespace, events, ids, note, now)
    new = [(event_id, event) for event_id, event in zip(ids, events, strict=True) if event_id in fresh]
    listeners = yield from _listeners(namespace, {event.name for _, event in new}, only) if new else _no_listeners()
    yield from read_calendars(listeners, now)
    decided = _decide(new, listeners, only is not None, lead, check, now)
    done = yield from write_fires(decided, new_id, now, room)
    outcomes = _outcomes(done.decided, done.executions)
    has_waiting_steps = yield from _deliver_to_workflows(namespace, new, now) if only is None else _no_waiting_steps()
    stored_events = yield from _stored_answers(namespace, events, ids, fresh, outcomes, note, now)
    for event, stored in zip(events, stored_events, strict=True):
        if strict and stored.repeated and stored.payload != event.payload:
            raise PayloadConflict(stored.key)
    wake_at = now if has_waiting_steps else done.wake_at
    return IntakeResult(stored_events, done.parcels, done.lanes, wake_at, done.blocked)


def plan(
    namespace: int, event: NewEvent, lead: Lead, check: Check, event_id: UUID, now: Instant
) -> Script[tuple[list[EventOutcome], bool]]:
    """Return the outcomes of an event that would arrive now, and whether its id was used before.

    Nothing is stored or locked. Only the decisions of triggers are included: quotas and the keys of unique jobs are not
    checked. Raises PayloadConflict.
    """
    known = (yield from known_events(namespace, [(event.id_scope, event.id)])) if event.id else {}
    for before in known.values():
        if before.payload != event.payload:
            raise PayloadConflict(before.key)
        return [], True
    rows = yield ForEach(LISTENERS, BY_NAME, [(namespace, event.name)])
    listeners = [read_listener(row) for row in sorted(rows, key=lambda row: row[0])]
    yield from read_choices(listeners)
    yield from peek_counts([one for one in listeners if one.depends_on_fires])
    yield from read_calendars(listeners, now)
    decided = _decide([(event_id, event)], listeners, False, lead, check, now)
    return _outcomes(decided, {}).get(event_id, []), False


def _no_listeners() -> Script[list[EventListener]]:
    return []
    yield


def _deliver_to_workflows(namespace: int, new: Sequence[tuple[UUID, NewEvent]], now: Instant) -> Script[bool]:
    """Deliver events to the steps of workflows that wait for them; return whether there are such steps."""
    if not new:
        return False
    given = ((event_id, event.name, event_scope(event, event.id or str(event_id), now)) for event_id, event in new)
    return (yield from record_events(namespace, given, now))


def _no_waiting_steps() -> Script[bool]:
    return False
    yield


def _insert(
    namespace: int, events: Sequence[NewEvent], ids: Sequence[UUID], note: str | None, now: Instant
) -> Script[set[UUID]]:
    """Write events, sorted by their keys; return the ids of the new ones."""
    rows = [
        (
            event_id,
            namespace,
            e.id_scope,
            e.id or str(event_id),
            e.name,
            e.type,
            e.source,
            e.payload.decode(),
            note,
            now,
        )
        for event_id, e in zip(ids, events, strict=True)
    ]
    rows.sort(key=lambda row: (row[2], row[3]))  # guard: events-in-order
    kept = yield Insert("events", EVENTS, rows, conflict="ON CONFLICT DO NOTHING", returning="id")
    return {row[0] for row in kept}


def _listeners(namespace: int, names: Iterable[str], only: tuple[UUID, str] | None) -> Script[list[EventListener]]:
    """Return the listeners of these events; their jobs are locked until the commit."""
    if only is None:
        given = [(namespace, name) for name in sorted(names)]
        found = yield ForEach(LISTENING_JOBS, BY_NAME, given)
        yield from lock_jobs({row[0] for row in found})
        rows = yield ForEach(LISTENERS, BY_NAME, given)
        held = {row[0] for row in found}
        rows = [row for row in rows if row[COUNT] in held]
    else:
        yield from lock_jobs({only[0]})
        rows = yield ForEach(NAMED_LISTENERS, (("job", "uuid"), ("name", "text")), [only])
    listeners = [read_listener(row) for row in sorted(rows, key=lambda row: row[0])]
    yield from read_choices(listeners)
    yield from lock_counts([one for one in listeners if one.depends_on_fires])
    return listeners


def _decide(
    events: Sequence[tuple[UUID, NewEvent]],
    listeners: Sequence[EventListener],
    alone: bool,
    lead: Lead,
    check: Check,
    now: Instant,
) -> list[ListenerDecision]:
    by_name: dict[str | None, list[EventListener]] = {}
    for one in listeners:
        trigger = one.timer.trigger
        by_name.setdefault(trigger.event if isinstance(trigger, EventTrigger) else None, []).append(one)
    decided: list[ListenerDecision] = []
    meter = Meter()
    for event_id, event in events:
        listening = listeners if alone else by_name.get(event.name, [])
        if listening:
            key = event.id or str(event_id)
            scope = {"event": event_scope(event, key, now)}
            meter.grant(ITEM_STEPS * len(listening))
            with shared_budget(meter):
                decided += [decide_at(one, event_id, key, scope, lead, check, now) for one in listening]
    return decided


def _outcomes(
    decided: Sequence[ListenerDecision], executions: dict[tuple[UUID, UUID], UUID]
) -> dict[UUID, list[EventOutcome]]:
    outcomes: dict[UUID, list[EventOutcome]] = {}
    for d in decided:
        timer, target = d.listener.timer, d.listener.target
        outcomes.setdefault(d.event, []).append(
            EventOutcome(
                job=target.job, job_name=target.name, trigger=timer.name, disposition=d.verdict.disposition,
                cause=d.verdict.cause, execution=executions.get((timer.id, d.event)),
            )
        )  # fmt: skip
    return outcomes


def _stored_answers(
    namespace: int,
    events: Sequence[NewEvent],
    ids: Sequence[UUID],
    fresh: set[UUID],
    outcomes: dict[UUID, list[EventOutcome]],
    note: str | None,
    now: Instant,
) -> Script[list[StoredEvent]]:
    """Return the stored answer of each event, in the given order."""
    again = sorted({(e.id_scope, e.id or "") for event_id, e in zip(ids, events, strict=True) if event_id not in fresh})
    known = (yield from known_events(namespace, again)) if again else {}
    if len(known) < len(again):  # deleted meanwhile: it may be new now
        raise Again
    return [
        StoredEvent(
            id=event_id, key=e.id or str(event_id), name=e.name, type=e.type, source=e.source, payload=e.payload,
            received_at=now,
            outcomes=outcomes.get(event_id, []), note=note,
        )
        if event_id in fresh
        else known[e.id_scope, e.id or ""]
        for event_id, e in zip(ids, events, strict=True)
    ]  # fmt: skip
