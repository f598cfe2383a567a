"""How a credential that is for some queues or jobs only is kept to them: one table, by route.

What is not in it is closed to such a credential. What a definition would be, and what a workflow would run, is checked
where it is made (`engine/definitions/permits.py`); here is checked what a request names.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from horae.engine.base.refs import find_job
from horae.engine.definitions.permits import check_job, outside, scope_in_words
from horae.errors import Forbidden, NotFound
from horae.features.dead_letters.bodies import DeadLetterChoice
from horae.model.base.trace import UNTRACED
from horae.model.fleet.protocol import Register, Submit
from horae.model.workflows.decisions.naming import owner_of
from horae.server.call import Call
from horae.server.routes.definitions.apply import ApplyBody
from horae.server.routes.executions.submission import requests_of
from horae.server.routes.executions.submission_body import Submission

Arguments = Mapping[str, Any]
Check = Callable[[Call, Arguments], Awaitable[None]]


async def keep_within(call: Call, arguments: Arguments) -> None:
    """Refuse what a request names outside of its credential's scope."""
    check = SCOPES.get(call.route.name)
    if check is None:
        raise Forbidden(
            f"{call.route.method} {call.route.path} is closed to a credential that is for {scope_in_words(call.who)}"
            " only.",
            "Use a key without a scope: `horae keys create NAME --role ROLE`, without --queue and --jobs.",
        )
    await check(call, arguments)


async def _free(call: Call, arguments: Arguments) -> None:
    """open. It names nothing that a scope is about."""


async def _made(call: Call, arguments: Arguments) -> None:
    """what it makes. Checked where it is made: `engine/definitions/permits.py`."""


async def _left_out(call: Call, arguments: Arguments) -> None:
    """what is outside is left out. By the route itself."""


async def _job(call: Call, arguments: Arguments) -> None:
    """the job that the path names."""
    await _check_jobs(call, [call.path("ref")])


async def _job_of_query(call: Call, arguments: Arguments) -> None:
    """`?job=`, or `?queue=` if it is for whole queues."""
    query = arguments["query"]
    queue = getattr(query, "queue", None)
    if query.job is not None:
        await _check_jobs(call, [query.job])
    elif queue is None or call.who.jobs or queue not in call.who.queues:
        remedy = f"Ask for one job: ?job=NAME. This credential is for {scope_in_words(call.who)}."
        raise Forbidden("A list of everything is more than this credential is for.", remedy)


async def _execution(call: Call, arguments: Arguments) -> None:
    """the job of the execution."""
    await _check_executions(call, [call.path("id")])


async def _execution_of_query(call: Call, arguments: Arguments) -> None:
    """`?execution=`, its job."""
    query = arguments["query"]
    if query.execution is None or query.topics:
        raise Forbidden(
            "All events are more than this credential is for.",
            "Follow one execution: ?execution=ID, without topics.",
        )
    await _check_executions(call, [query.execution])


async def _submissions(call: Call, arguments: Arguments) -> None:
    """every job in the body."""
    body: Submission = arguments["body"]
    if body.job is not None:
        return await _check_jobs(call, [body.job])
    asked = requests_of(body, UNTRACED)
    await _check_jobs(call, dict.fromkeys(one.job for one in asked if isinstance(one, Submit)))
    return None


async def _letters(call: Call, arguments: Arguments) -> None:
    """the jobs of all `ids`, or the `job` of the filter."""
    body: DeadLetterChoice = arguments["body"]
    if body.ids is not None:
        await _check_executions(call, body.ids)
    elif body.filter is None or body.filter.job is None:
        remedy = f'Say which: {{"ids": [...]}} or {{"filter": {{"job": "..."}}}}. It is for {scope_in_words(call.who)}.'
        raise Forbidden("All dead letters are more than this credential is for.", remedy)
    else:
        await _check_jobs(call, [body.filter.job])


async def _queue(call: Call, arguments: Arguments) -> None:
    """the queue, if it is for whole queues."""
    parameters = call.scope["path_params"]
    name = parameters.get("name") or parameters["queue"]
    if call.who.jobs or name not in call.who.queues:
        raise outside(call.who, f'the whole of queue "{name[:128]}"')


async def _registration(call: Call, arguments: Arguments) -> None:
    """the worker's queues."""
    body: Register = arguments["body"]
    beyond = sorted({*body.queues} - {*call.who.queues})
    if call.who.jobs or beyond:
        remedy = f"Start it with --queue {' --queue '.join(call.who.queues)}, or with a key for its queues."
        raise Forbidden(f"This key is not for workers of the queues {', '.join(beyond)[:500]}.", remedy)


async def _session(call: Call, arguments: Arguments) -> None:
    """sessions of its queues. Others are not there for it."""
    known = await call.node.gateway.sessions.get(call.namespace, call.id())
    if call.who.jobs or not {*known.session.queues} <= {*call.who.queues}:
        raise NotFound("There is no such session for this key.", "Register with POST /api/v1/sessions.")


async def _documents(call: Call, arguments: Arguments) -> None:
    """the jobs that it changes, and no calendars and templates. What they become is checked where they are made."""
    body: ApplyBody = arguments["body"]
    if body.calendars or body.templates:
        raise outside(call.who, "calendars and templates")
    for name in (one.get("name") for one in body.jobs or ()):
        if isinstance(name, str) and (known := await call.node.store.job_named(call.namespace, name)) is not None:
            check_job(known.job, name)


async def _check_jobs(call: Call, refs: Iterable[str]) -> None:
    for ref in refs:
        job = (await find_job(call.node.store, call.namespace, ref)).job
        check_job(job, ref)


async def _check_executions(call: Call, ids: Iterable[str]) -> None:
    for id in ids:
        found = await call.node.executions.find(call.namespace, id)
        queue = found.queue_name or call.node.directory.queues[found.execution.queue].name
        if not call.who.covers(owner_of(found.job_name), queue):
            raise outside(call.who, f"execution {id[:60]}")


def _each(check: Check, *names: str) -> dict[str, Check]:
    return dict.fromkeys(names, check)


SCOPES: Mapping[str, Check] = {
    **_each(_free, "me.get", "me.sign-out", "me.code", "openapi.read", "openapi.protocol", "clock.get", "yaml.read"),
    **_each(_made, "jobs.create", "jobs.restore"),
    **_each(_documents, "apply.all"),
    **_each(_left_out, "jobs.list"),
    **_each(_job, "jobs.get", "jobs.replace", "jobs.edit", "jobs.delete", "jobs.pause", "jobs.resume", "jobs.rollback"),
    **_each(_job, "jobs.versions", "jobs.version", "jobs.diff", "jobs.explain", "jobs.trigger", "jobs.executions"),
    **_each(_job, "jobs.statistics", "jobs.days", "jobs.grid", "jobs.limits"),
    **_each(_job, "jobs.forget-results", "rollouts.get", "rollouts.put", "rollouts.promote", "rollouts.abort"),
    **_each(_job, "triggers.of-job", "triggers.add", "triggers.get", "triggers.edit", "triggers.remove"),
    **_each(_job, "triggers.pause", "triggers.resume", "hooks.get", "hooks.make", "hooks.end"),
    **_each(_job, "circuits.get", "circuits.open", "circuits.close", "circuits.reset"),
    **_each(_job_of_query, "executions.list", "triggers.list", "fires.list", "fires.count", "audit.fires"),
    **_each(_job_of_query, "dlq.list", "dlq.groups"),
    **_each(_execution, "executions.get", "executions.explain", "executions.cancel", "executions.graph"),
    **_each(_execution, "executions.pause", "executions.resume", "executions.signal", "executions.rerun"),
    **_each(_execution, "executions.approve", "executions.reject", "executions.skip-step", "executions.complete-step"),
    **_each(_execution, "executions.logs", "executions.log", "executions.attempts", "executions.artifacts"),
    **_each(_execution, "executions.artifact", "dlq.get"),
    **_each(_execution_of_query, "stream.follow"),
    **_each(_submissions, "executions.submit"),
    **_each(_letters, "dlq.retry", "dlq.discard"),
    **_each(_queue, "queues.get", "queues.pause", "queues.resume", "queues.drain", "queues.purge", "queues.hold"),
    **_each(_queue, "queues.release", "queues.window", "queues.remove-window", "autoscale.queue"),
    **_each(_registration, "sessions.register"),
    **_each(_session, "sessions.exchange", "sessions.submit", "sessions.remember", "sessions.steps", "sessions.wait"),
    **_each(_session, "sessions.close", "sessions.upload"),
}
