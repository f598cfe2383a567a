"""Limits and sequences of jobs: their keys, and the executions that hold the keys."""

from horae.errors import BadInput, NotFound
from horae.model.admission.held_key_view import HeldKeyView
from horae.model.base.view import Page
from horae.server.access import VIEW
from horae.server.call import ApiCall
from horae.server.reading.queries import Paged
from horae.server.reply import Response, ok
from horae.server.route import API, get
from horae.server.scopes import by_job


@get(
    f"{API}/jobs/{{ref}}/limits", "jobs.limits", Page[HeldKeyView],
    access=VIEW, scope=by_job, refuses=(NotFound, BadInput),
)  # fmt: skip
async def held(call: ApiCall, query: Paged) -> Response:
    """List the held keys of a job's limits and sequence, with the executions that hold them; at most 100 per page."""
    page = await call.node.admission.held_keys.page(
        call.namespace, call.path("ref"), limit=query.limit, cursor=query.cursor
    )
    return ok(page)
