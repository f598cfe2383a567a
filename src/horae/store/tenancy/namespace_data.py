"""What a namespace holds beside its executions: what came from outside, what keys stand for, and what was asked for.

All of it is deleted in batches, and only what is older than an instant: what comes meanwhile is not meant. What is
kept, and why, stands in `namespace_rows`.
"""

from typing import Any

from horae.env import Instant
from horae.features.events.store.event_sweep import OLD_EVENT_FIRES
from horae.model.admission.limits import BY_KEY, job_of
from horae.model.base.ids import first_id_at
from horae.store.script import ColumnType, Fetch, ForEach, Script, Statement

OF_JOBS = "job IN (SELECT id FROM jobs WHERE namespace = $1)"


def some(table: str, keys: str, where: str, most: str = "$2", verb: str = "erase") -> Statement:
    """Delete so many rows of a namespace; as many come back."""
    return Statement(
        f"{verb}_some_{table}",
        f"WITH chosen AS MATERIALIZED (SELECT {keys} FROM {table} WHERE {where} LIMIT {most})"
        f" DELETE FROM {table} WHERE ({keys}) IN (SELECT {keys} FROM chosen) RETURNING {keys.partition(',')[0]}",
    )


EVENTS = some("events", "id", "namespace = $1 AND received_at < $2", "$3")
RUNS = some(
    "backfill_runs",
    "backfill, at, trigger_id",
    "backfill IN (SELECT id FROM backfills WHERE namespace = $1 AND created_at < $2 AND state NOT IN"
    " ('running', 'paused'))",
    "$3",
)
BEFORE = (
    RUNS,
    some("backfills", "id", "namespace = $1 AND created_at < $2 AND state NOT IN ('running', 'paused')", "$3"),
    some("replays", "id", "namespace = $1 AND created_at < $2 AND completed_at IS NOT NULL", "$3"),
    some("idempotency", "namespace, route, key", "namespace = $1 AND created_at < $2", "$3"),
    some("holds", "id", "namespace = $1 AND ended_at < $2", "$3"),
    some("alert_notices", "id", "namespace = $1 AND created_at < $2 AND state <> 'pending'", "$3"),
    some("alerts", "id", "namespace = $1 AND since < $2 AND state <> 'firing'", "$3"),
    some("circuit_changes", "job, key, era", f"{OF_JOBS} AND at < $2", "$3"),
    some("circuits", "job, key", f"{OF_JOBS} AND since < $2 AND state = 'closed'", "$3"),
    some(
        "sessions",
        "id",
        "namespace = $1 AND ended_at < $2 AND NOT EXISTS (SELECT 1 FROM running r WHERE r.session = sessions.id)",
        "$3",
    ),
)
# By the execution that they stand for
STANDING = (
    some("unique_keys", "namespace, scope, key", "namespace = $1 AND execution < $2", "$3"),
    some("meetings", "job, kind, key", f"{OF_JOBS} AND execution < $2", "$3"),
)
AFFINITIES = some("affinities", "job, key", OF_JOBS)  # where a key was last is soon known again
# A rate that is used up is still needed; one whose pace is past is as good as new.
PACES = Statement("paces_after", "SELECT name FROM rates WHERE name > $1 AND pace < $2 ORDER BY name LIMIT $3")
OWN_JOBS = Statement(
    "jobs_of_namespace",
    "SELECT j.id FROM given JOIN jobs j ON j.id = given.id WHERE j.namespace = $2",
)
NO_PACE = Statement("erase_paces", "DELETE FROM rates USING given WHERE rates.name = given.name AND rates.pace < $2")
_EVENT: tuple[tuple[str, ColumnType], ...] = (("event", "uuid"),)
_ID: tuple[tuple[str, ColumnType], ...] = (("id", "uuid"),)
_NAME: tuple[tuple[str, ColumnType], ...] = (("name", "text"),)


def erase_events(namespace: int, before: Instant, most: int) -> Script[int]:
    """Forget events of before an instant and what they fired; how many there were."""
    gone = yield Fetch(EVENTS, (namespace, before, most))
    yield ForEach(OLD_EVENT_FIRES, _EVENT, gone)
    return len(gone)


def erase_records(namespace: int, before: Instant, most: int) -> Script[tuple[int, bool]]:
    """Forget what else names somebody: how many rows of it, and whether there may be more."""
    counted, more = 0, False
    looks: list[tuple[Statement, tuple[Any, ...]]] = [(statement, (namespace, before, most)) for statement in BEFORE]
    looks += [(statement, (namespace, first_id_at(before), most)) for statement in STANDING]
    for statement, params in (*looks, (AFFINITIES, (namespace, most))):
        gone = len((yield Fetch(statement, params)))
        counted, more = counted + gone, more or gone == most
    return counted, more


def erase_paces(namespace: int, after: str, before: Instant, most: int) -> Script[tuple[int, str | None]]:
    """Look at the pace of some keys and forget that of a namespace's jobs; how many, and after which to go on."""
    names = [name for (name,) in (yield Fetch(PACES, (after, before, most)))]
    jobs = {name: job_of(name) for name in names if name.startswith(BY_KEY)}
    own = {id for (id,) in (yield ForEach(OWN_JOBS, _ID, [(id,) for id in sorted(set(jobs.values()))], (namespace,)))}
    gone = [(name,) for name, job in jobs.items() if job in own]
    yield ForEach(NO_PACE, _NAME, gone, (before,))
    return len(gone), names[-1] if len(names) == most else None
