"""Credentials: API keys, single-use sign-in codes and browser cookies, all stored as hashes.

This module also stores the answers of requests with an Idempotency-Key, except those of submissions, which are stored
in the submission's own transaction.
"""

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.executions.submission import Idempotency
from horae.model.tenancy.keys import KeyRights, StoredKey
from horae.store.script import Again, Fetch, Lock, Row, Script, Statement

_KEY = (
    "id, hash, name, namespace, role, created_at, expires_at, last_used_at, revoked_at, permissions, queues, jobs,"
    " made_by, replaced_by, (SELECT n.name FROM namespaces n WHERE n.id = keys.namespace), rate"
)
ADD = Statement(
    "add_key",
    "INSERT INTO keys (id, hash, name, namespace, role, created_at, expires_at, permissions, queues, jobs, made_by,"
    " rate) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
    " ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, namespace = excluded.namespace, role = excluded.role,"
    " permissions = excluded.permissions, queues = excluded.queues, jobs = excluded.jobs,"
    " expires_at = excluded.expires_at, rate = excluded.rate, revoked_at = NULL, replaced_by = NULL",
)
REPLACE = Statement(
    "replace_key",
    "UPDATE keys SET replaced_by = $2, expires_at = CASE WHEN expires_at < $3 THEN expires_at ELSE $3 END"
    " WHERE id = $1 AND replaced_by IS NULL AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $4)"
    " RETURNING id",
)
ONE = Statement("key", f"SELECT {_KEY} FROM keys WHERE id = $1")
PAGE = Statement("keys", f"SELECT {_KEY} FROM keys WHERE namespace = $1 AND id > $2 ORDER BY id LIMIT $3")
# Keys of administrators of the whole installation. An administrator of one namespace cannot grant access to others.
ADMINS = Statement(
    "admin_keys",
    "SELECT id FROM keys WHERE role = 'admin' AND permissions LIKE '%installation%' AND revoked_at IS NULL"
    " AND expires_at IS NULL LIMIT 1",
)
LAST_ADMIN = Statement(
    "is_last_admin_key",
    "SELECT 1 FROM keys WHERE id = $1 AND role = 'admin' AND permissions LIKE '%installation%' AND revoked_at IS NULL"
    " AND expires_at IS NULL AND NOT EXISTS (SELECT 1 FROM keys o WHERE o.id <> $1 AND o.role = 'admin'"
    " AND o.permissions LIKE '%installation%' AND o.revoked_at IS NULL AND o.expires_at IS NULL)",
)
REVOKE = Statement(
    "revoke_key",
    "UPDATE keys SET revoked_at = $3 WHERE namespace = $1 AND id = $2 AND revoked_at IS NULL RETURNING id",
)
REVOKE_BROWSERS = Statement(
    "revoke_browsers_of_key",
    "UPDATE keys SET revoked_at = $2 WHERE id IN (SELECT c.key_id FROM cookies c) AND made_by = $1"
    " AND revoked_at IS NULL",
)
# Browsers may have signed in by links of a rotated key. Their keys end with the overlap in which both the rotated key
# and its successor are valid, or sooner.
END_BROWSERS = Statement(
    "end_browsers_of_key",
    "UPDATE keys SET expires_at = $2 WHERE id IN (SELECT c.key_id FROM cookies c) AND made_by = $1 AND expires_at > $2",
)
REVOKE_CODES = Statement("revoke_codes_of_key", "DELETE FROM sign_in_codes WHERE made_by = $1")
REVOKE_TOKENS = Statement("revoke_enrolments_of", "DELETE FROM enrolments WHERE made_by = $1")
USED = Statement(
    "key_used", "UPDATE keys SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at <= $3)"
)
ADD_CODE = Statement(
    "add_sign_in_code",
    "INSERT INTO sign_in_codes (hash, namespace, role, permissions, queues, jobs, made_by, until)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
)
OLD_CODES = Statement("old_sign_in_codes", "DELETE FROM sign_in_codes WHERE until <= $1")
USE_CODE = Statement(
    "use_sign_in_code",
    "DELETE FROM sign_in_codes WHERE hash = $1"
    " RETURNING until, namespace, role, permissions, queues, jobs, made_by,"
    " (SELECT n.name FROM namespaces n WHERE n.id = sign_in_codes.namespace)",
)
ADD_COOKIE = Statement(
    "add_cookie", "INSERT INTO cookies (hash, key_id, csrf, created_at, until) VALUES ($1, $2, $3, $4, $5)"
)
COOKIE = Statement("cookie", "SELECT key_id, csrf FROM cookies WHERE hash = $1 AND until > $2")
# The row of an ended cookie stays until the sweeper deletes it together with its key.
END_COOKIE = Statement("end_cookie", "UPDATE cookies SET until = $2 WHERE hash = $1 AND until > $2 RETURNING key_id")
REVOKE_ANY = Statement("revoke_key_of_cookie", "UPDATE keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL")
FREE = Statement(
    "free_idempotency", "DELETE FROM idempotency WHERE namespace = $1 AND route = $2 AND key = $3 AND until <= $4"
)
RESERVE = Statement(
    "reserve_idempotency",
    "INSERT INTO idempotency (namespace, route, key, body_hash, until, created_at) VALUES ($1, $2, $3, $4, $5, $6)"
    " ON CONFLICT DO NOTHING RETURNING key",
)
RESERVED = Statement(
    "reserved_idempotency",
    "SELECT body_hash, status, answer FROM idempotency WHERE namespace = $1 AND route = $2 AND key = $3",
)
# KEEP and RELEASE compare the instant of the reservation, so that they do not touch the reservation of another request
# that took over the key after this one had expired.
KEEP = Statement(
    "keep_idempotency",
    "UPDATE idempotency SET status = $5, answer = $6, until = $7"
    " WHERE namespace = $1 AND route = $2 AND key = $3 AND created_at = $4 AND status IS NULL",
)
RELEASE = Statement(
    "release_idempotency",
    "DELETE FROM idempotency WHERE namespace = $1 AND route = $2 AND key = $3 AND created_at = $4 AND status IS NULL",
)

ADMIN_KEYS = Lock(("first-admin-key",))
_LIST = msgspec.json.Decoder(tuple[str, ...])


class ReservedKey(Struct, frozen=True):
    """The idempotency key was free. The caller runs the request, and then stores its answer or releases the key."""

    since: Instant  # the instant of the reservation, which identifies it


class KnownKey(Struct, frozen=True):
    """The idempotency key was used before. `status` and `answer` are None while that first request runs."""

    same_body: bool
    status: int | None
    answer: bytes | None


def add(key: StoredKey) -> Script[None]:
    """Write an API key. If a key has the same id, it is replaced and becomes valid again."""
    granted = row_of(key.grant)
    row = (key.id, key.hash, key.name, *granted[:2], key.created_at, key.expires_at, *granted[2:], key.rate)
    yield Fetch(ADD, row)


def has_admin() -> Script[bool]:
    """Return whether the installation has a key of an administrator without expiry."""
    return bool((yield Fetch(ADMINS)))


def add_first_admin(key: StoredKey) -> Script[bool]:
    """Write an API key of an administrator, unless the installation has one without expiry.

    The lock makes sure that servers that start at the same time write only one.
    """
    yield ADMIN_KEYS
    if (yield from has_admin()):
        return False
    yield from add(key)
    return True


def by_id(key_id: str) -> Script[StoredKey | None]:
    """Return a key by its id."""
    rows = yield Fetch(ONE, (key_id,))
    return _stored(rows[0]) if rows else None


def page(namespace: int, after: str, limit: int) -> Script[list[StoredKey]]:
    """Return keys of a namespace in the order of their ids."""
    rows = yield Fetch(PAGE, (namespace, after, limit))
    return [_stored(row) for row in rows]


def _stored(row: Row) -> StoredKey:
    return StoredKey(
        id=row[0], hash=bytes(row[1]), name=row[2], grant=grant_of((*row[3:5], *row[9:13], row[14])), created_at=row[5],
        expires_at=row[6], last_used_at=row[7], revoked_at=row[8], replaced_by=row[13], rate=row[15],
    )  # fmt: skip


def grant_of(row: Row) -> KeyRights:
    """Build the grant of a key, code or token from its columns."""
    permissions, queues, jobs = (_LIST.decode(text) for text in row[2:5])
    return KeyRights(
        namespace=row[0], role=row[1], permissions=permissions, queues=queues, jobs=jobs, made_by=row[5],
        namespace_name=row[6] or "",
    )  # fmt: skip


def row_of(grant: KeyRights) -> Row:
    """Return the columns of a grant; the name of the namespace is not stored."""
    lists = (msgspec.json.encode(each).decode() for each in (grant.permissions, grant.queues, grant.jobs))
    return (grant.namespace, grant.role, *lists, grant.made_by)


def revoke(namespace: int, key_id: str, now: Instant, *, force: bool = False) -> Script[bool]:
    """Revoke an API key and what it created: keys of browsers that signed in by its links, unused links, and tokens.

    Without `force`, return False for the only valid key of an administrator of the installation that does not expire.
    The lock makes sure that two such keys that are revoked at the same time do not both count as the other one.
    """
    yield ADMIN_KEYS
    if not force and (yield Fetch(LAST_ADMIN, (key_id,))):
        return False
    if (yield Fetch(REVOKE, (namespace, key_id, now))):
        yield Fetch(REVOKE_CODES, (key_id,))
        yield Fetch(REVOKE_TOKENS, (key_id,))
        yield Fetch(REVOKE_BROWSERS, (key_id, now))
    return True


def rotate(key_id: str, successor: StoredKey, until: Instant, now: Instant) -> Script[bool]:
    """Write the successor of an API key, and let the old key end at `until` unless it ends sooner.

    Return False if the old key was replaced already, was revoked or has expired.
    """
    if not (yield Fetch(REPLACE, (key_id, successor.id, until, now))):
        return False
    yield from add(successor)
    yield Fetch(END_BROWSERS, (key_id, until))
    return True


def record_use(key_id: str, now: Instant, unless_since: Instant) -> Script[None]:
    """Record that a key was used, unless a use after `unless_since` is recorded."""
    yield Fetch(USED, (key_id, now, unless_since))


def add_code(digest: bytes, grant: KeyRights, until: Instant, now: Instant) -> Script[None]:
    """Write the hash of a sign-in code with the rights that it grants, and delete expired codes."""
    yield Fetch(OLD_CODES, (now,))
    yield Fetch(ADD_CODE, (digest, *row_of(grant), until))


def sign_in(
    code: bytes, key_id: str, cookie: bytes, csrf: str, until: Instant, now: Instant
) -> Script[StoredKey | None]:
    """Delete a sign-in code, and write a key for the browser, with the rights that the code grants.

    The key can be used only with this cookie, and expires no later than the key that created the code. Return None if
    the code is not valid. `code` and `cookie` are hashes.
    """
    rows = yield Fetch(USE_CODE, (code,))
    if not rows or rows[0][0] <= now:
        return None
    grant = grant_of(rows[0][1:])
    maker = (yield from by_id(grant.made_by)) if grant.made_by else None
    if maker is not None and maker.expires_at is not None:
        until = min(until, maker.expires_at)
    if until <= now:
        return None
    rate = None if maker is None else maker.rate
    key = StoredKey(id=key_id, hash=cookie, name="browser", grant=grant, created_at=now, expires_at=until, rate=rate)
    yield from add(key)
    yield Fetch(ADD_COOKIE, (cookie, key_id, csrf, now, until))
    return key


def key_of_cookie(cookie: bytes, now: Instant) -> Script[tuple[StoredKey, str] | None]:
    """Return the key and the CSRF token of a cookie, or None if the cookie is not valid; `cookie` is its hash."""
    rows = yield Fetch(COOKIE, (cookie, now))
    if not rows:
        return None
    key = yield from by_id(rows[0][0])
    return (key, rows[0][1]) if key is not None else None


def sign_out(cookie: bytes, now: Instant) -> Script[None]:
    """End a cookie, and revoke its key."""
    for row in (yield Fetch(END_COOKIE, (cookie, now))):
        yield Fetch(REVOKE_ANY, (row[0], now))


def reserve(request: Idempotency, running_until: Instant, now: Instant) -> Script[ReservedKey | KnownKey]:
    """Reserve an idempotency key, or return the state of the earlier request that has it.

    A reservation without an answer expires at `running_until`.
    """
    where = (request.namespace, request.route, request.key)
    yield Fetch(FREE, (*where, now))
    if (yield Fetch(RESERVE, (*where, request.body_hash, running_until, now))):
        return ReservedKey(now)
    rows = yield Fetch(RESERVED, where)
    if not rows:  # the other request has just released the key, so try to reserve it again
        raise Again
    stored, status, answer = rows[0]
    return KnownKey(bytes(stored) == request.body_hash, status, None if answer is None else bytes(answer))


def store_answer(request: Idempotency, reserved: ReservedKey, status: int, answer: bytes) -> Script[None]:
    """Store the answer of a request that reserved its idempotency key."""
    yield Fetch(KEEP, (request.namespace, request.route, request.key, reserved.since, status, answer, request.until))


def release(request: Idempotency, reserved: ReservedKey) -> Script[None]:
    """Release a reserved idempotency key, because the request changed nothing."""
    yield Fetch(RELEASE, (request.namespace, request.route, request.key, reserved.since))
