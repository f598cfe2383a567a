"""Audit: proofs about a live store."""

from horae.engine.audit import ExecutionsAudit
from horae.server.call import Call
from horae.server.reply import Reply, ok
from horae.server.route import API, get, post


@get(f"{API}/audit/executions", "audit.executions", ExecutionsAudit)
async def check(call: Call) -> Reply:
    """Check that each execution lies on one shelf, in one slice, with an owner."""
    return ok(await call.node.audit.executions())


@post(f"{API}/audit/executions", "audit.repair", ExecutionsAudit)
async def repair(call: Call) -> Reply:
    """Check, and queue again what has no owner."""
    return ok(await call.node.audit.executions(repair=True))
