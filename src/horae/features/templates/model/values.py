"""Templates of jobs and workflows: a definition with parameters, filled in once, when a job is made from it.

A placeholder such as `${with.region}` is then replaced by its value; other expressions (`${params.day}`, a shell's
`${HOME}`) stay unchanged until the job runs. If a text consists of one placeholder only, it becomes the value itself,
of whatever type. The text of a command is split into words before its placeholders are filled in, so a value with
spaces stays one word. A shell line must not have placeholders.
"""

import re
import shlex
from collections.abc import Iterator
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.errors import BadInput, HoraeError
from horae.model.definitions.job import JOB
from horae.model.definitions.reading.patch import merge_definition
from horae.model.definitions.template_use import TemplateUse
from horae.model.documents.schema import check_schema
from horae.model.expressions.meter import current_meter, definition_budget
from horae.model.expressions.template import Expression, TemplateError, as_text, charged, expression_end
from horae.model.fields.kinds import Choice, Custom, Name, Text
from horae.model.fields.table import Field, JoinedRows, Table
from horae.model.fields.values import NAME, a_name, an_object, refuse_unknown, shallow

NOT_FILLED = ("name", "template", "with")  # fields that only the jobs made from a template give
MOST_PARAMETERS = 100
HOW = 'Send {"parameters": {"region": {"type": "string"}}, "job": {"command": ["backup", "${with.region}"]}}.'
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
SCOPE = frozenset({"with"})
_USES_PARAMETER = re.compile(r"(?<![\w.\"'])with\s*[.\[]")
_COMMAND = re.compile(r"\.command(\.argv)?$")
_SHELL = re.compile(r"\.command\.shell$")
# Fields with the user's own data, in which a member named `command` is not the command of the job.
_DATA = re.compile(r"\.(params|env|http|tags|schema|schedule|triggers|with)(\.|\[|$)")
_PLACE = re.compile("\0([0-9]+)\0")
_PARAMETER_NAME = re.compile(r"(?<![\w.\"'])with\s*(?:\.\s*(\w+)|\[\s*[\"']([^\"']+)[\"']\s*\])")
MOST_BYTES = 256 * 1024


def _read_filled(value: Any, at: str) -> dict[str, Any]:
    job = an_object(value, at, HOW)
    refuse_unknown(job, [field for field in JOB.names if field not in NOT_FILLED], "The job", f"{at}.")
    return job


def _read_parameters(value: Any, at: str) -> dict[str, dict[str, Any]]:
    given = an_object(value, at, HOW)
    if len(given) > MOST_PARAMETERS:
        raise BadInput(f"There are {len(given)} parameters.", f"At most {MOST_PARAMETERS} are allowed.", field=at)
    for name, schema in given.items():
        field = f"{at}.{name[:64]}"
        if not _PARAMETER.fullmatch(name):
            remedy = "Use letters, digits and _, and begin with a letter or _."
            raise BadInput(f"{name[:64]!r} is not a valid name of a parameter.", remedy, field=field)
        an_object(schema, field, 'A parameter is a JSON schema, such as {"type": "string", "default": "eu"}.')
        validator = check_schema(schema, field)
        problem = validator.problem(schema["default"]) if "default" in schema else None
        if problem is not None:
            remedy = "Give a default that fits the schema."
            raise BadInput(f"The default of {name!r}: {problem.message}.", remedy, field=field)
    return given


FILLED = Custom(_read_filled, dict[str, Any], "Mapping[str, Any]")
PARAMETERS = Custom(_read_parameters, dict[str, Any], "Mapping[str, Mapping[str, Any]]")


class Body(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The body of a template: its parameters, each with a JSON schema, and the definition with placeholders."""

    job: Annotated[
        dict[str, Any],
        Field(
            FILLED, "A job's definition without its name, with placeholders such as `${with.region}` in texts.",
            example={"command": ["backup", "${with.region}"]},
        ),
    ]  # fmt: skip
    description: Annotated[str, Field(Text(4096), "What it is for.")] = ""
    parameters: Annotated[
        dict[str, dict[str, Any]],
        Field(
            PARAMETERS, "A JSON schema for each parameter. Jobs may omit parameters whose schema has a default.",
            example={"region": {"type": "string", "default": "eu"}},
        ),
    ] = {}  # fmt: skip

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the object with the values of all parameters; those without a default are required."""
        required = [name for name, schema in self.parameters.items() if "default" not in schema]
        return {
            "type": "object", "properties": self.parameters, "required": required, "additionalProperties": False,
        }  # fmt: skip

    @property
    def defaults(self) -> dict[str, Any]:
        return {name: schema["default"] for name, schema in self.parameters.items() if "default" in schema}


class _Head(Struct, kw_only=True):
    kind: Annotated[str, Field(Choice(("template",)), "The kind of an applied document: a template.", sdk=False)] = (
        "template"
    )
    name: Annotated[str, Field(Name(), "Its name, unique among templates.", example="backup", sdk=False)]


TEMPLATE = Table(Body, "A template")
FIELDS = JoinedRows((Table(_Head, "A template"), TEMPLATE), "A template")  # all fields of requests


class JobTemplate(Struct, frozen=True, kw_only=True):
    """A named template with its current version."""

    id: UUID
    namespace: int
    name: str
    version: int
    body: Body
    created_at: Instant
    updated_at: Instant

    def fill(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the definition with its placeholders replaced by these values and the defaults. Raises BadInput."""
        problem = check_schema(self.body.schema, "parameters").problem(values)
        if problem is not None:
            where = ".".join(["with", *problem.path])
            remedy = (
                f"Its parameters: {', '.join(self.body.parameters) or 'none'}. See `horae templates show {self.name}`."
            )
            raise BadInput(f'Template "{self.name}": {where}: {problem.message}.', remedy, field=where)
        with definition_budget():
            filled: dict[str, Any] = fill_placeholders(self.body.job, {**self.body.defaults, **values}, "job")
        return filled

    def derive(self, name: str, values: dict[str, Any], own: dict[str, Any]) -> tuple[dict[str, Any], TemplateUse]:
        """Return the complete definition of a job, and the record of its template.

        `own` are the fields that the job itself gives; they are merged over those of the template.
        """
        whole = merge_definition(self.fill(values), {field: value for field, value in own.items() if field != "name"})
        return {**whole, "name": name}, TemplateUse(template=self.id, name=self.name, values=values, own=own)


def fill_placeholders(value: Any, values: dict[str, Any], field: str) -> Any:
    """Replace every placeholder in the texts of a JSON value; `field` is the path of the value."""
    if isinstance(value, str):
        return _words(value, values, field) if _is_command(value, field) else _text(value, values, field)
    if isinstance(value, dict):
        return {key: fill_placeholders(member, values, f"{field}.{key}") for key, member in value.items()}
    if isinstance(value, list):
        return [fill_placeholders(element, values, f"{field}[{i}]") for i, element in enumerate(value)]
    return value


def _text(text: str, values: dict[str, Any], field: str) -> Any:
    pieces: list[str] = []
    at = 0
    for start, end in _expressions(text):
        found = _value(text[start + 2 : end], values, field)
        if (start, end) == (0, len(text) - 1):
            return found
        pieces += [text[at:start], as_text(found)]
        at = end + 1
    return "".join([*pieces, text[at:]])


def _is_command(text: str, field: str) -> bool:
    """Return whether a text is a command line that contains placeholders, and is more than just one placeholder."""
    spots = list(_expressions(text)) if _COMMAND.search(field) and not _DATA.search(field) else []
    return bool(spots) and spots[0] != (0, len(text) - 1)


def _words(text: str, values: dict[str, Any], field: str) -> list[str]:
    """Split a command into words, and then fill in each word."""
    found: list[str] = []
    pieces, at = [], 0
    for start, end in _expressions(text):
        pieces += [text[at:start], f"\0{len(found)}\0"]
        found.append(as_text(_value(text[start + 2 : end], values, field)))
        at = end + 1
    try:
        words = shlex.split("".join([*pieces, text[at:]]))
    except ValueError as error:
        remedy = 'Close the quotation, or give a list: ["echo", "it\'s"].'
        raise BadInput(f"{field} cannot be split into words: {error}.", remedy, field=field) from None
    return [_PLACE.sub(lambda place: found[int(place[1])], word) for word in words]


def _expressions(text: str) -> Iterator[tuple[int, int]]:
    """Yield the positions of the `$` and the `}` of each placeholder: an expression over the template's parameters."""
    at = 0
    while (start := text.find("${", at)) >= 0:
        at = start + 2
        end = expression_end(text, at)
        escaped = start > 0 and text[start - 1] == "$"
        if not escaped and end >= 0 and _USES_PARAMETER.search(text[at:end]):
            yield start, end
            at = end + 1


def _value(source: str, values: dict[str, Any], field: str) -> Any:
    try:
        return charged(Expression(source, field, SCOPE).value({"with": values}), current_meter())
    except TemplateError as error:
        remedy = "Give a value for the parameter, or a default."
        raise BadInput(f"{error}.", remedy, field=field) from None


def check_expressions(value: Any, known: dict[str, Any], field: str = "job") -> None:
    """Refuse placeholders that can never be filled in: invalid expressions, and those with unknown parameters."""
    if isinstance(value, dict):
        for key, member in value.items():
            check_expressions(member, known, f"{field}.{key}")
    elif isinstance(value, list):
        for i, element in enumerate(value):
            check_expressions(element, known, f"{field}[{i}]")
    elif isinstance(value, str):
        for start, end in _expressions(value):
            if _SHELL.search(field) and not _DATA.search(field):
                raise BadInput(
                    f"A shell line cannot have placeholders, and this one has {value[start : end + 1]}.",
                    'Pass the value as an environment variable, "env": {"REGION": "${with.region}"}, and write'
                    ' "$REGION", including the quotes, in the shell line. Or give the command as a list of arguments,'
                    " which runs without a shell.",
                    field=field,
                )
            source = value[start + 2 : end]
            Expression(source, field, SCOPE)
            for name in (first or second for first, second in _PARAMETER_NAME.findall(source)):
                if name not in known:
                    names = ", ".join(known) or "none"
                    raise BadInput(
                        f"${{{source.strip()}}} refers to an unknown parameter: {name!r}.",
                        f"The template's parameters: {names}.",
                        field=field,
                    )


def read_template(name: str, body: Any) -> tuple[str, Body]:
    """Parse a template into its name and body. Raises BadInput."""
    document = an_object(body, "body", HOW)
    shallow(document, "body")
    FIELDS.refuse_unknown(document)
    given = {field: value for field, value in document.items() if value is not None}
    if given.get("kind", "template") != "template":
        raise BadInput("This is not a template.", 'Write "kind": "template", or remove `kind`.', field="kind")
    template_name = a_name(given.get("name", name), "name", NAME)
    if name and template_name != name:
        raise BadInput(f'The template is named "{name}".', "Remove `name`, or give this name.", field="name")
    made: Body = TEMPLATE.make({field: value for field, value in given.items() if field in TEMPLATE.names})
    check_expressions(made.job, made.parameters)
    try:
        check_schema(made.schema, "parameters")
    except HoraeError as error:
        remedy = "Write the schema of each parameter without references to its own parts, and keep all of them small."
        raise BadInput(error.detail, remedy, field="parameters") from None
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
