"""The registered sessions of workers, and the servers that run."""

from collections.abc import Iterable
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.fleet.protocol import Register
from horae.model.fleet.server import ServerProcess
from horae.model.fleet.session import NOTHING_SEEN, REATTACHES, Session, SessionState, capabilities_of
from horae.store.script import Among, Fetch, ForEach, Row, Script, Statement

_COLUMNS = (
    "s.id, s.namespace, s.worker, s.presence, s.capabilities, s.queues, s.concurrency, s.state, s.epoch, s.last_seen,"
    " s.created_at, s.ended_at"
)
REGISTER = Statement(
    "register_session",
    "INSERT INTO sessions (id, namespace, worker, presence, capabilities, queues, concurrency, state, epoch, seen,"
    " last_seen, created_at, api_key) VALUES ($1, $2, $3, $4, $5, $6, $7, 'live', $8, $9, $10, $10, $11)",
)
OF_KEY = Statement(
    "sessions_of_key",
    "SELECT count(*) FROM (SELECT 1 FROM sessions WHERE api_key = $1 AND state IN ('live', 'draining') LIMIT $2) AS s",
)
ONE = Statement(
    "session",
    f"SELECT {_COLUMNS}, (SELECT coalesce(sum(r.hi - r.lo), 0) FROM running r WHERE r.session = s.id)"
    " FROM sessions s WHERE s.id = $1",
)
ALL = Statement(
    "sessions",
    f"SELECT {_COLUMNS}, (SELECT coalesce(sum(r.hi - r.lo), 0) FROM running r WHERE r.session = s.id)"
    " FROM sessions s WHERE (s.namespace = $1 OR $1 = 0) AND (s.ended_at IS NULL OR s.ended_at > $2)"
    " ORDER BY s.created_at DESC LIMIT $3",
)
# Live and draining sessions come first, so that however many were lost, none of them is left out.
_NOT_CLOSED = "s.state <> 'closed' AND (s.ended_at IS NULL OR s.ended_at > $2)"
_LIVE_FIRST = "ORDER BY s.ended_at IS NOT NULL, s.created_at DESC LIMIT"
BRIEF = Statement(
    "sessions_in_brief",
    "SELECT s.id, s.namespace, s.worker, s.concurrency, s.state, s.last_seen,"
    " (SELECT coalesce(sum(r.hi - r.lo), 0) FROM running r WHERE r.session = s.id)::bigint,"
    " length(s.presence) + length(s.capabilities) + length(s.queues), s.created_at"
    f" FROM sessions s WHERE (s.namespace = $1 OR $1 = 0) AND {_NOT_CLOSED} {_LIVE_FIRST} $3",
)
OF_WORKER = Statement(
    "session_of_worker",
    f"SELECT {_COLUMNS}, (SELECT coalesce(sum(r.hi - r.lo), 0) FROM running r WHERE r.session = s.id)"
    f" FROM sessions s WHERE s.namespace = $1 AND {_NOT_CLOSED} AND (s.worker = $3 OR s.id = $4) {_LIVE_FIRST} 1",
)
SOME = Statement("some_sessions", f"SELECT {_COLUMNS}, 0 FROM sessions s WHERE s.id = ANY($1)")
HELD = Statement(
    "held_by_lane",
    "SELECT r.session, r.lane, sum(r.hi - r.lo) FROM given JOIN running r ON r.session = given.id"
    " GROUP BY r.session, r.lane",
)
LIVE_SESSIONS = Statement(
    "live_sessions", f"SELECT {_COLUMNS}, 0 FROM sessions s WHERE s.namespace = $1 AND s.state = 'live' ORDER BY s.id"
)
DRAIN = Statement(
    "ask_drain",
    "UPDATE sessions SET state = CASE state WHEN 'live' THEN 'draining' ELSE 'detached-draining' END"
    " WHERE id = $1 AND state IN ('live', 'detached') RETURNING id",
)
# FOR SHARE: a new epoch waits for the registrations that have read the old epoch, and then ends their sessions. A later
# registration waits for the commit of the new epoch and reads it.
HOLD_EPOCH = Statement("hold_epoch", "SELECT value FROM store WHERE key = 'epoch' FOR SHARE")
LOCK_OLD_EPOCH = Statement(
    "lock_old_epoch",
    "SELECT id FROM sessions WHERE epoch < $1 AND ended_at IS NULL ORDER BY id FOR NO KEY UPDATE",
)
DETACH = Statement(
    "detach_old_epoch",
    "UPDATE sessions SET state = CASE state WHEN 'live' THEN 'detached' ELSE 'detached-draining' END"
    f" WHERE epoch < $1 AND state IN ('live', 'draining') AND capabilities LIKE '%\"{REATTACHES}\"%'",
)
END_DETACHED = Statement(
    "end_detached",
    "UPDATE sessions SET state = 'closed', ended_at = $2 WHERE epoch < $1"
    " AND state IN ('detached', 'detached-draining')",
)
OLD_EPOCH = Statement(
    "end_old_epoch",
    "UPDATE sessions SET state = 'closed', ended_at = $2 WHERE epoch < $1 AND state IN ('live', 'draining')"
    " RETURNING id",
)
SERVER = Statement(
    "server_seen",
    "INSERT INTO servers (id, url, host, pid, version, parts, started_at, last_seen)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $7)"
    " ON CONFLICT (id) DO UPDATE SET last_seen = excluded.last_seen, url = excluded.url,"
    " parts = excluded.parts",
)
SERVERS = Statement(
    "servers", "SELECT id, url, host, pid, version, parts, started_at, last_seen FROM servers WHERE last_seen > $1"
)
SERVER_GONE = Statement("server_gone", "DELETE FROM servers WHERE id = $1")


class SessionSummary(Struct, frozen=True):
    """A session without its presence, capabilities and queues, which may be long."""

    id: UUID
    namespace: int
    worker: str
    concurrency: int
    state: SessionState
    last_seen: Instant
    running: int
    size: int  # characters of the fields that are left out


def register(session_id: UUID, namespace: int, presence: Register, now: Instant, key: str = "") -> Script[Session]:
    """Create a live session for a worker, in the present epoch of the store."""
    capabilities = capabilities_of(presence)
    epoch = int((yield Fetch(HOLD_EPOCH))[0][0])
    yield Fetch(
        REGISTER,
        (
            session_id, namespace, presence.worker, _json(presence), _json(sorted(capabilities)),
            _json(presence.queues), presence.concurrency, epoch, NOTHING_SEEN, now, key,
        ),
    )  # fmt: skip
    return Session(
        id=session_id, namespace=namespace, worker=presence.worker, presence=presence, capabilities=capabilities,
        queues=tuple(presence.queues), concurrency=presence.concurrency, state="live", epoch=epoch, last_seen=now,
        created_at=now,
    )  # fmt: skip


def count_of_key(key: str, most: int) -> Script[int]:
    """Return the number of sessions of an API key that have not ended, counted up to `most`."""
    rows = yield Fetch(OF_KEY, (key, most))
    return int(rows[0][0])


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def session(session_id: UUID) -> Script[Session | None]:
    rows = yield Fetch(ONE, (session_id,))
    return _session(rows[0]) if rows else None


def some_sessions(ids: Iterable[UUID]) -> Script[dict[UUID, Session]]:
    """Return these sessions if they exist; their running executions are not counted."""
    rows = yield Among(SOME, sorted(set(ids)))
    return {row[0]: _session(row) for row in rows}


def sessions(namespace: int, ended_after: Instant, limit: int) -> Script[list[Session]]:
    """Return sessions that have not ended or ended after an instant, newest first; namespace 0 means all."""
    rows = yield Fetch(ALL, (namespace, ended_after, limit))
    return [_session(row) for row in rows]


def session_summaries(namespace: int, ended_after: Instant, limit: int) -> Script[list[SessionSummary]]:
    """Return live and draining sessions and those lost after an instant, newest first; namespace 0 means all.

    At most `limit` sessions are returned: the newest live and draining ones, then the newest lost ones.
    """
    rows = yield Fetch(BRIEF, (namespace, ended_after, limit))
    return [SessionSummary(*row[:-1]) for row in sorted(rows, key=lambda row: row[-1], reverse=True)]


def session_of_worker(
    namespace: int, worker: str, session_id: UUID | None, lost_after: Instant
) -> Script[Session | None]:
    """Return the session with an id, or the newest one of a worker's name: a live one if there is any.

    Closed sessions, and those lost before an instant, are not found.
    """
    rows = yield Fetch(OF_WORKER, (namespace, lost_after, worker, session_id))
    return _session(rows[0]) if rows else None


def held_by_lane(ids: Iterable[UUID]) -> Script[dict[UUID, dict[int, int]]]:
    """Return the number of executions that each session holds, by the lane from which they were claimed."""
    found: dict[UUID, dict[int, int]] = {session: {} for session in ids}
    rows = yield ForEach(HELD, (("id", "uuid"),), [(session,) for session in found])
    for session, lane, count in rows:
        found[session][lane] = int(count)
    return found


def _session(row: Row) -> Session:
    return Session(
        id=row[0], namespace=row[1], worker=row[2], presence=msgspec.json.decode(row[3], type=Register),
        capabilities=frozenset(msgspec.json.decode(row[4])), queues=tuple(msgspec.json.decode(row[5])),
        concurrency=row[6], state=row[7], epoch=row[8], last_seen=row[9], created_at=row[10], ended_at=row[11],
        running=int(row[12]),
    )  # fmt: skip


def live_sessions(namespace: int) -> Script[list[Session]]:
    """Return the live sessions of a namespace; their running executions are not counted."""
    rows = yield Fetch(LIVE_SESSIONS, (namespace,))
    return [_session(row) for row in rows]


def ask_drain(session_id: UUID) -> Script[bool]:
    """Ask a worker to finish its executions and leave; the answer to its next exchange says so."""
    rows = yield Fetch(DRAIN, (session_id,))
    return bool(rows)


def end_old_epochs(current: int, now: Instant) -> Script[list[UUID]]:
    """End all sessions of earlier epochs, after a restore or failover; this does not count as a loss of executions."""
    yield Fetch(LOCK_OLD_EPOCH, (current,))  # sessions are always locked in the order of their ids
    rows = yield Fetch(OLD_EPOCH, (current, now))
    return [row[0] for row in rows]


def detach_old_epochs(current: int) -> Script[None]:
    """Detach the sessions of earlier epochs whose workers can re-attach, after a failover."""
    yield Fetch(LOCK_OLD_EPOCH, (current,))
    yield Fetch(DETACH, (current,))


def end_detached(current: int, now: Instant) -> Script[None]:
    """End the detached sessions of earlier epochs, after a restore: their running slices may be out of date."""
    yield Fetch(LOCK_OLD_EPOCH, (current,))
    yield Fetch(END_DETACHED, (current, now))


def record_server(server: ServerProcess, now: Instant) -> Script[None]:
    """Record that a server is running now."""
    parts = ",".join(server.roles)
    yield Fetch(SERVER, (server.id, server.url, server.host, server.pid, server.version, parts, now))


def servers(seen_after: Instant) -> Script[list[ServerProcess]]:
    """Return the servers seen since an instant."""
    rows = yield Fetch(SERVERS, (seen_after,))
    return [
        ServerProcess(
            id=server_id, url=url, host=host, pid=pid, version=version, roles=tuple(filter(None, parts.split(","))),
            started_at=started_at, last_seen=last_seen,
        )
        for server_id, url, host, pid, version, parts, started_at, last_seen in rows
    ]  # fmt: skip


def remove_server(server_id: UUID) -> Script[None]:
    """Remove a server from the list of servers."""
    yield Fetch(SERVER_GONE, (server_id,))
