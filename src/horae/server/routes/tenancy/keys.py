"""Keys: the credentials of people, programs and workers."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from horae.engine.tenancy.keys import NewKey
from horae.errors import Conflict, Forbidden, NotFound
from horae.model.base.duration import parse_duration
from horae.model.base.instant import format_instant, parse_instant
from horae.model.base.view import Page, Time, View, shown_time
from horae.model.tenancy.keys import StoredKey
from horae.model.tenancy.principal import Permission, Role
from horae.server.access import ADMIN
from horae.server.call import ApiCall
from horae.server.reading.bodies import Duration, Name, RequestBody, When
from horae.server.reading.queries import Paged, Query
from horae.server.reply import Response, encode, nothing, ok
from horae.server.route import API, REQUEST, delete, get, post
from horae.server.scopes import closed


class KeyView(View, frozen=True, kw_only=True):
    """A key. `key` is its text, which only the answer that creates the key shows."""

    key_id: str
    name: str
    namespace: str
    role: str
    permissions: Annotated[tuple[str, ...], Meta(description="Permissions in addition to those of the role.")] = ()
    queues: Annotated[tuple[str, ...], Meta(description="The queues that the key is for; empty means all.")] = ()
    jobs: Annotated[
        tuple[str, ...], Meta(description="Patterns for the names of the jobs that the key is for; empty means all.")
    ] = ()
    rate: Annotated[str | None, Meta(description="The rate limit of the key's requests to each server.")] = None
    created_at: Time
    expires_at: Time | None = None
    last_used_at: Time | None = None
    revoked_at: Time | None = None
    created_by: Annotated[str | None, Meta(description="The key that created this key.")] = None
    replaced_by: Annotated[str | None, Meta(description="The key that replaces this key after a rotation.")] = None
    key: str | UnsetType = UNSET

    @classmethod
    def of(cls, stored: StoredKey, namespace: str, key: str | UnsetType = UNSET) -> "KeyView":
        grant = stored.grant
        return cls(
            key_id=stored.id, name=stored.name, namespace=namespace, role=grant.role, permissions=grant.permissions,
            queues=grant.queues, jobs=grant.jobs, rate=stored.rate, created_at=format_instant(stored.created_at),
            expires_at=shown_time(stored.expires_at), last_used_at=shown_time(stored.last_used_at),
            revoked_at=shown_time(stored.revoked_at), created_by=grant.made_by, replaced_by=stored.replaced_by, key=key,
        )  # fmt: skip


JobPattern = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._*?\[\]!-]{1,128}$", description="A name with * and ?.")]


class KeyBody(RequestBody, frozen=True, kw_only=True):
    """A new key."""

    name: Annotated[str, Meta(min_length=1, max_length=128)]
    role: Annotated[Role, Meta(description="The role, which gives the key its permissions.")]
    permissions: Annotated[tuple[Permission, ...], Meta(description="Permissions in addition to the role's.")] = ()
    queues: Annotated[
        tuple[Name, ...], Meta(max_length=100, description="The only queues that the key is for; all by default.")
    ] = ()
    jobs: Annotated[
        tuple[JobPattern, ...],
        Meta(max_length=100, description='Patterns for the only jobs that the key is for, such as ["etl-*"].'),
    ] = ()
    rate: (
        Annotated[str, Meta(max_length=64, description='The rate limit for each server: "100/1s"; workers are exempt.')]
        | None
    ) = None
    expires_at: When | None = None


class Rotation(RequestBody, frozen=True, kw_only=True):
    """The overlap of a key's replacement."""

    overlap: Annotated[
        Duration, Meta(description="The time for which the old key stays valid, up to 90d; 0 ends it at once.")
    ] = "1d"


@get(f"{API}/keys", "keys.list", Page[KeyView], access=ADMIN, scope=closed, secret=True)
async def list_keys(call: ApiCall, query: Paged) -> Response:
    """List keys, including revoked and expired ones; their secrets are not stored."""
    stored = await call.node.tenancy.keys.list(call.namespace, query.cursor or "", query.limit + 1)
    items = [KeyView.of(key, call.who.namespace_name) for key in stored[: query.limit]]
    return ok(Page(items=items, next_cursor=items[-1].key_id if len(stored) > query.limit else None))


@post(
    f"{API}/keys", "keys.create", KeyView, access=ADMIN, scope=closed, audit=REQUEST, status=201, refuses=(Forbidden,)
)
async def create(call: ApiCall, body: KeyBody) -> Response:
    """Create a key; the answer has its text, which is shown only once, even if the request is repeated."""
    expires_at = None if body.expires_at is None else parse_instant(body.expires_at, field="expiresAt")
    new = await call.node.tenancy.keys.create(
        call.namespace, body.name, body.role, expires_at, permissions=body.permissions, queues=body.queues,
        jobs=body.jobs, rate=body.rate, by=call.who,
    )  # fmt: skip
    return _shown_once(call, new)


@post(
    f"{API}/keys/{{id}}/rotate", "keys.rotate", KeyView,
    access=ADMIN, scope=closed, audit=REQUEST, status=201, refuses=(NotFound, Conflict, Forbidden),
)  # fmt: skip
async def rotate(call: ApiCall, body: Rotation) -> Response:
    """Create a key that replaces another key, with the same permissions and expiry.

    Both keys are valid until the overlap ends. The answer has the text of the new key, which is shown only once, even
    if the request is repeated.
    """
    overlap = parse_duration(body.overlap, field="overlap")
    return _shown_once(call, await call.node.tenancy.keys.rotate(call.namespace, call.path("id"), overlap, by=call.who))


def _shown_once(call: ApiCall, new: NewKey) -> Response:
    view = KeyView.of(new.stored, call.who.namespace_name, new.text)
    reply = ok(view, 201, location=f"{API}/keys/{view.key_id}")
    reply.stored_body = encode(msgspec.structs.replace(view, key=msgspec.UNSET))
    return reply


class RevocationQuery(Query, frozen=True, kw_only=True):
    """The options of a revocation."""

    force: Annotated[bool, Meta(description="Revoke even the last key that administers the installation.")] = False


@delete(f"{API}/keys/{{id}}", "keys.revoke", access=ADMIN, scope=closed, audit=REQUEST, refuses=(NotFound, Conflict))
async def revoke(call: ApiCall, query: RevocationQuery) -> Response:
    """Revoke a key. The key, and browsers signed in with it, lose access to all servers within five seconds."""
    await call.node.tenancy.keys.revoke(call.namespace, call.path("id"), by=call.who, force=query.force)
    return nothing()
