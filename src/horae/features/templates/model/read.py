"""Parsing of templates, and of a job's reference to its template."""

from typing import Any

import msgspec

from horae.errors import BadInput
from horae.features.templates.model.values import FIELDS, HOW, TEMPLATE, Body, check_expressions
from horae.model.definitions.job import JOB
from horae.model.fields.values import NAME, a_name, an_object, refuse_unknown, shallow

MOST_BYTES = 256 * 1024


def read_template(name: str, body: Any) -> tuple[str, Body]:
    """Parse a template into its name and body. Raises BadInput."""
    document = an_object(body, "body", HOW)
    shallow(document, "body")
    FIELDS.refuse_unknown(document)
    given = {field: value for field, value in document.items() if value is not None}
    if given.get("kind", "template") != "template":
        raise BadInput("This is not a template.", 'Write "kind": "template", or leave the kind out.', field="kind")
    template_name = a_name(given.get("name", name), "name", NAME)
    if name and template_name != name:
        raise BadInput(f'The template is named "{name}".', "Leave the name out, or give this name.", field="name")
    made: Body = TEMPLATE.make({field: value for field, value in given.items() if field in TEMPLATE.names})
    check_expressions(made.job, made.parameters)
    if len(msgspec.json.encode(made)) > MOST_BYTES:
        raise BadInput("The template is too large.", f"Keep it under {MOST_BYTES} bytes.", field="job")
    return template_name, made


def read_use(body: dict[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return the template named by a job, the values for it, and the job's own fields. Raises BadInput."""
    name = a_name(body["template"], "template", NAME)
    given = body.get("with")
    values = an_object({} if given is None else given, "with", 'Write the parameters\' values: {"region": "eu"}.')
    shallow(values, "with")
    own = {field: value for field, value in body.items() if field not in ("template", "with")}
    refuse_unknown(own, JOB.names, "A job")
    return name, values, own
