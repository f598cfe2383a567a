"""Explanations: the reasons why an execution or a job does not run, and their remedies."""

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
    """Explain why an execution does not run: its closed gates in order, the remedy for each, and the probable start."""
    return ok(await call.node.work.explainer.execution(call.namespace, call.id()))


@get(f"{API}/jobs/{{ref}}/explain", "jobs.explain", JobExplanationView, access=VIEW, scope=by_job, refuses=(NotFound,))
async def explain_job(call: ApiCall) -> Response:
    """Explain why a job does not run: its triggers, its queue, its workers, and the gates of its executions."""
    return ok(await call.node.work.explainer.job(call.namespace, call.path("ref")))
