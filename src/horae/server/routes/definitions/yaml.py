"""YAML from the UI's editor or from scripts, converted to JSON that other routes accept."""

from typing import Any

from horae.errors import BadInput
from horae.model.base.view import View
from horae.model.documents.yaml_text import read_documents
from horae.server.access import VIEW
from horae.server.call import ApiCall
from horae.server.reading.bodies import RequestBody
from horae.server.reply import Response, ok
from horae.server.route import API, UNRECORDED, post
from horae.server.scopes import unscoped


class YamlBody(RequestBody, frozen=True, kw_only=True):
    """A YAML document."""

    text: str


class YamlView(View, frozen=True, kw_only=True):
    """The value of a YAML document. `places` has the line and column of each member by path, such as `schedule.cron`.

    Lines and columns are counted from 1.
    """

    value: Any
    places: dict[str, tuple[int, int]]


@post(f"{API}/yaml", "yaml.read", YamlView, access=VIEW, scope=unscoped, audit=UNRECORDED, repeats="by itself")
async def read(call: ApiCall, body: YamlBody) -> Response:
    """Parse a YAML document as `horae apply` does, and store nothing; an error has its line and column."""
    documents = await call.node.base.fair_access.compute(lambda: read_documents(body.text))
    if len(documents) != 1:
        what = "is empty" if not documents else f"has {len(documents)} documents"
        raise BadInput(f"The text {what}.", "Write one document.", field="text", line=1, column=1)
    return ok(YamlView(value=documents[0].value, places=documents[0].places))
