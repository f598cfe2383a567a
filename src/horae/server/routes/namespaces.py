"""Namespaces: what each may have and use, and what it used."""

from typing import Any

from horae.errors import NotFound
from horae.model.instant import parse_instant
from horae.model.quota_view import NamespaceView, QuotaView, UsageView
from horae.model.view import Page
from horae.server.call import Call
from horae.server.queries import UsageDays
from horae.server.quota_body import QuotaBody
from horae.server.reply import Reply, ok
from horae.server.route import API, get, put


@get(f"{API}/namespaces", "namespaces.list", Page[NamespaceView])
async def list_namespaces(call: Call) -> Reply:
    """List the namespaces that this credential is for."""
    return ok(Page(items=await call.node.quotas.list(call.namespace)))


@get(f"{API}/namespaces/{{name}}/quota", "namespaces.quota", QuotaView, refuses=(NotFound,))
async def get_quota(call: Call) -> Reply:
    """Read what a namespace may have and use."""
    return ok(await call.node.quotas.get(call.namespace, call.path("name")))


@put(f"{API}/namespaces/{{name}}/quota", "namespaces.set-quota", QuotaView, takes=QuotaBody, refuses=(NotFound,))
async def set_quota(call: Call, body: dict[str, Any]) -> Reply:
    """Say what a namespace may have and use; what is left out, or null, is without a bound."""
    return ok(await call.node.quotas.put(call.namespace, call.path("name"), body))


@get(f"{API}/namespaces/{{name}}/usage", "namespaces.usage", UsageView, refuses=(NotFound,))
async def usage(call: Call, query: UsageDays) -> Reply:
    """Tell what a namespace has now, and used by day: the last thirty days unless told otherwise."""
    since = None if query.from_ is None else parse_instant(query.from_, field="from")
    until = None if query.to is None else parse_instant(query.to, field="to")
    return ok(await call.node.quotas.usage(call.namespace, call.path("name"), since, until))
