"""Enrolments: single-use tokens that a worker exchanges for an API key."""

from horae.env import Instant
from horae.model.tenancy.keys import KeyRights, StoredKey
from horae.store.script import Fetch, Script, Statement
from horae.store.tenancy.keys import add, grant_of, row_of

ADD = Statement(
    "add_enrolment",
    "INSERT INTO enrolments (hash, namespace, role, permissions, queues, jobs, made_by, until)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
)
OLD = Statement("old_enrolments", "DELETE FROM enrolments WHERE until <= $1")
USE = Statement(
    "use_enrolment",
    "DELETE FROM enrolments WHERE hash = $1"
    " RETURNING namespace, role, permissions, queues, jobs, made_by,"
    " (SELECT n.name FROM namespaces n WHERE n.id = namespace), until",
)


def add_enrolment(digest: bytes, rights: KeyRights, until: Instant, now: Instant) -> Script[None]:
    """Write the hash of a token with the rights that it grants, and delete expired tokens."""
    yield Fetch(OLD, (now,))
    yield Fetch(ADD, (digest, *row_of(rights), until))


def use(digest: bytes, key_id: str, key_hash: bytes, name: str, now: Instant) -> Script[StoredKey | None]:
    """Delete a token and write the API key for which it is exchanged. Return None if the token is not valid.

    `digest` is the hash of the token, `key` the hash of the new key's secret.
    """
    rows = yield Fetch(USE, (digest,))
    if not rows or rows[0][-1] <= now:
        return None
    made = StoredKey(id=key_id, hash=key_hash, name=name, grant=grant_of(rows[0][:-1]), created_at=now)
    yield from add(made)
    return made
