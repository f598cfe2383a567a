"""Housekeeping: duties of servers, the deletion of expired rows, and running slices without a session.

A duty is work that only one server does at a time, for as long as it holds the lease of the duty.
"""

from uuid import UUID

from horae.env import SECOND, Instant
from horae.model.fleet.session import NOTHING_SEEN
from horae.store.script import Fetch, Script, Statement
from horae.store.triggers.dependencies import dependency_fires, joins

MINUTE = 60 * SECOND
DUTY = Statement(
    "take_duty",
    "INSERT INTO duties (name, holder, epoch, until) VALUES ($1, $2, 1, $4) ON CONFLICT (name) DO UPDATE SET"
    " holder = excluded.holder, until = excluded.until,"
    " epoch = CASE WHEN duties.holder = excluded.holder THEN duties.epoch ELSE duties.epoch + 1 END"
    " WHERE duties.holder = excluded.holder OR duties.until < $3 RETURNING epoch",
)
TROUBLED = Statement("duty_troubled", "UPDATE duties SET problem = $2, since = COALESCE(since, $3) WHERE name = $1")
DONE = Statement("duty_done", "UPDATE duties SET problem = NULL, since = NULL WHERE name = $1 AND problem IS NOT NULL")
TROUBLE = Statement("trouble_of_duty", "SELECT problem, since FROM duties WHERE name = $1 AND problem IS NOT NULL")
# SKIP LOCKED: a submission that replaces expired keys has locked some and waits for others. If this statement waited
# for it, both could wait for each other. MATERIALIZED: without it, a join may run the subquery anew for every row, and
# each time its LIMIT may select other rows.
EXPIRED = (
    Statement(
        "expire_unique_keys",
        "WITH expired AS MATERIALIZED"
        " (SELECT namespace, scope, key FROM unique_keys WHERE until <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)"
        " DELETE FROM unique_keys WHERE (namespace, scope, key) IN (SELECT namespace, scope, key FROM expired)"
        " RETURNING 1",
    ),
    Statement(
        "expire_idempotency",
        "WITH expired AS MATERIALIZED"
        " (SELECT namespace, route, key FROM idempotency WHERE until <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)"
        " DELETE FROM idempotency WHERE (namespace, route, key) IN (SELECT namespace, route, key FROM expired)"
        " RETURNING 1",
    ),
    Statement(
        "expire_affinities",
        "WITH expired AS MATERIALIZED"
        " (SELECT job, key FROM affinities WHERE until <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)"
        " DELETE FROM affinities WHERE (job, key) IN (SELECT job, key FROM expired) RETURNING 1",
    ),
)
# After this deletion, a job that is restored gets its triggers as they are defined, without their former progress.
OLD_TRIGGERS = Statement(
    "expire_triggers",
    "WITH old AS MATERIALIZED (SELECT g.id FROM triggers g WHERE g.state = 'ended' AND g.valid_to < $1"
    " AND NOT EXISTS (SELECT 1 FROM fires f WHERE f.trigger_id = g.id) ORDER BY g.valid_to LIMIT $2)"
    " DELETE FROM triggers WHERE id IN (SELECT id FROM old) RETURNING 1",
)
OLD_MINUTES = Statement(
    "expire_minutes",
    "WITH old AS MATERIALIZED"
    " (SELECT job, minute, server FROM job_minutes WHERE minute < $1 ORDER BY minute LIMIT $2)"
    " DELETE FROM job_minutes WHERE (job, minute, server) IN (SELECT job, minute, server FROM old) RETURNING 1",
)
OLD_SERVERS = Statement("forget_servers", "DELETE FROM servers WHERE last_seen < $1")
# A browser's key is useless without its cookie, so both are deleted together. Unfinished sign-ins are deleted, too.
EXPIRED_SIGN_INS = (
    Statement("expire_browsers", "DELETE FROM keys WHERE id IN (SELECT c.key_id FROM cookies c WHERE c.until <= $1)"),
    Statement("expire_cookies", "DELETE FROM cookies WHERE until <= $1"),
    Statement("expire_codes", "DELETE FROM sign_in_codes WHERE until <= $1"),
    Statement("expire_enrolments", "DELETE FROM enrolments WHERE until <= $1"),
)
OLD_SESSIONS = Statement(
    "forget_sessions",
    "WITH old AS MATERIALIZED (SELECT s.id FROM sessions s WHERE s.ended_at < $1"
    " AND NOT EXISTS (SELECT 1 FROM running r WHERE r.session = s.id) LIMIT $2 FOR UPDATE SKIP LOCKED)"
    " DELETE FROM sessions WHERE id IN (SELECT id FROM old) RETURNING 1",
)
UNKNOWN = Statement(
    "unknown_sessions",
    "SELECT DISTINCT r.session, r.namespace FROM running r LEFT JOIN sessions s ON s.id = r.session WHERE s.id IS NULL",
)
UNKNOWN_WORKER = '{"protocol":1,"worker":"unknown"}'
ADOPT = Statement(
    "adopt_session",
    "INSERT INTO sessions (id, namespace, worker, presence, capabilities, queues, concurrency, state, epoch, seen,"
    " last_seen, created_at, ended_at) VALUES ($1, $2, 'unknown', $5, '[]', '[]', 0, 'closed', 0, $3, $4, $4, $4)"
    " ON CONFLICT DO NOTHING",
)


def take_duty(name: str, holder: UUID, now: Instant, until: Instant) -> Script[int | None]:
    """Take or renew a duty until an instant; return None while another server holds it.

    Return the epoch of the duty, which grows with every new holder.
    """
    rows = yield Fetch(DUTY, (name, holder, now, until))
    return rows[0][0] if rows else None


def report_duty(name: str, problem: str | None, now: Instant) -> Script[None]:
    """Record the reason why a duty cannot be done; None means that it can be done."""
    yield Fetch(DONE, (name,)) if problem is None else Fetch(TROUBLED, (name, problem, now))


def problem_of(name: str) -> Script[tuple[str, Instant] | None]:
    """Return the reason why a duty cannot be done, and since when this is so; None if it can be done."""
    rows = yield Fetch(TROUBLE, (name,))
    return (rows[0][0], rows[0][1]) if rows else None


def forget_expired(now: Instant, sessions_before: Instant, most: int = 1000) -> Script[bool]:
    """Delete keys, codes and cookies that have expired, and old servers and sessions; return whether there may be more.

    Servers that were last seen before `sessions_before` are deleted, and sessions that ended before it. At most `most`
    keys of a kind and `most` sessions are deleted by one call, because the deletion of a whole day's keys would exceed
    the statement timeout, or block SQLite's writer.
    """
    more = False
    for statement in EXPIRED:
        more |= len((yield Fetch(statement, (now, most)))) == most
    for statement in EXPIRED_SIGN_INS:
        yield Fetch(statement, (now,))
    yield Fetch(OLD_SERVERS, (sessions_before,))
    more |= len((yield Fetch(OLD_SESSIONS, (sessions_before, most)))) == most
    return more


def forget_records(triggers_before: Instant, minutes_before: Instant, most: int = 1000) -> Script[bool]:
    """Delete old records; return whether there may be more.

    `triggers_before` is the cutoff of ended triggers without fires, joins that need no further check, and fires of
    joins; `minutes_before` is the cutoff of statistics by minute.
    """
    triggers = yield Fetch(OLD_TRIGGERS, (triggers_before, most))
    minutes = yield Fetch(OLD_MINUTES, (minutes_before // MINUTE, most))
    joined = yield from joins.forget(triggers_before, most)
    started = yield from dependency_fires.forget(triggers_before, most)
    return most in (len(triggers), len(minutes), joined, started)


def adopt_orphans(now: Instant) -> Script[list[UUID]]:
    """Create the missing sessions of running slices, as ended ones, so that the rescuer takes the slices back.

    Return the ids of these sessions.
    """
    rows = yield Fetch(UNKNOWN)
    for session, namespace in rows:
        yield Fetch(ADOPT, (session, namespace, NOTHING_SEEN, now, UNKNOWN_WORKER))
    return [row[0] for row in rows]
