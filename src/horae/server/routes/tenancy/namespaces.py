"""Namespaces: tenants, their settings, quotas and usage."""

from typing import Annotated, Any

from msgspec import Meta, field

from horae.errors import Conflict, Forbidden, NotFound
from horae.model.admission.quota import QUOTA
from horae.model.admission.quota_view import QuotaView, UsageView
from horae.model.base.instant import parse_instant
from horae.model.base.view import CompleteList
from horae.model.fields import derived
from horae.model.tenancy.namespace import NAMESPACE
from horae.model.tenancy.namespace_view import NamespaceView
from horae.server.access import ADMIN, INSTALLATION, VIEW
from horae.server.call import ApiCall
from horae.server.reading.bodies import Name, RequestBody, When
from horae.server.reading.queries import Query
from horae.server.reply import Response, nothing, ok
from horae.server.route import API, CHANGES, REQUEST, delete, get, patch, post, put
from horae.server.scopes import closed


class UsageDays(Query, frozen=True, kw_only=True):
    """The selected days, in UTC."""

    since: Annotated[When, Meta(description="Only the day of this instant and later days.")] | None = field(
        default=None, name="from"
    )
    until: Annotated[When, Meta(description="Only days before this instant.")] | None = field(default=None, name="to")


class _Named(RequestBody, frozen=True, kw_only=True):
    name: Name


NamespaceBody = derived.body(
    NAMESPACE, "NamespaceBody", "The settings of a namespace; null resets a field to its default.", RequestBody
)
NewNamespace = derived.body(NAMESPACE, "NewNamespace", "A new namespace: its name and its settings.", _Named)


@get(f"{API}/namespaces", "namespaces.list", CompleteList[NamespaceView], access=VIEW, scope=closed)
async def list_namespaces(call: ApiCall) -> Response:
    """List the namespaces that this credential is for."""
    return ok(CompleteList(items=await call.node.tenancy.namespaces.list(call.who)))


@post(
    f"{API}/namespaces", "namespaces.create", NamespaceView,
    access=INSTALLATION, scope=closed, audit=REQUEST, status=201, takes=NewNamespace, refuses=(Conflict,),
)  # fmt: skip
async def create(call: ApiCall, body: dict[str, Any]) -> Response:
    """Create a namespace, with its first queue."""
    made = await call.node.tenancy.namespaces.create(body)
    return ok(made, 201, location=f"{API}/namespaces/{made.name}")


@get(f"{API}/namespaces/{{name}}", "namespaces.get", NamespaceView, access=VIEW, scope=closed, refuses=(NotFound,))
async def get_namespace(call: ApiCall) -> Response:
    """Read the settings of a namespace."""
    return ok(await call.node.tenancy.namespaces.get(call.who, call.path("name")))


@patch(
    f"{API}/namespaces/{{name}}", "namespaces.edit", NamespaceView,
    access=ADMIN, scope=closed, audit=CHANGES, takes=NamespaceBody, refuses=(NotFound, Forbidden),
)  # fmt: skip
async def edit(call: ApiCall, body: dict[str, Any]) -> Response:
    """Change settings of a namespace."""
    return ok(await call.node.tenancy.namespaces.edit(call.who, call.path("name"), body))


@delete(
    f"{API}/namespaces/{{name}}", "namespaces.delete",
    access=INSTALLATION, scope=closed, audit=CHANGES, refuses=(NotFound, Conflict),
)  # fmt: skip
async def delete_namespace(call: ApiCall) -> Response:
    """Delete an empty namespace; its keys end within five seconds."""
    await call.node.tenancy.namespaces.delete(call.who, call.path("name"))
    return nothing()


QuotaBody = derived.body(QUOTA, "QuotaBody", "The quotas of a namespace; an absent field has no limit.", RequestBody)


@get(f"{API}/namespaces/{{name}}/quota", "namespaces.quota", QuotaView, access=VIEW, scope=closed, refuses=(NotFound,))
async def get_quota(call: ApiCall) -> Response:
    """Read the quotas of a namespace."""
    found = await call.node.tenancy.namespaces.find(call.who, call.path("name"))
    return ok(await call.node.admission.quotas.get(found.id, found.name))


@put(
    f"{API}/namespaces/{{name}}/quota", "namespaces.set-quota", QuotaView,
    access=INSTALLATION, scope=closed, audit=CHANGES, takes=QuotaBody, refuses=(NotFound,),
)  # fmt: skip
async def set_quota(call: ApiCall, body: dict[str, Any]) -> Response:
    """Set the quotas of a namespace; an absent or null field has no limit."""
    found = await call.node.tenancy.namespaces.find(call.who, call.path("name"))
    return ok(await call.node.admission.quotas.put(found.id, found.name, body))


@get(f"{API}/namespaces/{{name}}/usage", "namespaces.usage", UsageView, access=VIEW, scope=closed, refuses=(NotFound,))
async def usage(call: ApiCall, query: UsageDays) -> Response:
    """Read the present and daily usage of a namespace: the last thirty days by default."""
    found = await call.node.tenancy.namespaces.find(call.who, call.path("name"))
    since = None if query.since is None else parse_instant(query.since, field="from")
    until = None if query.until is None else parse_instant(query.until, field="to")
    return ok(await call.node.admission.quotas.usage(found.id, found.name, since, until))
