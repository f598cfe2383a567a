"""Audit: proofs about a live store."""

from typing import Annotated

from msgspec import Meta, field

from horae.engine.audit import ExecutionsAudit
from horae.engine.audit_fires import FiresAudit
from horae.errors import NotFound
from horae.server.bodies import When
from horae.server.call import Call
from horae.server.queries import Query, Text
from horae.server.reply import Reply, ok
from horae.server.route import API, get, post


class FiresOf(Query, frozen=True, kw_only=True):
    """Whose fires, and which."""

    job: Annotated[Text, Meta(description="A job's name or id.")]
    since: Annotated[When, Meta(description="The first instant that counts, RFC 3339.")] = field(name="from")
    until: Annotated[When, Meta(description="The first instant that does not.")] = field(name="to")
    trigger: Annotated[Text, Meta(description="Only this trigger, by name.")] | None = None


@get(f"{API}/audit/executions", "audit.executions", ExecutionsAudit)
async def check(call: Call) -> Reply:
    """Check that each execution lies on one shelf, in one slice, with an owner."""
    return ok(await call.node.audit.executions())


@post(f"{API}/audit/executions", "audit.repair", ExecutionsAudit)
async def repair(call: Call) -> Reply:
    """Check, and queue again what has no owner."""
    return ok(await call.node.audit.executions(repair=True))


@get(f"{API}/audit/fires", "audit.fires", FiresAudit, refuses=(NotFound,))
async def check_fires(call: Call, query: FiresOf) -> Reply:
    """Check that each nominal fire of a job's triggers is covered by exactly one row of the ledger."""
    audits = call.node.fire_audits
    return ok(await audits.job(call.namespace, query.job, query.since, query.until, query.trigger))
