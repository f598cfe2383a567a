"""Versions of jobs: reading, comparing and restoring them."""

from typing import Annotated

from msgspec import Meta

from horae.errors import Conflict, NotFound, Stale
from horae.model.base.view import CompleteList
from horae.model.definitions.job_view import JobDiffView, JobVersionView, JobView
from horae.server.access import EDIT, VIEW
from horae.server.call import ApiCall
from horae.server.reading.bodies import RequestBody
from horae.server.reply import Response, ok
from horae.server.route import API, CHANGES, get, post
from horae.server.routes.definitions.jobs import IF_MATCH
from horae.server.scopes import by_job


class Rollback(RequestBody, frozen=True, kw_only=True):
    """The version to restore."""

    version: Annotated[int, Meta(ge=1, le=2**31 - 1)]


@get(
    f"{API}/jobs/{{ref}}/versions", "jobs.versions", CompleteList[JobVersionView],
    access=VIEW, scope=by_job, refuses=(NotFound,),
)  # fmt: skip
async def versions(call: ApiCall) -> Response:
    """List a job's versions, newest first."""
    return ok(CompleteList(items=await call.node.definitions.jobs.versions(call.namespace, call.path("ref"))))


@get(
    f"{API}/jobs/{{ref}}/versions/{{version}}", "jobs.version", JobVersionView,
    access=VIEW, scope=by_job, refuses=(NotFound,),
)  # fmt: skip
async def version(call: ApiCall) -> Response:
    """Read one version of a job's definition."""
    return ok(await call.node.definitions.jobs.version(call.namespace, call.path("ref"), call.path("version")))


@get(
    f"{API}/jobs/{{ref}}/versions/{{version}}/diff/{{other}}", "jobs.diff", JobDiffView,
    access=VIEW, scope=by_job, refuses=(NotFound,),
)  # fmt: skip
async def diff(call: ApiCall) -> Response:
    """Compare two versions of a job, field by field."""
    before, after = call.path("version"), call.path("other")
    return ok(await call.node.definitions.jobs.diff(call.namespace, call.path("ref"), before, after))


@post(
    f"{API}/jobs/{{ref}}/rollback", "jobs.rollback", JobView,
    access=EDIT, scope=by_job, audit=CHANGES, headers=IF_MATCH, refuses=(NotFound, Conflict, Stale),
)  # fmt: skip
async def rollback(call: ApiCall, body: Rollback) -> Response:
    """Create a new version with the content of an earlier one."""
    ref = call.path("ref")
    job = await call.node.definitions.jobs.rollback(call.namespace, ref, body.version, if_match=call.if_match())
    return ok(job, version=job.version)
