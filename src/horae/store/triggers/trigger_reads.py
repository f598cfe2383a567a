"""Reads of triggers for users: the triggers of a job, or a page of the triggers of a namespace."""

from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.store.script import Fetch, Row, Script, Statement
from horae.store.triggers.triggers import COUNT, TIMER, Timer, read_timer

_SHOWN = f"{TIMER}, g.job, j.name, j.state, g.version, g.valid_from, t.trouble"
_FROM = "FROM triggers g JOIN timers t ON t.trigger_id = g.id JOIN jobs j ON j.id = g.job"
FIRST = UUID(int=0)
OF_JOB = Statement("shown_triggers", f"SELECT {_SHOWN} {_FROM} WHERE g.job = $1 ORDER BY g.name")
NAMED = Statement("shown_trigger", f"SELECT {_SHOWN} {_FROM} WHERE g.job = $1 AND g.name = $2")
PAGE = Statement("trigger_page", f"SELECT {_SHOWN} {_FROM} WHERE g.namespace = $1 AND g.id > $2 ORDER BY g.id LIMIT $3")
_BY_EVENTS = "FROM event_fires WHERE trigger_id = $1 AND disposition IN ('fired', 'moved')"
BY_EVENTS = Statement(
    "event_fires_of_trigger",
    f"SELECT (SELECT count(*) FROM (SELECT 1 {_BY_EVENTS} LIMIT $2) AS counted),"
    f" (SELECT execution {_BY_EVENTS} ORDER BY event DESC LIMIT 1)",
)
MOST_COUNTED = 10_000


class StoredTrigger(Struct, frozen=True, kw_only=True):
    """A trigger with its job."""

    timer: Timer
    job: UUID
    job_name: str
    job_state: str
    version: int
    valid_from: Instant
    trouble: str | None  # the reason why it cannot be decided or waits for room, if so


def _shown(row: Row) -> StoredTrigger:
    job, name, state, version, valid_from, trouble = row[COUNT:]
    return StoredTrigger(
        timer=read_timer(row), job=job, job_name=name, job_state=state, version=version, valid_from=valid_from,
        trouble=trouble,
    )  # fmt: skip


def of_job(job: UUID) -> Script[list[StoredTrigger]]:
    """Return a job's triggers in the order of their names."""
    rows = yield Fetch(OF_JOB, (job,))
    return [_shown(row) for row in rows]


def by_name(job: UUID, name: str) -> Script[StoredTrigger | None]:
    """Return a trigger of a job by its name."""
    rows = yield Fetch(NAMED, (job, name))
    return _shown(rows[0]) if rows else None


def page(namespace: int, after: UUID, limit: int) -> Script[list[StoredTrigger]]:
    """Return a page of a namespace's triggers in the order of their creation."""
    rows = yield Fetch(PAGE, (namespace, after, limit))
    return [_shown(row) for row in rows]


def fired_by_events(trigger: UUID) -> Script[tuple[int, UUID | None]]:
    """Return the number of recorded events that fired a trigger, at most MOST_COUNTED, and the newest execution."""
    ((count, execution),) = yield Fetch(BY_EVENTS, (trigger, MOST_COUNTED))
    return count, execution
