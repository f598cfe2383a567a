"""Erasure of a namespace's definitions: jobs and their triggers, templates, calendars, keys and users.

This module also lists the tables from which nothing is erased, with the reasons. A test fails for a table that is
neither listed nor erased.
"""

import re
from collections.abc import Iterable

from horae.env import Instant
from horae.features.erasure.store.namespace_data import AFFINITIES, BEFORE, STANDING
from horae.store.base import locks
from horae.store.script import Fetch, Script, Statement
from horae.store.tables import DELETED_WITH_PARCEL, LIVE_SHELVES, PARTITIONED
from horae.store.tenancy import namespaces
from horae.store.tenancy.holdings import OF_JOBS, all_holdings, rows
from horae.store.tenancy.namespaces import DROPS, LiveContents

CLOSE = Statement("close_namespace", "UPDATE namespaces SET state = 'erasing', updated_at = $2 WHERE id = $1")
PLAIN = Statement(
    "plain_namespace", "UPDATE namespaces SET spec = '{}', policy = NULL WHERE id = $1 AND state = 'deleted'"
)
JOBS = Statement(
    "jobs_to_erase",
    "SELECT id FROM jobs WHERE namespace = $1 AND state <> 'deleted' AND owner IS NULL ORDER BY id LIMIT $2",
)
WORKERS = Statement("workers_of_namespace", "SELECT count(*) FROM sessions WHERE namespace = $1 AND ended_at IS NULL")

_TRIGGERS = "trigger_id IN (SELECT id FROM triggers WHERE namespace = $1)"
_DEPENDENTS = "dependent IN (SELECT id FROM jobs WHERE namespace = $1)"
# The order matters: a table that is needed to find the rows of another table comes after that table.
ROWS = (
    rows("fires", "trigger_id, last", _TRIGGERS),
    rows("event_fires", "trigger_id, event", _TRIGGERS),
    rows("watches", "id", "namespace = $1"),
    rows("calendar_triggers", "namespace, calendar, trigger_id", "namespace = $1"),
    rows("timers", "trigger_id", "namespace = $1"),
    rows("triggers", "id", "namespace = $1"),
    rows("job_minutes", "job, minute, server", OF_JOBS),
    rows("rollouts", "job", OF_JOBS),
    rows("streaks", "job", OF_JOBS),
    rows("circuits", "job, key", OF_JOBS),
    rows("circuit_changes", "job, key, era", OF_JOBS),
    rows("circuit_counts", "job, key, era, bucket, server", OF_JOBS),
    rows("join_parts", "dependent, step, interval_start, upstream", _DEPENDENTS),
    rows("joins", "dependent, step, interval_start", _DEPENDENTS),
    rows("dependency_fires", "at, execution", OF_JOBS),
    rows("dependencies", "job, upstream", OF_JOBS),
    rows("dependents", "job", OF_JOBS),
    rows("uses", "job, used", OF_JOBS),
    rows("limits", "name", OF_JOBS),
    rows("template_jobs", "job", OF_JOBS),
    rows("job_versions", "job, version", OF_JOBS),
    rows("jobs", "id", "namespace = $1"),
    rows("templates", "id", "namespace = $1"),
    rows("calendars", "namespace, name, version", "namespace = $1"),
    rows("holds", "id", "namespace = $1"),
    rows("sessions", "id", "namespace = $1 AND ended_at IS NOT NULL"),
    rows("usage_days", "namespace, day, server", "namespace = $1"),
    rows("cookies", "hash", "key_id IN (SELECT id FROM keys WHERE namespace = $1)"),
    rows("keys", "id", "namespace = $1"),
)
# Tables from which an erasure deletes nothing, or that other code deletes, with the reasons.
KEPT = {
    "namespaces": "the row stays, so that the id is never reused for another tenant",
    "holders": "has only live executions",
    "tickets": "has only live executions",
    "timeouts": "has only live executions",
    "requests": "has only running executions",
    "rates": "deleted by the names of keys (erase_paces)",
    "reservations": "deleted with their lanes",
    "share_charges": "deleted after ten minutes",
    "duties": "belongs to the servers",
    "servers": "belongs to the servers",
    "store": "belongs to the installation",
}


_PREFIX = re.compile("^(drop|erase_some|end_some)_")


def _tables(statements: Iterable[Statement]) -> set[str]:
    return {_PREFIX.sub("", statement.name) for statement in statements}


def known_tables() -> set[str]:
    """Return all tables that a deletion or an erasure of a namespace handles, or leaves for a stated reason."""
    tables = {
        *KEPT,
        *PARTITIONED,
        *LIVE_SHELVES,
        *DELETED_WITH_PARCEL,
        *_tables((*DROPS, *ROWS, *BEFORE, *STANDING, AFFINITIES)),
    }
    for holdings in all_holdings():
        tables |= {*holdings.counted, *holdings.kept}
        tables |= _tables((*holdings.drops, *holdings.records, *holdings.rows))
    return tables


def close(namespace: int, now: Instant) -> Script[int]:
    """Refuse new credentials and lasting data in a namespace from now on, unless it has workers.

    Return the number of its workers.
    """
    yield from locks.take(locks.of_namespace(namespace))
    ((workers,),) = yield Fetch(WORKERS, (namespace,))
    if not workers:
        yield Fetch(CLOSE, (namespace, now))
        yield Fetch(namespaces.REVOKE, (namespace, now))
    return int(workers)


def jobs_left(namespace: int, most: int) -> Script[list[str]]:
    """Return the ids of up to `most` jobs that are not deleted."""
    return [str(row[0]) for row in (yield Fetch(JOBS, (namespace, most)))]


def erase_rows(namespace: int, most: int) -> Script[tuple[int, bool]]:
    """Delete a batch of the rows of definitions; return the number of rows, and whether there may be more.

    Tables are emptied in order, because some are needed to find the rows of earlier ones.
    """
    counted = 0
    for statement in (*(one for holdings in all_holdings() for one in holdings.rows), *ROWS):
        gone = len((yield Fetch(statement, (namespace, most))))
        counted += gone
        if gone == most:
            return counted, True
    return counted, False


def end(namespace: int, now: Instant) -> Script[LiveContents | None]:
    """Delete a namespace after all its data was erased.

    If it has live contents nevertheless, it is not deleted, and they are returned.
    """
    alive = yield from namespaces.delete(namespace, now)
    if alive is None:
        yield Fetch(PLAIN, (namespace,))
    return alive
