"""Many definitions applied at once, all or none, and YAML converted to the JSON that routes accept."""

from typing import Annotated, Any

from msgspec import Meta

from horae.engine.definitions.document_applier import MOST, Documents
from horae.engine.definitions.permits import check_job, outside_scope
from horae.errors import BadInput, Conflict
from horae.model.base.view import View
from horae.model.definitions.applied_view import AppliedDocumentsView
from horae.model.documents.yaml_text import read_documents
from horae.server.access import EDIT, VIEW
from horae.server.call import ApiCall
from horae.server.reading.bodies import RequestBody
from horae.server.reading.queries import DryRun
from horae.server.reply import Response, ok
from horae.server.route import API, REQUEST, UNRECORDED, post
from horae.server.scopes import Arguments, unscoped

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


@post(
    f"{API}/apply",
    "apply.all",
    AppliedDocumentsView,
    access=EDIT,
    scope=by_documents,
    audit=REQUEST,
    refuses=(Conflict,),
)
async def apply(call: ApiCall, body: ApplyBody, query: DryRun) -> Response:
    """Create or change several calendars, templates and jobs, all or none.

    Definitions are matched by name. Definitions that the request leaves out stay unchanged. With `dryRun`, return the
    changes without making them.
    """
    documents = Documents(calendars=body.calendars or (), templates=body.templates or (), jobs=body.jobs or ())
    return ok(await call.node.definitions.document_applier.apply(call.namespace, documents, dry_run=query.dry_run))


class YamlBody(RequestBody, frozen=True, kw_only=True):
    """A YAML document."""

    text: str


class YamlView(View, frozen=True, kw_only=True):
    """The value of a YAML document.

    `positions` has the line and column of each member by path, such as `schedule.cron`, counted from 1.
    """

    value: Any
    positions: dict[str, tuple[int, int]]


@post(f"{API}/yaml", "yaml.read", YamlView, access=VIEW, scope=unscoped, audit=UNRECORDED, idempotency="none")
async def read_yaml(call: ApiCall, body: YamlBody) -> Response:
    """Parse a YAML document as `horae apply` does, and store nothing; an error has its line and column."""
    documents = await call.node.base.fair_access.compute(lambda: read_documents(body.text))
    if len(documents) != 1:
        what = "is empty" if not documents else f"has {len(documents)} documents"
        raise BadInput(f"The text {what}.", "Write one document.", field="text", line=1, column=1)
    return ok(YamlView(value=documents[0].value, positions=documents[0].places))
