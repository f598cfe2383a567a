"""Reads of stored events with their outcomes."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.model.executions.show_execution import MOST_SHOWN
from horae.model.triggers.events.decide import EventDisposition
from horae.store.base.shelves import Columns
from horae.store.script import Fetch, ForEach, Row, Script, Statement

_EVENT = "e.id, e.key, e.name, e.type, e.source, {payload}, e.received_at, e.note"
_WHOLE = _EVENT.format(payload="e.payload")
_SHOWN = _EVENT.format(payload=f"CASE WHEN length(e.payload) <= {MOST_SHOWN} THEN e.payload END")
KNOWN = Statement(
    "known_events",
    f"SELECT {_WHOLE}, e.within FROM given JOIN events e ON e.namespace = $3 AND e.within = given.within"
    " AND e.key = given.key",
)
PAGE = Statement(
    "events", f"SELECT {_SHOWN} FROM events e WHERE e.namespace = $1 AND e.id < $2 ORDER BY e.id DESC LIMIT $3"
)
PAGE_OF_NAME = Statement(
    "events_of_name",
    f"SELECT {_SHOWN} FROM events e WHERE e.namespace = $1 AND e.id < $2 AND e.name = $4 ORDER BY e.id DESC LIMIT $3",
)
OUTCOMES = Statement(
    "event_outcomes",
    "SELECT f.event, f.job, j.name, COALESCE(g.name, ''), f.disposition, f.cause, f.execution FROM given"
    " JOIN event_fires f ON f.event = given.event JOIN jobs j ON j.id = f.job"
    " LEFT JOIN triggers g ON g.id = f.trigger_id",
)
HEARD = Statement(
    "heard_events",
    "SELECT DISTINCT event FROM triggers WHERE namespace = $1 AND event IS NOT NULL AND state <> 'ended' LIMIT 1000",
)
LATEST = UUID(int=2**128 - 1)


class EventOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of an event at one trigger."""

    job: UUID
    job_name: str
    trigger: str
    disposition: EventDisposition
    cause: str
    execution: UUID | None = None


class StoredEvent(Struct, frozen=True, kw_only=True):
    """A stored event with its outcomes. `repeated`: it had arrived before. In pages, large payloads are None."""

    id: UUID
    key: str
    name: str
    type: str
    source: str
    payload: bytes | None
    received_at: Instant
    outcomes: list[EventOutcome]
    note: str | None = None
    repeated: bool = False


def known_events(namespace: int, keys: Sequence[tuple[str, str]]) -> Script[dict[tuple[str, str], StoredEvent]]:
    """Return the events that are stored already, by scope and id."""
    columns: Columns = (("within", "text"), ("key", "text"))
    rows = yield ForEach(KNOWN, columns, keys, (namespace,))
    events = yield from _with_outcomes(rows)
    return {(row[8], event.key): structs.replace(event, repeated=True) for row, event in zip(rows, events, strict=True)}


def page(namespace: int, name: str | None, before: UUID | None, limit: int) -> Script[list[StoredEvent]]:
    """Return a page of a namespace's events, or of those with one name, newest first."""
    rows: list[Row]
    if name is None:
        rows = yield Fetch(PAGE, (namespace, before or LATEST, limit))
    else:
        rows = yield Fetch(PAGE_OF_NAME, (namespace, before or LATEST, limit, name))
    return (yield from _with_outcomes(rows))


def listened_names(namespace: int) -> Script[list[str]]:
    """Return the names of events to which triggers listen."""
    return [row[0] for row in (yield Fetch(HEARD, (namespace,)))]


def _with_outcomes(rows: Sequence[Row]) -> Script[list[StoredEvent]]:
    found = yield ForEach(OUTCOMES, (("event", "uuid"),), [(row[0],) for row in rows])
    outcomes: dict[UUID, list[EventOutcome]] = {}
    for event, job, job_name, trigger, disposition, cause, execution in sorted(found, key=lambda row: (row[2], row[3])):
        outcomes.setdefault(event, []).append(
            EventOutcome(
                job=job, job_name=job_name, trigger=trigger, disposition=disposition, cause=cause, execution=execution
            )
        )
    return [
        StoredEvent(
            id=row[0], key=row[1], name=row[2], type=row[3], source=row[4], received_at=row[6], note=row[7],
            payload=None if row[5] is None else row[5].encode(), outcomes=outcomes.get(row[0], []),
        )
        for row in rows
    ]  # fmt: skip
