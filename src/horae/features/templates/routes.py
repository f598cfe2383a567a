"""Templates of jobs and workflows: definitions with parameters, and the jobs made from them."""

from typing import Annotated, Any

from msgspec import Meta

from horae.errors import Conflict, NotFound, Stale
from horae.features.templates.model.values import FIELDS
from horae.features.templates.model.view import TemplateView
from horae.features.templates.part import TemplatesPart
from horae.model.base.view import CompleteList, Page
from horae.model.fields.derived import body
from horae.server.access import EDIT, VIEW
from horae.server.call import ApiCall
from horae.server.reading.bodies import RequestBody
from horae.server.reading.queries import Paged, Query
from horae.server.reply import Response, nothing, ok
from horae.server.route import API, CHANGES, REQUEST, delete, get, post, put
from horae.server.scopes import closed

IF_MATCH = {"If-Match": "The ETag of the template that was read: the request is refused if it has changed since."}
TemplateBody = body(FIELDS, "TemplateBody", "The fields of a template.", RequestBody, needed=("job",))
NewTemplate = body(FIELDS, "NewTemplate", "A template, by name.", RequestBody, needed=("name", "job"))


class PutTemplate(Query, frozen=True, kw_only=True):
    """The choice between a change and a dry run."""

    dry_run: Annotated[bool, Meta(description="Change nothing; only report the changes.")] = False


def _shown(template: TemplateView, status: int = 200) -> Response:
    location = f"{API}/templates/{template.name}" if status == 201 else None
    return ok(template, status, location=location, version=template.version)


@post(
    f"{API}/templates", "templates.create", TemplateView,
    access=EDIT, scope=closed, audit=REQUEST, status=201, takes=NewTemplate, refuses=(Conflict,),
)  # fmt: skip
async def create(call: ApiCall, body: dict[str, Any]) -> Response:
    """Create a template."""
    return _shown(await call.node.part(TemplatesPart).templates.create(call.namespace, body), 201)


@get(f"{API}/templates", "templates.list", Page[TemplateView], access=VIEW, scope=closed)
async def list_templates(call: ApiCall, query: Paged) -> Response:
    """List templates, sorted by name."""
    return ok(
        await call.node.part(TemplatesPart).templates.list(call.namespace, limit=query.limit, cursor=query.cursor)
    )


@get(f"{API}/templates/{{name}}", "templates.get", TemplateView, access=VIEW, scope=closed, refuses=(NotFound,))
async def get_template(call: ApiCall) -> Response:
    """Read a template, and which jobs were made from it."""
    return _shown(await call.node.part(TemplatesPart).templates.get(call.namespace, call.path("name")))


@put(
    f"{API}/templates/{{name}}", "templates.put", {200: TemplateView, 201: TemplateView},
    access=EDIT, scope=closed, audit=CHANGES, takes=TemplateBody, headers=IF_MATCH, refuses=(Stale, Conflict),
)  # fmt: skip
async def put_template(call: ApiCall, body: dict[str, Any], query: PutTemplate) -> Response:
    """Create a template, or change it and all jobs made from it in one transaction; `affected` lists changed jobs."""
    view, change = await call.node.part(TemplatesPart).templates.put(
        call.namespace, call.path("name"), body, if_match=call.if_match(), dry_run=query.dry_run
    )
    return _shown(view, 201 if change == "created" and not query.dry_run else 200)


@delete(
    f"{API}/templates/{{name}}", "templates.delete",
    access=EDIT, scope=closed, audit=CHANGES, headers=IF_MATCH, refuses=(NotFound, Conflict, Stale),
)  # fmt: skip
async def delete_template(call: ApiCall) -> Response:
    """Delete a template that no job is made from."""
    await call.node.part(TemplatesPart).templates.delete(call.namespace, call.path("name"), if_match=call.if_match())
    return nothing()


@get(
    f"{API}/templates/{{name}}/versions", "templates.versions", CompleteList[TemplateView],
    access=VIEW, scope=closed, refuses=(NotFound,),
)  # fmt: skip
async def versions(call: ApiCall) -> Response:
    """List a template's versions, newest first."""
    return ok(
        CompleteList(items=await call.node.part(TemplatesPart).templates.versions(call.namespace, call.path("name")))
    )
