"""Erasure of a namespace's rows: ended executions, their records, and definitions such as jobs, keys and users.

As in the usual expiry, a parcel is deleted as a whole, and not before the workflows to which it belongs have ended. The
locations of its executions' files are recorded in the table `litter` (contents to delete) with the instant 0, so that
the next sweep deletes the files. Records are unique keys, holds, circuits, sessions and stored answers; they are
deleted in batches, and only if they are older than an instant, so that new ones stay.

This module also lists the tables from which nothing is erased, with the reasons. A test fails for a table that is
neither listed nor erased.
"""

import re
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.admission.limits import BY_KEY, job_of
from horae.model.base.ids import first_id_at
from horae.store.base import locks
from horae.store.expiry.expiry import FORGET, unneeded
from horae.store.script import ColumnType, Fetch, ForEach, Insert, Script, ScriptFactory, Statement
from horae.store.tables import DELETED_WITH_PARCEL, LIVE_SHELVES, PARTITIONED
from horae.store.tenancy import namespaces
from horae.store.tenancy.holdings import OF_JOBS, all_holdings, records, rows
from horae.store.tenancy.namespaces import DROPS, LiveContents

BEFORE = (
    records("idempotency", "namespace, route, key", "namespace = $1 AND created_at < $2"),
    records("holds", "id", "namespace = $1 AND ended_at < $2"),
    records("circuit_changes", "job, key, era", f"{OF_JOBS} AND at < $2"),
    records("circuits", "job, key", f"{OF_JOBS} AND since < $2 AND state = 'closed'"),
    records(
        "sessions",
        "id",
        "namespace = $1 AND ended_at < $2 AND NOT EXISTS (SELECT 1 FROM running r WHERE r.session = sessions.id)",
    ),
)
# The age of these rows is that of the execution that holds the key.
STANDING = (
    records("unique_keys", "namespace, scope, key", "namespace = $1 AND execution < $2"),
    records("meetings", "job, kind, key", f"{OF_JOBS} AND execution < $2"),
)
AFFINITIES = rows("affinities", "job, key", OF_JOBS)  # all of them are deleted, because new ones are soon recorded
# The pace of a rate is the instant at which the next start would be exactly on schedule. If it is in the past, the rate
# is in the same state as a new one, so that its row may be deleted.
PACES = Statement("paces_after", "SELECT name FROM rates WHERE name > $1 AND pace < $2 ORDER BY name LIMIT $3")
OWN_JOBS = Statement(
    "jobs_of_namespace",
    "SELECT j.id FROM given JOIN jobs j ON j.id = given.id WHERE j.namespace = $2",
)
NO_PACE = Statement("erase_paces", "DELETE FROM rates USING given WHERE rates.name = given.name AND rates.pace < $2")
_ID: tuple[tuple[str, ColumnType], ...] = (("id", "uuid"),)
_NAME: tuple[tuple[str, ColumnType], ...] = (("name", "text"),)
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
# The order matters: a table comes after all tables whose rows are found through it.
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
# Tables whose rows an erasure keeps, or other code deletes, with the reasons.
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
_PAGE = (
    "SELECT h.parcel FROM history h WHERE h.namespace = $1 AND h.parcel > $2 AND h.parcel < $3{own}"
    " ORDER BY h.parcel LIMIT $4"
)
# The index `history_tenant` has all namespaces except the first, and serves queries that state its condition.
OF_FIRST = Statement("ended_parcels_of_first", _PAGE.format(own=""))
OF_TENANT = Statement("ended_parcels_of_tenant", _PAGE.format(own=" AND h.namespace <> 1"))
FREE = unneeded("parcels_to_erase", "SELECT p.id, p.n FROM given JOIN parcels p ON p.id = given.id WHERE {unneeded}")
FILES = Statement(
    "files_of_parcels", "SELECT a.location FROM given JOIN artifacts a ON a.parcel = given.id", at_once=True
)
NO_FILES = Statement("no_files_of_parcels", "DELETE FROM artifacts USING given WHERE artifacts.parcel = given.id")
_LITTER: tuple[tuple[str, ColumnType], ...] = (("location", "text"), ("at", "bigint"))


def erase_records(namespace: int, before: Instant, most: int) -> Script[tuple[int, bool]]:
    """Delete a batch of each kind of record; return the number of rows, and whether there may be more."""
    counted, more = 0, False
    dated = (*BEFORE, *(one for holdings in all_holdings() for one in holdings.records))
    deletions: list[tuple[Statement, tuple[Any, ...]]] = [(statement, (namespace, before, most)) for statement in dated]
    deletions += [(statement, (namespace, first_id_at(before), most)) for statement in STANDING]
    for statement, params in (*deletions, (AFFINITIES, (namespace, most))):
        gone = len((yield Fetch(statement, params)))
        counted, more = counted + gone, more or gone == most
    return counted, more


def erase_paces(namespace: int, after: str, before: Instant, most: int) -> Script[tuple[int, str | None]]:
    """Read a page of rates whose pace is in the past, and delete those of a namespace's jobs.

    Return their number, and the name after which the next page begins, or None after the last page.
    """
    names = [name for (name,) in (yield Fetch(PACES, (after, before, most)))]
    jobs = {name: job_of(name) for name in names if name.startswith(BY_KEY)}
    wanted = [(job,) for job in sorted(set(jobs.values()))]
    own = {job for (job,) in (yield ForEach(OWN_JOBS, _ID, wanted, (namespace,)))}
    gone = [(name,) for name, job in jobs.items() if job in own]
    yield ForEach(NO_PACE, _NAME, gone, (before,))
    return len(gone), names[-1] if len(names) == most else None


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
    """Revoke a namespace's keys, and refuse new jobs in it from now on, unless it has workers.

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


class ErasedBatch(Struct, frozen=True):
    """The result of one batch."""

    executions: int  # the number of deleted executions
    files: int  # the number of files that will be deleted
    next: UUID | None  # the parcel after which the next batch begins; None after the last batch


def erase_ended(namespace: int, after: UUID, before: UUID, limit: int) -> ScriptFactory[ErasedBatch]:
    """Return a script that deletes ended executions of a namespace in parcels between `after` and `before`.

    It reads up to `limit` slices of history.
    """

    def script() -> Script[ErasedBatch]:
        page = OF_FIRST if namespace == 1 else OF_TENANT
        rows = yield Fetch(page, (namespace, after, before, limit))
        following = rows[-1][0] if len(rows) == limit else None
        free = yield ForEach(FREE, _ID, sorted(set(rows)))
        if not free:
            return ErasedBatch(0, 0, following)
        gone = [(parcel,) for parcel, _ in free]
        files = yield ForEach(FILES, _ID, gone)
        if files:
            litter = [(location, 0) for (location,) in files]
            yield Insert("litter", _LITTER, litter, conflict="ON CONFLICT DO NOTHING")
            yield ForEach(NO_FILES, _ID, gone)
        for statement in FORGET:
            yield ForEach(statement, _ID, gone)
        return ErasedBatch(sum(n for _, n in free), len(files), following)

    return script
