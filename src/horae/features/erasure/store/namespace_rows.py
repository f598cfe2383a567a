"""What is defined in a namespace: jobs and their triggers, templates, calendars, keys and people. It goes row by row.

Also which tables hold nothing that goes, and why: a table that is named nowhere fails a test.
"""

import re
from collections.abc import Iterable

from horae.env import Instant
from horae.features.erasure.store.namespace_data import AFFINITIES, BEFORE, STANDING
from horae.store.base import locks
from horae.store.script import Fetch, Script, Statement
from horae.store.tables import BESIDE, PARTITIONED, SHELVES
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
# What others are found by comes after what is found by it.
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
# What stays, or goes with something else.
KEPT = {
    "namespaces": "a number never stands for another tenant; the row keeps the name",
    "holders": "of what has not ended",
    "tickets": "of what has not ended",
    "timeouts": "of what has not ended",
    "requests": "of what runs",
    "rates": "by the names of keys",
    "reservations": "of lanes that are there",
    "share_charges": "forgotten after ten minutes",
    "duties": "of the servers",
    "servers": "of the servers",
    "store": "of the installation",
}


_PREFIX = re.compile("^(drop|erase_some|end_some)_")


def _tables(statements: Iterable[Statement]) -> set[str]:
    return {_PREFIX.sub("", statement.name) for statement in statements}


def known_tables() -> set[str]:
    """All tables of which it is said what becomes of them."""
    tables = {*KEPT, *PARTITIONED, *SHELVES, *BESIDE, *_tables((*DROPS, *ROWS, *BEFORE, *STANDING, AFFINITIES))}
    for holdings in all_holdings():
        tables |= {*holdings.counted, *holdings.kept}
        tables |= _tables((*holdings.drops, *holdings.records, *holdings.rows))
    return tables


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
    for statement in (*(one for holdings in all_holdings() for one in holdings.rows), *ROWS):
        gone = len((yield Fetch(statement, (id, most))))
        counted += gone
        if gone == most:
            return counted, True
    return counted, False


def end(id: int, now: Instant) -> Script[LiveContents | None]:
    """End a namespace of which everything is erased; tells what lives there after all."""
    alive = yield from namespaces.delete(id, now)
    if alive is None:
        yield Fetch(PLAIN, (id,))
    return alive
