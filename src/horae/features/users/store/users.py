"""Transactions of users, their memberships in namespaces, and the sessions of their browsers."""

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.features.users.model import Member, User
from horae.store.base import locks
from horae.store.expiry.expiry import Cutoffs
from horae.store.script import Fetch, Row, Script, Statement
from horae.store.tenancy.holdings import Holdings, drops, rows
from horae.store.tenancy.keys import REVOKE_TOKENS

_USER = "name, active, password IS NOT NULL, created_at, signed_in_at, subject"
ONE = Statement("user", f"SELECT {_USER}, password FROM users WHERE name = $1")
PAGE = Statement("users", f"SELECT {_USER} FROM users WHERE name > $1 ORDER BY name LIMIT $2")
PAGE_OF = Statement(
    "users_of_namespace",
    "SELECT u.name, u.active, u.password IS NOT NULL, u.created_at, u.signed_in_at, u.subject FROM members m"
    " JOIN users u ON u.name = m.user_name WHERE m.namespace = $1 AND m.user_name > $2 ORDER BY m.user_name LIMIT $3",
)
ADD = Statement(
    "add_user",
    "INSERT INTO users (name, password, created_at, subject)"
    " SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS BIGINT), CAST($4 AS TEXT)"
    " WHERE NOT EXISTS (SELECT 1 FROM users u WHERE lower(u.name) = lower($1)) ON CONFLICT DO NOTHING RETURNING name",
)
SET_PASSWORD = Statement("set_password", "UPDATE users SET password = $2 WHERE name = $1 RETURNING name")
REPLACE_PASSWORD = Statement(
    "replace_password", "UPDATE users SET password = $2 WHERE name = $1 AND password = $3 RETURNING name"
)
SET_ACTIVE = Statement("set_user_active", "UPDATE users SET active = $2 WHERE name = $1 RETURNING name")
# This locks the user, so a change of the user either is committed before and seen here, or sees the new session.
SEEN = Statement(
    "user_signed_in",
    "UPDATE users SET signed_in_at = $2 WHERE name = $1 AND active AND COALESCE(password, subject) = $3 RETURNING name",
)
DELETE = Statement("delete_user", "DELETE FROM users WHERE name = $1 RETURNING name")
MEMBERS = Statement(
    "members_of_user",
    "SELECT m.namespace, n.name, m.role, m.permissions FROM members m JOIN namespaces n ON n.id = m.namespace"
    " WHERE m.user_name = $1 ORDER BY n.name",
)
ALIVE = Statement("namespace_of_member", "SELECT id FROM namespaces WHERE id = $1 AND state <> 'deleted'")
JOIN = Statement(
    "join_namespace",
    "INSERT INTO members (user_name, namespace, role, permissions)"
    " SELECT u.name, CAST($2 AS INT), CAST($3 AS TEXT), CAST($4 AS TEXT) FROM users u WHERE u.name = $1 FOR KEY SHARE"
    " ON CONFLICT (user_name, namespace) DO UPDATE SET role = excluded.role, permissions = excluded.permissions"
    " RETURNING user_name",
)
LEAVE = Statement("leave_namespace", "DELETE FROM members WHERE user_name = $1 AND namespace = $2 RETURNING user_name")
LEAVE_ALL = Statement("leave_namespaces", "DELETE FROM members WHERE user_name = $1")
ADD_SIGN_IN = Statement(
    "add_sign_in",
    "INSERT INTO sign_ins (hash, user_name, csrf, created_at, seen_at, until, members, network)"
    " VALUES ($1, $2, $3, $4, $4, $5, $6, $7)",
)
OLD = Statement("old_sign_ins", "DELETE FROM sign_ins WHERE until <= $1")
SIGN_IN = Statement("sign_in_of", "SELECT user_name, csrf, seen_at, until, members FROM sign_ins WHERE hash = $1")
SEE = Statement("see_sign_in", "UPDATE sign_ins SET seen_at = $2 WHERE hash = $1 AND seen_at <= $3")
FROM_NETWORK = Statement(
    "sign_ins_from", "SELECT 1 FROM sign_ins WHERE user_name = $1 AND network = $2 AND until > $3 LIMIT 1"
)
END = Statement("end_sign_in", "DELETE FROM sign_ins WHERE hash = $1")
END_ALL = Statement("end_sign_ins", "DELETE FROM sign_ins WHERE user_name = $1 AND hash <> $2")
OLD_FLOWS = Statement("old_oidc_flows", "DELETE FROM oidc_flows WHERE until <= $1")
USE_FLOW = Statement(
    "use_oidc_flow", "INSERT INTO oidc_flows (state, until) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING state"
)

# The users who are members of the namespace and of no other.
_ONLY_HERE = (
    "(SELECT m.user_name FROM members m WHERE m.namespace = $1 AND NOT EXISTS"
    " (SELECT 1 FROM members o WHERE o.user_name = m.user_name AND o.namespace <> $1))"
)
HOLDINGS = Holdings(
    drops=drops("members"),
    rows=(
        rows("sign_ins", "hash", f"user_name IN {_ONLY_HERE}"),
        rows("users", "name", f"name IN {_ONLY_HERE}"),
    ),
    kept={"oidc_flows": "kept for minutes only, and has no data of users"},
)

_permissions = msgspec.json.Decoder(tuple[str, ...]).decode
_members = msgspec.json.Decoder(tuple[Member, ...]).decode


class SignIn(Struct, frozen=True, kw_only=True):
    """A session of a browser; `members` are the memberships that apply to it."""

    hash: bytes
    user: str
    csrf: str
    seen_at: Instant
    until: Instant
    members: tuple[Member, ...]


def find(name: str) -> Script[tuple[User, str | None] | None]:
    """Return a user and the hash of the user's password, or None if there is no such user."""
    rows = yield Fetch(ONE, (name,))
    if not rows:
        return None
    members = yield from members_of(name)
    return _user(rows[0], members), rows[0][6]


def members_of(name: str) -> Script[tuple[Member, ...]]:
    """Return the memberships of a user."""
    return tuple(_member(row) for row in (yield Fetch(MEMBERS, (name,))))


def page(namespace: int | None, after: str, limit: int) -> Script[list[User]]:
    """Return a page of all users, or of those of a namespace, in the order of their names.

    With a namespace, their other memberships are left out.
    """
    rows = yield Fetch(PAGE, (after, limit)) if namespace is None else Fetch(PAGE_OF, (namespace, after, limit))
    users = []
    for row in rows:
        members = yield from members_of(row[0])
        users.append(_user(row, tuple(m for m in members if namespace in (None, m.namespace))))
    return users


def add(
    name: str, password: str | None, member: Member | None, now: Instant, subject: str | None = None
) -> Script[bool]:
    """Add a user. Return False if there is a user with this name, in whatever case.

    `password` is a hash; `subject` is the id of the user at the identity provider.
    """
    yield from locks.take(locks.of_user_name(name))  # guard: add-locks-name
    if not (yield Fetch(ADD, (name, password, now, subject))):
        return False
    if member is not None:
        yield from join(name, member)
    return True


def join(name: str, member: Member) -> Script[bool]:
    """Set the role and permissions of a user in a namespace; return False if there is no such user."""
    permissions = msgspec.json.encode(member.permissions).decode()
    return bool((yield Fetch(JOIN, (name, member.namespace, member.role, permissions))))


def leave(name: str, namespace: int) -> Script[bool]:
    """Remove a user from a namespace."""
    return bool((yield Fetch(LEAVE, (name, namespace))))


def set_password(name: str, password: str, keep: bytes, current: str | None = None) -> Script[bool]:
    """Set the hash of a user's password, and end all sessions of the user except the one with the hash `keep`.

    Return False if there is no such user, or if `current` is given and the user has another hash.
    """
    if current is None:
        found = yield Fetch(SET_PASSWORD, (name, password))
    else:
        found = yield Fetch(REPLACE_PASSWORD, (name, password, current))
    if found:
        yield Fetch(END_ALL, (name, keep))
    return bool(found)


def replace_hash(name: str, password: str, current: str) -> Script[None]:
    """Replace the hash `current` by a new hash of the same password, unless the user has another password now."""
    yield Fetch(REPLACE_PASSWORD, (name, password, current))


def set_active(name: str, active: bool) -> Script[bool]:
    """Activate or deactivate a user; a deactivation ends the user's access."""
    if not (yield Fetch(SET_ACTIVE, (name, active))):
        return False
    if not active:
        yield from _end_access(name)
    return True


def delete(name: str) -> Script[bool]:
    """Delete a user."""
    if not (yield Fetch(DELETE, (name,))):
        return False
    yield Fetch(LEAVE_ALL, (name,))
    yield from _end_access(name)
    return True


def _end_access(name: str) -> Script[None]:
    """End all sessions of a user, and revoke the unused enrolment tokens that the user created."""
    yield Fetch(END_ALL, (name, b""))
    yield Fetch(REVOKE_TOKENS, (f"user:{name}",))


def sign_in(
    digest: bytes,
    name: str,
    proof: str,
    csrf: str,
    until: Instant,
    now: Instant,
    provider_members: tuple[Member, ...] | None,
    network: str | None = None,
) -> Script[bool]:
    """Add a session of an active user; return False if the user has changed since the authentication.

    `proof` is what was authenticated: the hash of the user's password, or the user's id at the identity provider.
    `provider_members` has the memberships that an identity provider determined, and is None for a user with a password.
    """
    if not (yield Fetch(SEEN, (name, now, proof))):
        return False
    members = None if provider_members is None else msgspec.json.encode(provider_members).decode()
    yield Fetch(ADD_SIGN_IN, (digest, name, csrf, now, until, members, network))
    return True


def is_signed_in_from(name: str, network: str, now: Instant) -> Script[bool]:
    """Return whether a user has an open session that was opened from a network."""
    rows = yield Fetch(FROM_NETWORK, (name, network, now))
    return bool(rows)


def signed_in(digest: bytes) -> Script[SignIn | None]:
    """Return the session of the cookie with this hash, or None if there is none or its user is not active."""
    rows = yield Fetch(SIGN_IN, (digest,))
    if not rows:
        return None
    name, csrf, seen_at, until, said = rows[0]
    users = yield Fetch(ONE, (name,))
    if not users or not users[0][1]:
        return None
    members = (yield from members_of(name)) if said is None else (yield from _existing(_members(said)))
    return SignIn(hash=digest, user=name, csrf=csrf, seen_at=seen_at, until=until, members=members)


def _existing(members: tuple[Member, ...]) -> Script[tuple[Member, ...]]:
    """Return the memberships in namespaces that were not deleted since the sign-in."""
    alive = set[int]()
    for member in members:
        alive |= {row[0] for row in (yield Fetch(ALIVE, (member.namespace,)))}
    return tuple(member for member in members if member.namespace in alive)


def mark_seen(digest: bytes, now: Instant, unless_since: Instant) -> Script[None]:
    """Record that a browser sent a request, unless a request after `unless_since` is recorded."""
    yield Fetch(SEE, (digest, now, unless_since))


def end(digest: bytes) -> Script[None]:
    """Delete a session."""
    yield Fetch(END, (digest,))


def use_flow(state: bytes, until: Instant, now: Instant) -> Script[bool]:
    """Mark a sign-in at an identity provider as finished; return False if it was finished before."""
    yield Fetch(OLD_FLOWS, (now,))
    return bool((yield Fetch(USE_FLOW, (state, until))))


def _user(row: Row, members: tuple[Member, ...]) -> User:
    return User(
        name=row[0], is_active=bool(row[1]), has_password=bool(row[2]), created_at=row[3], signed_in_at=row[4],
        subject=row[5], members=members,
    )  # fmt: skip


def _member(row: Row) -> Member:
    return Member(namespace=row[0], namespace_name=row[1], role=row[2], permissions=_permissions(row[3]))


def sweep(cutoffs: Cutoffs) -> Script[bool]:
    """Delete expired sessions, and expired sign-ins at an identity provider."""
    for statement in (OLD, OLD_FLOWS):
        yield Fetch(statement, (cutoffs.now,))
    return False
