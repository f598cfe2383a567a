"""Reads of past fires, from the ledger in the order of time, and of coming fires, from timers by their due times."""

from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant, Micros
from horae.model.triggers.decisions.decide import Disposition, LedgerRun
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Trigger
from horae.store.script import Fetch, Row, Script, Statement
from horae.store.triggers.triggers import COUNT, TIMER, Timer, read_timer

DEPENDENCY = "dependency"  # shown instead of a trigger's name for fires of dependencies
_RUN = (
    "f.trigger_id, f.first, f.last, f.disposition, f.cause, f.execution, f.decided_at, g.name, g.definition, g.rules,"
    " g.job, j.name"
)
_AFTER = "(f.last, f.trigger_id) > ($2, $3)"
# A run of fires is found by the instant of its last fire if this is before $4: the index of `fires` has this order.
# RUNS_OF_JOB also finds runs that only begin before $4.
RUNS = Statement(
    "fires_between",
    f"SELECT {_RUN} FROM fires f JOIN triggers g ON g.id = f.trigger_id JOIN jobs j ON j.id = g.job"
    f" WHERE g.namespace = $1 AND {_AFTER} AND f.last < $4 ORDER BY f.last, f.trigger_id LIMIT $5",
)
RUNS_OF_JOB = Statement(
    "fires_of_job_between",
    f"SELECT {_RUN} FROM triggers g JOIN fires f ON f.trigger_id = g.id JOIN jobs j ON j.id = g.job"
    f" WHERE g.job = $1 AND {_AFTER} AND f.first < $4 ORDER BY f.last, f.trigger_id LIMIT $5",
)
# Fires by events are listed together with fires by the clock, at the instant at which they were decided.
_EVENT_RUN = (
    "SELECT f.trigger_id, f.at, f.at, f.disposition, f.cause, f.execution, f.at, g.name, g.definition, g.rules, g.job,"
    " j.name FROM event_fires f JOIN triggers g ON g.id = f.trigger_id JOIN jobs j ON j.id = g.job"
)
_EVENT_ORDER = "(f.at, f.trigger_id) > ($2, $3) AND f.at < $4 ORDER BY f.at, f.trigger_id LIMIT $5"
EVENT_RUNS = Statement("event_fires_between", f"{_EVENT_RUN} WHERE g.namespace = $1 AND {_EVENT_ORDER}")
EVENT_RUNS_OF_JOB = Statement("event_fires_of_job_between", f"{_EVENT_RUN} WHERE f.job = $1 AND {_EVENT_ORDER}")
# Starts by dependencies are listed, too. They have no trigger, so the id of the execution is in its place.
_DEPENDENT_RUN = (
    f"SELECT f.execution, f.at, f.at, f.disposition, f.cause, f.execution, f.at, '{DEPENDENCY}', NULL, NULL, f.job,"
    " j.name FROM dependency_fires f JOIN jobs j ON j.id = f.job"
)
_DEPENDENT_ORDER = "(f.at, f.execution) > ($2, $3) AND f.at < $4 ORDER BY f.at, f.execution LIMIT $5"
DEPENDENT_RUNS = Statement(
    "dependency_fires_between", f"{_DEPENDENT_RUN} WHERE j.namespace = $1 AND {_DEPENDENT_ORDER}"
)
DEPENDENT_RUNS_OF_JOB = Statement(
    "dependency_fires_of_job_between", f"{_DEPENDENT_RUN} WHERE f.job = $1 AND {_DEPENDENT_ORDER}"
)
_TIMERS = (
    f"SELECT {TIMER}, g.job, j.name FROM timers t JOIN triggers g ON g.id = t.trigger_id JOIN jobs j ON j.id = g.job"
)
TIMERS = Statement(
    "timers_due_before",
    f"{_TIMERS} WHERE t.namespace = $1 AND (t.next_fire_at, t.trigger_id) > ($2, $3) AND t.next_fire_at < $4"
    " ORDER BY t.next_fire_at, t.trigger_id LIMIT $5",
)
TIMERS_OF_JOB = Statement(
    "timers_of_job_due_before",
    f"{_TIMERS} WHERE t.job = $1 AND (t.next_fire_at, t.trigger_id) > ($2, $3) AND t.next_fire_at < $4"
    " ORDER BY t.next_fire_at, t.trigger_id LIMIT $5",
)
# Dispositions of fires by time slot: only the newest rows of a window, up to a limit.
_SLOT = "(f.last - $2) / $4 AS slot, f.disposition"
_NEWEST = "f.last >= $2 AND f.last < $3 ORDER BY f.last DESC LIMIT $5"
FATES = Statement(
    "fates_by_slot",
    f"SELECT slot, disposition, count(*) FROM (SELECT {_SLOT} FROM fires f JOIN triggers g ON g.id = f.trigger_id"
    f" WHERE g.namespace = $1 AND {_NEWEST}) AS newest GROUP BY slot, disposition",
)
FATES_OF_JOB = Statement(
    "fates_of_job_by_slot",
    f"SELECT slot, disposition, count(*) FROM (SELECT {_SLOT} FROM triggers g JOIN fires f ON f.trigger_id = g.id"
    f" WHERE g.job = $1 AND {_NEWEST}) AS newest GROUP BY slot, disposition",
)

ALL_RUNS = (RUNS, EVENT_RUNS, DEPENDENT_RUNS)
ALL_RUNS_OF_JOB = (RUNS_OF_JOB, EVENT_RUNS_OF_JOB, DEPENDENT_RUNS_OF_JOB)

Place = tuple[Instant, UUID]


class LedgerEntry(Struct, frozen=True, kw_only=True):
    """A row of the ledger with its trigger. For a start by dependencies, `trigger_id` is the id of the execution."""

    trigger_id: UUID
    run: LedgerRun
    execution: UUID | None
    decided_at: Instant
    name: str
    trigger: Trigger | None
    rules: Rules
    job: UUID
    job_name: str


class UpcomingTimer(Struct, frozen=True):
    """A timer with its job."""

    timer: Timer
    job: UUID
    job_name: str


def ledger_entries(
    namespace: int, job: UUID | None, after: Place, until: Instant, limit: int
) -> Script[list[LedgerEntry]]:
    """Return a page of ledger rows, fires by events and starts by dependencies, in the order of their last fire.

    The page begins after the position `after` and ends before `until`.
    """
    owner = namespace if job is None else job
    rows: list[Row] = []
    for statement in ALL_RUNS if job is None else ALL_RUNS_OF_JOB:
        rows += yield Fetch(statement, (owner, *after, until, limit))
    rows.sort(key=lambda row: (row[2], row[0]))
    return [_decided(row) for row in rows[:limit]]


def count_dispositions(
    namespace: int, job: UUID | None, since: Instant, until: Instant, slot: Micros, most: int
) -> Script[list[tuple[Instant, str, int]]]:
    """Count rows of the ledger by time slot and disposition: (start of the slot, disposition, count).

    Only the newest `most` rows with a last fire from `since` to before `until` are counted.
    """
    statement, owner = (FATES, namespace) if job is None else (FATES_OF_JOB, job)
    rows = yield Fetch(statement, (owner, since, until, slot, most))
    return [(since + row[0] * slot, row[1], row[2]) for row in rows]


def upcoming_timers(
    namespace: int, job: UUID | None, after: Place, until: Instant, limit: int
) -> Script[list[UpcomingTimer]]:
    """Return a page of timers in the order of their due times, after the position `after` and before `until`."""
    statement, owner = (TIMERS, namespace) if job is None else (TIMERS_OF_JOB, job)
    rows = yield Fetch(statement, (owner, *after, until, limit))
    return [UpcomingTimer(read_timer(row), row[COUNT], row[COUNT + 1]) for row in rows]


def _decided(row: Row) -> LedgerEntry:
    disposition: Disposition = row[3]
    return LedgerEntry(
        trigger_id=row[0], run=LedgerRun(row[1], row[2], disposition, row[4]), execution=row[5], decided_at=row[6],
        name=row[7], trigger=None if row[8] is None else msgspec.json.decode(row[8], type=Trigger),
        rules=Rules() if row[9] is None else msgspec.json.decode(row[9], type=Rules), job=row[10], job_name=row[11],
    )  # fmt: skip
