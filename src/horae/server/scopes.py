"""Scope checks: they limit a credential for some queues or jobs to these. Every route declares one of the checks.

The first sentence of each check's docstring is printed in docs/access.md. The checks look at names in a request. The
content of definitions and the jobs that a workflow runs are checked when they are written
(`engine/definitions/permits`).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from horae.engine.definitions.permits import check_job, outside_scope, scope_in_words
from horae.errors import Forbidden, NotFound
from horae.model.workflows.decisions.naming import owner_of
from horae.server.call import ApiCall

Arguments = Mapping[str, Any]


async def closed(call: ApiCall, arguments: Arguments) -> None:
    """Closed."""
    raise Forbidden(
        f"{call.route.method} {call.route.path} is closed to a credential with a scope. This credential is for"
        f" {scope_in_words(call.who)} only.",
        "Use a key without a scope: `horae keys create NAME --role ROLE`, without --queue and --jobs.",
    )


async def unscoped(call: ApiCall, arguments: Arguments) -> None:
    """Open. The request names no queue and no job."""


async def by_definition(call: ApiCall, arguments: Arguments) -> None:
    """Check the definition in the body. The engine does this wherever a definition is written."""


async def by_leaving_out(call: ApiCall, arguments: Arguments) -> None:
    """Leave out things outside the scope. The route itself does this."""


async def by_job(call: ApiCall, arguments: Arguments) -> None:
    """Check the job in the path."""
    await check_jobs(call, [call.path("ref")])


async def by_job_filter(call: ApiCall, arguments: Arguments) -> None:
    """Check `?job=`; or `?queue=`, if the key is for whole queues."""
    query = arguments["query"]
    queue = getattr(query, "queue", None)
    if query.job is not None:
        await check_jobs(call, [query.job])
    elif queue is None or call.who.jobs or queue not in call.who.queues:
        remedy = f"Ask for one job: ?job=NAME. This credential is for {scope_in_words(call.who)}."
        raise Forbidden("This credential may not list everything.", remedy)


async def by_execution(call: ApiCall, arguments: Arguments) -> None:
    """Check the job of the execution in the path."""
    await check_executions(call, [call.path("id")])


async def by_queue(call: ApiCall, arguments: Arguments) -> None:
    """Check the queue in the path; the key must be for whole queues."""
    parameters = call.scope["path_params"]
    name = parameters.get("name") or parameters["queue"]
    if call.who.jobs or name not in call.who.queues:
        raise outside_scope(call.who, f'the whole of queue "{name[:128]}"')


async def by_session(call: ApiCall, arguments: Arguments) -> None:
    """Check the queues of the session. A session with other queues is reported as not found."""
    known = await call.node.fleet.sessions.get(call.namespace, call.id())
    if call.who.jobs or not {*known.session.queues} <= {*call.who.queues}:
        raise NotFound("There is no such session for this key.", "Register with POST /api/v1/sessions.")


async def check_jobs(call: ApiCall, refs: Iterable[str]) -> None:
    """Refuse jobs outside of the credential's scope."""
    for ref in refs:
        check_job(await call.node.definitions.jobs.find(call.namespace, ref), ref)


async def check_executions(call: ApiCall, ids: Iterable[str]) -> None:
    """Refuse executions of jobs outside of the credential's scope."""
    for execution_id in ids:
        found = await call.node.work.executions.find(call.namespace, execution_id)
        queue = found.queue_name or call.node.base.directory.queues[found.execution.queue].name
        if not call.who.covers(owner_of(found.job_name), queue):
            raise outside_scope(call.who, f"execution {execution_id[:60]}")
