"""Secrets of a namespace: set and deleted here, referred to by jobs. No route ever returns a value."""

from typing import Annotated

from msgspec import Meta

from horae.errors import Conflict, MasterKeyMissing, NotFound
from horae.model.base.view import Page
from horae.model.tenancy.secret_view import SecretView
from horae.server.access import ADMIN, EDIT
from horae.server.call import ApiCall
from horae.server.reading.bodies import RequestBody
from horae.server.reading.queries import Paged, Query
from horae.server.reply import Response, nothing, ok
from horae.server.route import ACTION, API, delete, get, put
from horae.server.scopes import closed


class SecretBody(RequestBody, frozen=True, kw_only=True):
    """A secret's value: a text of 4 to 32768 characters."""

    value: Annotated[
        str, Meta(description="The value is stored encrypted, sent only with executions that need it, never shown.")
    ]


class DeleteSecretQuery(Query, frozen=True, kw_only=True):
    """The options of a deletion."""

    force: Annotated[
        bool, Meta(description="Delete the secret even if jobs refer to it; their executions then fail.")
    ] = False


@get(f"{API}/secrets", "secrets.list", Page[SecretView], access=EDIT, scope=closed, secret=True)
async def list_secrets(call: ApiCall, query: Paged) -> Response:
    """List secrets, sorted by name, without their values."""
    return ok(await call.node.base.secrets.list(call.namespace, limit=query.limit, cursor=query.cursor))


@get(f"{API}/secrets/{{name}}", "secrets.get", SecretView, access=EDIT, scope=closed, refuses=(NotFound,), secret=True)
async def get_secret(call: ApiCall) -> Response:
    """Read the properties of a secret, and the jobs that refer to it."""
    return ok(await call.node.base.secrets.get(call.namespace, call.path("name")))


@put(
    f"{API}/secrets/{{name}}", "secrets.put", {200: SecretView, 201: SecretView},
    access=ADMIN, scope=closed, audit=ACTION, refuses=(MasterKeyMissing,),
)  # fmt: skip
async def put_secret(call: ApiCall, body: SecretBody) -> Response:
    """Set a secret's value for executions that start from now on."""
    view, is_new = await call.node.base.secrets.put(call.namespace, call.path("name"), body.value)
    return ok(view, 201 if is_new else 200, location=f"{API}/secrets/{view.name}" if is_new else None)


@delete(
    f"{API}/secrets/{{name}}", "secrets.delete", access=ADMIN, scope=closed, audit=ACTION, refuses=(NotFound, Conflict)
)
async def delete_secret(call: ApiCall, query: DeleteSecretQuery) -> Response:
    """Delete a secret to which no job refers."""
    await call.node.base.secrets.delete(call.namespace, call.path("name"), force=query.force)
    return nothing()
