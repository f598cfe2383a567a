"""What is defined in a namespace: jobs and their triggers, templates, calendars, keys and people. It goes row by row.

Also which tables hold nothing that goes, and why: a table that is named nowhere fails a test.
"""

from collections.abc import Iterable

from horae.env import Instant
from horae.store.base import locks
from horae.store.script import Fetch, Script, Statement
from horae.store.tables import BESIDE, PARTITIONED, SHELVES
from horae.store.tenancy import namespaces
from horae.store.tenancy.namespace_data import AFFINITIES, BEFORE, EVENTS, OF_JOBS, STANDING
from horae.store.tenancy.namespace_data import some as some_rows
from horae.store.tenancy.namespaces import DROPS, Alive

CLOSE = Statement("close_namespace", "UPDATE namespaces SET state = 'erasing', updated_at = $2 WHERE id = $1")
PLAIN = Statement(
    "plain_namespace", "UPDATE namespaces SET spec = '{}', policy = NULL WHERE id = $1 AND state = 'deleted'"
)
JOBS = Statement(
    "jobs_to_erase",
    "SELECT id FROM jobs WHERE namespace = $1 AND state <> 'deleted' AND owner IS NULL ORDER BY id LIMIT $2",
)
WORKERS = Statement("workers_of_namespace", "SELECT count(*) FROM sessions WHERE namespace = $1 AND ended_at IS NULL")


def some(table: str, keys: str, where: str) -> Statement:
    return some_rows(table, keys, where, verb="end")


_TRIGGERS = "trigger_id IN (SELECT id FROM triggers WHERE namespace = $1)"
_TEMPLATES = "template IN (SELECT id FROM templates WHERE namespace = $1)"
_DEPENDENTS = "dependent IN (SELECT id FROM jobs WHERE namespace = $1)"
# Who is a member of this namespace and of no other
_ONLY_HERE = (
    "(SELECT m.user_name FROM members m WHERE m.namespace = $1 AND NOT EXISTS"
    " (SELECT 1 FROM members o WHERE o.user_name = m.user_name AND o.namespace <> $1))"
)
# What others are found by comes after what is found by it.
ROWS = (
    some("fires", "trigger_id, last", _TRIGGERS),
    some("event_fires", "trigger_id, event", _TRIGGERS),
    some("watched", "watch, object", "watch IN (SELECT id FROM watches WHERE namespace = $1)"),
    some("watches", "id", "namespace = $1"),
    some("calendar_triggers", "namespace, calendar, trigger_id", "namespace = $1"),
    some("timers", "trigger_id", "namespace = $1"),
    some("triggers", "id", "namespace = $1"),
    some("job_minutes", "job, minute, server", OF_JOBS),
    some("job_spans", "job, span, at, writer", OF_JOBS),
    some("namespace_spans", "namespace, span, at, writer", "namespace = $1"),
    some("rollout_counts", "job, since, version, outcome, bucket, server", OF_JOBS),
    some("rollouts", "job", OF_JOBS),
    some("streaks", "job", OF_JOBS),
    some("circuits", "job, key", OF_JOBS),
    some("circuit_changes", "job, key, era", OF_JOBS),
    some("circuit_counts", "job, key, era, bucket, server", OF_JOBS),
    some("join_parts", "dependent, step, interval_start, upstream", _DEPENDENTS),
    some("joins", "dependent, step, interval_start", _DEPENDENTS),
    some("dependency_fires", "at, execution", OF_JOBS),
    some("dependencies", "job, upstream", OF_JOBS),
    some("dependents", "job", OF_JOBS),
    some("uses", "job, used", OF_JOBS),
    some("limits", "name", OF_JOBS),
    some("template_jobs", "job", OF_JOBS),
    some("job_versions", "job, version", OF_JOBS),
    some("jobs", "id", "namespace = $1"),
    some("template_versions", "template, version", _TEMPLATES),
    some("templates", "id", "namespace = $1"),
    some("calendars", "namespace, name, version", "namespace = $1"),
    some("holds", "id", "namespace = $1"),
    some("sessions", "id", "namespace = $1 AND ended_at IS NOT NULL"),
    some("usage_days", "namespace, day, server", "namespace = $1"),
    some("sign_ins", "hash", f"user_name IN {_ONLY_HERE}"),
    some("users", "name", f"name IN {_ONLY_HERE}"),
    some("cookies", "hash", "key_id IN (SELECT id FROM keys WHERE namespace = $1)"),
    some("keys", "id", "namespace = $1"),
)
# What stays, or goes with something else.
KEPT = {
    "audit_log": "who did what stays provable; no params, results or secrets are in it",
    "audit_head": "the end of that log",
    "namespaces": "a number never stands for another tenant; the row keeps the name",
    "holders": "of what has not ended",
    "tickets": "of what has not ended",
    "timeouts": "of what has not ended",
    "requests": "of what runs",
    "artifacts": "with their executions",
    "litter": "where files lie until they are cleared away",
    "rates": "by the names of keys",
    "reservations": "of lanes that are there",
    "share_charges": "forgotten after ten minutes",
    "duties": "of the servers",
    "servers": "of the servers",
    "store": "of the installation",
    "oidc_flows": "of minutes, and of nobody by name",
}


def _tables(statements: Iterable[Statement]) -> set[str]:
    return {statement.name.partition("_some_")[2] for statement in statements}


def known_tables() -> set[str]:
    """All tables of which it is said what becomes of them."""
    dropped = {statement.name.removeprefix("drop_").removesuffix("_of_namespace") for statement in DROPS}
    erased = _tables((*ROWS, *BEFORE, *STANDING, EVENTS, AFFINITIES))
    return {*dropped, *erased, *KEPT, *PARTITIONED, *SHELVES, *BESIDE}


def close(id: int, now: Instant) -> Script[int]:
    """Let nobody in any more, and nothing lasting be put there, unless it has workers; tells how many."""
    yield from locks.take(locks.of_namespace(id))
    ((workers,),) = yield Fetch(WORKERS, (id,))
    if not workers:
        yield Fetch(CLOSE, (id, now))
        yield Fetch(namespaces.REVOKE, (id, now))
    return int(workers)


def jobs_left(id: int, most: int) -> Script[list[str]]:
    """Some jobs that are still there."""
    return [str(row[0]) for row in (yield Fetch(JOBS, (id, most)))]


def erase_rows(id: int, most: int) -> Script[tuple[int, bool]]:
    """Delete some of what is defined: how many rows, and whether there may be more.

    One table after the other: what others are found by goes when these are gone.
    """
    counted = 0
    for statement in ROWS:
        gone = len((yield Fetch(statement, (id, most))))
        counted += gone
        if gone == most:
            return counted, True
    return counted, False


def end(id: int, now: Instant) -> Script[Alive | None]:
    """End a namespace of which everything is erased; tells what lives there after all."""
    alive = yield from namespaces.delete(id, now)
    if alive is None:
        yield Fetch(PLAIN, (id,))
    return alive
