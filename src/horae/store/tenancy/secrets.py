"""Secrets of namespaces: their names, and their values in sealed (encrypted) form."""

from collections.abc import Sequence

from msgspec import Struct

from horae.env import Instant
from horae.model.tenancy.secret_refs import SCHEME
from horae.store.base.shelves import Columns
from horae.store.definitions.jobs import FROM
from horae.store.script import Fetch, ForEach, Row, Script, Statement

COLUMNS = "name, version, created_at, updated_at, sealed"
SOME = Statement(
    "secrets",
    "SELECT s.name, s.version, s.created_at, s.updated_at, s.sealed FROM given"
    " JOIN secrets s ON s.namespace = given.namespace AND s.name = given.name",
)
PAGE = Statement(
    "secret_page", f"SELECT {COLUMNS} FROM secrets WHERE namespace = $1 AND name > $2 ORDER BY name LIMIT $3"
)
SET = Statement(
    "set_secret",
    "INSERT INTO secrets (namespace, name, version, sealed, created_at, updated_at) VALUES ($1, $2, 1, $3, $4, $4)"
    " ON CONFLICT (namespace, name) DO UPDATE SET version = secrets.version + 1, sealed = excluded.sealed,"
    f" updated_at = excluded.updated_at RETURNING {COLUMNS}",
)
DELETE = Statement("delete_secret", "DELETE FROM secrets WHERE namespace = $1 AND name = $2 RETURNING name")
ALL = Statement(
    "all_secrets",
    "SELECT namespace, name, sealed FROM secrets WHERE (namespace, name) > ($1, $2) ORDER BY namespace, name LIMIT $3",
)
RESEAL = Statement(
    "reseal_secret", "UPDATE secrets SET sealed = $4 WHERE namespace = $1 AND name = $2 AND sealed = $3 RETURNING name"
)
# The LIKE pattern finds definitions with a text that looks like a reference to the secret. The caller parses them to be
# sure.
MENTIONS = Statement(
    "jobs_that_mention",
    f"SELECT j.name, v.spec {FROM} WHERE j.namespace = $1 AND j.state <> 'deleted' AND v.spec LIKE $2 ORDER BY j.name",
)
HOOKS = Statement(
    "jobs_whose_hooks_mention",
    "SELECT j.name FROM hooks h JOIN jobs j ON j.id = h.job WHERE h.namespace = $1 AND j.state <> 'deleted'"
    " AND h.secrets LIKE $2 ORDER BY j.name",
)
PAGE_OF_ALL = 500


class SealedSecret(Struct, frozen=True, kw_only=True):
    """A secret with its sealed value."""

    name: str
    version: int
    created_at: Instant
    updated_at: Instant
    sealed: bytes


def _sealed(row: Row) -> SealedSecret:
    return SealedSecret(name=row[0], version=row[1], created_at=row[2], updated_at=row[3], sealed=bytes(row[4]))


def by_names(namespace: int, names: Sequence[str]) -> Script[dict[str, SealedSecret]]:
    """Return the secrets with these names; names without a secret are left out."""
    columns: Columns = (("namespace", "int"), ("name", "text"))
    return {row[0]: _sealed(row) for row in (yield ForEach(SOME, columns, [(namespace, name) for name in names]))}


def page(namespace: int, after: str, limit: int) -> Script[list[SealedSecret]]:
    """Return up to `limit` secrets after a name, in the order of their names."""
    return [_sealed(row) for row in (yield Fetch(PAGE, (namespace, after, limit)))]


def put(namespace: int, name: str, sealed: bytes, now: Instant) -> Script[SealedSecret]:
    """Write a secret; a former value is overwritten."""
    return _sealed((yield Fetch(SET, (namespace, name, sealed, now)))[0])


def delete(namespace: int, name: str) -> Script[bool]:
    """Delete a secret; return False if there is none."""
    return bool((yield Fetch(DELETE, (namespace, name))))


def all_after(namespace: int, name: str) -> Script[list[tuple[int, str, bytes]]]:
    """Return a page of the sealed secrets of all namespaces, ordered by namespace and name, after one of them."""
    return [(row[0], row[1], bytes(row[2])) for row in (yield Fetch(ALL, (namespace, name, PAGE_OF_ALL)))]


def reseal(namespace: int, name: str, before: bytes, after: bytes) -> Script[bool]:
    """Replace the sealed form of a value that has not changed; return False if the value was changed meanwhile."""
    return bool((yield Fetch(RESEAL, (namespace, name, before, after))))


def mentions(namespace: int, name: str) -> Script[list[tuple[str, str]]]:
    """Return the names and the current definitions (as JSON) of jobs that may refer to a secret."""
    return [(row[0], row[1]) for row in (yield Fetch(MENTIONS, (namespace, f"%{SCHEME}{name}%")))]


def verifies(namespace: int, name: str) -> Script[list[str]]:
    """Return the names of jobs with a webhook that verifies the signatures of requests with a secret."""
    return [row[0] for row in (yield Fetch(HOOKS, (namespace, f'%"{SCHEME}{name}"%')))]
