"""Apply: many definitions at once, all or none."""

from typing import Annotated, Any

from msgspec import Meta

from horae.engine.definitions.document_applier import MOST, Documents
from horae.engine.definitions.permits import check_job, outside_scope
from horae.errors import Conflict
from horae.model.definitions.applied_view import AppliedListView
from horae.server.access import EDIT
from horae.server.call import ApiCall
from horae.server.reading.bodies import RequestBody
from horae.server.reading.queries import DryRun
from horae.server.reply import Response, ok
from horae.server.route import API, REQUEST, post
from horae.server.scopes import Arguments

Definitions = Annotated[list[dict[str, Any]], Meta(extra_json_schema={"maxItems": MOST})]


class ApplyBody(RequestBody, frozen=True, kw_only=True):
    """Definitions in any order, each in the form of the POST request that creates one."""

    calendars: Definitions | None = None
    templates: Definitions | None = None
    jobs: Definitions | None = None


async def by_documents(call: ApiCall, arguments: Arguments) -> None:
    """Check the jobs in the body, and refuse calendars and templates. The engine checks the result."""
    body: ApplyBody = arguments["body"]
    if body.calendars or body.templates:
        raise outside_scope(call.who, "calendars and templates")
    for name in (one.get("name") for one in body.jobs or ()):
        if (
            isinstance(name, str)
            and (known := await call.node.definitions.jobs.named(call.namespace, name)) is not None
        ):
            check_job(known, name)


@post(f"{API}/apply", "apply.all", AppliedListView, access=EDIT, scope=by_documents, audit=REQUEST, refuses=(Conflict,))
async def apply(call: ApiCall, body: ApplyBody, query: DryRun) -> Response:
    """Create or change several calendars, templates and jobs, all or none.

    Definitions are matched by name. Definitions that the request leaves out stay unchanged. With `dryRun`, return the
    changes without making them.
    """
    documents = Documents(calendars=body.calendars or (), templates=body.templates or (), jobs=body.jobs or ())
    return ok(await call.node.definitions.document_applier.apply(call.namespace, documents, dry_run=query.dry_run))
