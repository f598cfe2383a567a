"""Recounting: counts that a killed server had not written are restored from history.

Statistics are added up outside the transactions that end executions, so a killed server loses the counts of a few
seconds. Its row in the table `servers` remains and has the instant at which it was last seen.
"""

from collections.abc import Mapping
from uuid import UUID

from msgspec import Struct

from horae.env import SECOND, Instant
from horae.features.statistics.store import statistics
from horae.model.admission.keys import CHILD
from horae.model.executions.tally import (
    HOUR,
    JOB_SPANS,
    NAMESPACE_SPANS,
    JobTally,
    Minute,
    NamespaceTally,
    OutcomeCounts,
    begin_of,
    missing_counts,
)
from horae.store.script import Fetch, Script, Statement

MINUTE = 60 * SECOND
LOST = Statement(
    "lost_servers", "SELECT id, last_seen FROM servers WHERE id <> $1 AND last_seen <= $2 ORDER BY last_seen"
)
TAKE = Statement("take_lost_server", "DELETE FROM servers WHERE id = $1 AND last_seen = $2 RETURNING id")
_ENDED = (
    f"SELECT job, namespace, completed_at / {MINUTE} AS minute, state, sum(hi - lo),"
    f" sum(CASE WHEN (flags & {CHILD}) <> 0 THEN hi - lo ELSE 0 END) FROM history"
    f" WHERE completed_at >= $1 AND completed_at < $2{{}} GROUP BY job, namespace, completed_at / {MINUTE}, state"
)
# On SQLite, history has no index by the time of the end, but its rows are roughly in this order. So the scan starts at
# a row with an end at least an hour before the window, which is found by probing in growing steps from the newest row.
_ROWS_SINCE = (
    " AND rowid > (WITH RECURSIVE last(id) AS (SELECT max(rowid) FROM history),"
    " back(id, by) AS (SELECT id - 1000, 4000 FROM last UNION ALL SELECT last.id - by, by * 4 FROM back, last"
    " WHERE back.id > 0)"
    " SELECT coalesce(max(h.rowid), 0) FROM back JOIN history h"
    " ON h.rowid = (SELECT max(rowid) FROM history WHERE rowid <= back.id)"
    f" WHERE h.completed_at < $1 - {HOUR * SECOND})"
)
ENDED = Statement("ended_within", _ENDED.format(""), sqlite=_ENDED.format(_ROWS_SINCE))
KNOWN = Statement(
    "known_of_minutes",
    "SELECT job, minute, sum(success), sum(failed), sum(cancelled), sum(skipped) FROM job_minutes"
    " WHERE minute >= $1 AND minute < $2 GROUP BY job, minute",
)


class LostServer(Struct, frozen=True):
    """A server that was killed, and the instant at which it was last seen."""

    id: UUID
    last_seen: Instant


def lost_servers(me: UUID, silent_since: Instant) -> Script[list[LostServer]]:
    """Return servers other than this one (`me`) that were not seen since an instant."""
    return [LostServer(*row) for row in (yield Fetch(LOST, (me, silent_since)))]


def ended_within(since: Instant, until: Instant) -> Script[dict[Minute, JobTally]]:
    """Count the executions in history that ended in a window of whole minutes, by job and minute."""
    found: dict[Minute, JobTally] = {}
    for job, namespace, minute, state, count, steps in (yield Fetch(ENDED, (since, until))):
        tally = found.setdefault((job, minute), JobTally(namespace=namespace))
        tally.add(state, int(count))
        tally.steps_failed += int(steps) if state == "failed" else 0
    return found


def settle(
    lost: LostServer, found: Mapping[Minute, JobTally], since: Instant, until: Instant, writer: UUID
) -> Script[dict[UUID, OutcomeCounts] | None]:
    """Write the missing counts of a window as rows of `writer`, and delete the row of the lost server.

    `found` has the counts of history. Return the missing counts by job, or None if another server did this already. One
    transaction does all of it, so that nothing is counted twice if several servers try or one is killed meanwhile.
    """
    if not (yield Fetch(TAKE, (lost.id, lost.last_seen))):
        return None
    rows = yield Fetch(KNOWN, (since // MINUTE, until // MINUTE))
    known = {(job, minute): OutcomeCounts(*map(int, counts)) for job, minute, *counts in rows}
    lacking = missing_counts(found, known)
    jobs: dict[UUID, OutcomeCounts] = {}
    if lacking:
        yield from statistics.add(writer, lacking)
        yield from statistics.put_jobs(writer, list(_wider_jobs(lacking).items()))
        yield from statistics.put_namespaces(writer, list(_wider_namespaces(lacking).items()))
    for (job, _), tally in lacking.items():
        jobs.setdefault(job, OutcomeCounts()).join(tally)
    return jobs


def _wider_jobs(lacking: Mapping[Minute, JobTally]) -> dict[statistics.JobKey, JobTally]:
    wider: dict[statistics.JobKey, JobTally] = {}
    for (job, minute), tally in lacking.items():
        for span in JOB_SPANS:
            wider.setdefault((job, span, begin_of(minute * MINUTE, span)), JobTally()).join(tally)
    return wider


def _wider_namespaces(lacking: Mapping[Minute, JobTally]) -> dict[statistics.NamespaceKey, NamespaceTally]:
    wider: dict[statistics.NamespaceKey, NamespaceTally] = {}
    for (_, minute), tally in lacking.items():
        for span in NAMESPACE_SPANS:
            key = tally.namespace, span, begin_of(minute * MINUTE, span)
            total = wider.setdefault(key, NamespaceTally())
            OutcomeCounts.join(total, tally)
            total.failed -= tally.steps_failed
    return wider
