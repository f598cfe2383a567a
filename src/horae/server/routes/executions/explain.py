"""Explanations: why an execution or a job does not run, and what would let it."""

from horae.errors import Gone, NotFound
from horae.model.executions.explain_view import ExplanationView, JobExplanationView
from horae.server.access import VIEW
from horae.server.call import ApiCall
from horae.server.reply import Response, ok
from horae.server.route import API, get
from horae.server.scopes import by_execution, by_job


@get(
    f"{API}/executions/{{id}}/explain", "executions.explain", ExplanationView,
    access=VIEW, scope=by_execution, refuses=(NotFound, Gone),
)  # fmt: skip
async def explain_execution(call: ApiCall) -> Response:
    """Say why an execution does not run: what holds it, in order, what opens each, and when it probably starts."""
    return ok(await call.node.work.explainer.execution(call.namespace, call.id()))


@get(f"{API}/jobs/{{ref}}/explain", "jobs.explain", JobExplanationView, access=VIEW, scope=by_job, refuses=(NotFound,))
async def explain_job(call: ApiCall) -> Response:
    """Say why a job does not run: its triggers, its queue, its workers, and what holds its executions."""
    return ok(await call.node.work.explainer.job(call.namespace, call.path("ref")))
