"""What a request says about a template, read or refused; and what a job says about the one it is made from."""

import re
from typing import Any

import msgspec

from horae.errors import BadInput
from horae.features.templates.model.values import Body, check_expressions
from horae.model.definitions.job import JOB
from horae.model.documents.schema import check_schema
from horae.model.fields.values import NAME, a_name, a_text, an_object, refuse_unknown, shallow

FIELDS = ("kind", "name", "description", "parameters", "job")
NOT_FILLED = ("name", "template", "with")  # a job says these itself
MOST_BYTES = 256 * 1024
MOST_PARAMETERS = 100
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_HOW = 'Send {"parameters": {"region": {"type": "string"}}, "job": {"command": ["backup", "${with.region}"]}}.'


def read_template(name: str, body: Any) -> tuple[str, Body]:
    """A template's name and what it says. Raises BadInput."""
    given = an_object(body, "body", _HOW)
    shallow(given, "body")
    refuse_unknown(given, FIELDS, "A template")
    given = {field: value for field, value in given.items() if value is not None}
    if given.get("kind", "template") != "template":
        raise BadInput("This is no template.", 'Say "kind": "template", or leave it out.', field="kind")
    called = a_name(given.get("name", name), "name", NAME)
    if name and called != name:
        raise BadInput(f'The template is called "{name}".', "Leave the name out, or give the same.", field="name")
    if "job" not in given:
        raise BadInput("A template needs a job.", _HOW, field="job")
    job = an_object(given["job"], "job", _HOW)
    refuse_unknown(job, [field for field in JOB.names if field not in NOT_FILLED], "The job", "job.")
    parameters = _parameters(given.get("parameters", {}))
    description = a_text(given.get("description", ""), "description", most=4096)
    made = Body(job=job, description=description, parameters=parameters)
    check_expressions(job, parameters)
    if len(msgspec.json.encode(made)) > MOST_BYTES:
        raise BadInput("The template is too large.", f"Keep it under {MOST_BYTES} bytes.", field="job")
    return called, made


def _parameters(value: Any) -> dict[str, dict[str, Any]]:
    given = an_object(value, "parameters", _HOW)
    if len(given) > MOST_PARAMETERS:
        raise BadInput(
            f"There are {len(given)} parameters.", f"At most {MOST_PARAMETERS} are allowed.", field="parameters"
        )
    for name, schema in given.items():
        field = f"parameters.{name[:64]}"
        if not _PARAMETER.fullmatch(name):
            raise BadInput(f"{name[:64]!r} is not the name of a parameter.", "Use letters, digits and _.", field=field)
        an_object(schema, field, 'A parameter is a JSON schema, such as {"type": "string", "default": "eu"}.')
        validator = check_schema(schema, field)
        problem = validator.problem(schema["default"]) if "default" in schema else None
        if problem is not None:
            raise BadInput(f"The default of {name!r}: {problem.message}.", "Give one that fits.", field=field)
    return given


def read_use(body: dict[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The template that a job is made from, the values for it, and what the job says itself. Raises BadInput."""
    name = a_name(body["template"], "template", NAME)
    values = an_object(body.get("with") or {}, "with", 'Write the parameters\' values: {"region": "eu"}.')
    shallow(values, "with")
    own = {field: value for field, value in body.items() if field not in ("template", "with")}
    refuse_unknown(own, JOB.names, "A job")
    return name, values, own
