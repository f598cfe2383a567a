"""Deletion of deduplication keys: discarded cached results, expired keys, and keys without a live execution."""

from uuid import UUID

from horae.env import Instant
from horae.model.executions.deduplication import Cache, KeyHolder, has_cached_result
from horae.store.executions.deduplication import windows
from horae.store.executions.deduplication.deduplicate import DROP, KEY, RowKey, holders_of
from horae.store.script import Fetch, ForEach, Row, Script, Statement

FORGET_RESULTS = Statement("forget_results", "DELETE FROM meetings WHERE job = $1 AND kind = 'cache' RETURNING 1")
EXPIRED = Statement(
    "expire_meetings",
    "WITH expired AS MATERIALIZED"
    " (SELECT job, kind, key FROM meetings WHERE until <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)"
    " DELETE FROM meetings WHERE (job, kind, key) IN (SELECT job, kind, key FROM expired) RETURNING 1",
)
AFTER = Statement(
    "meetings_after",
    "SELECT m.job, m.kind, m.key, m.execution, m.opened_at, m.until, m.span FROM meetings m"
    " WHERE (m.job, m.kind, m.key) > ($1, $2, $3) ORDER BY m.job, m.kind, m.key LIMIT $4 FOR UPDATE SKIP LOCKED",
)
START: RowKey = (UUID(int=0), "", "")


def forget_results(job: UUID) -> Script[int]:
    """Discard the cached results of a job; return the number of deleted keys."""
    return len((yield Fetch(FORGET_RESULTS, (job,))))


def expire(now: Instant, most: int) -> Script[bool]:
    """Delete up to `most` keys whose time is over; return whether there may be more."""
    return len((yield Fetch(EXPIRED, (now, most)))) == most


def forget(after: RowKey, limit: int, now: Instant) -> Script[RowKey]:
    """Check a page of keys, and delete those that hold neither a live execution nor a usable result.

    The page follows the key `after`. Return the key after which the next page begins, or START after the last page.
    SKIP LOCKED: a submission that has locked a key may be about to give it to another execution.
    """
    rows = yield Fetch(AFTER, (*after, limit))
    holders = yield from holders_of(rows)
    yield ForEach(DROP, KEY, [row[:3] for row in rows if not _holds(row, holders[row[3]], now)])
    return (rows[-1][0], rows[-1][1], rows[-1][2]) if len(rows) == limit else START


def _holds(row: Row, known: KeyHolder, now: Instant) -> bool:
    if row[1] in windows.REASONS:
        return known.state == "waiting" and known.reason == row[1]
    if row[1] == "cache":
        return known.is_live or has_cached_result(Cache(ttl=row[6]), known, now)
    return known.is_live if row[5] is None else row[5] > now
