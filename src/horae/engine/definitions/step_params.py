"""Checks of steps' params against the schemas of their jobs, as far as the params are known before anything runs."""

from difflib import get_close_matches
from typing import Any

from horae.errors import BadInput
from horae.model.definitions.job import Spec
from horae.model.documents.schema import check_schema
from horae.model.workflows.decisions.expressions import IN_FOREACH, OF_ERROR, whole_expression
from horae.model.workflows.decisions.kinds import KINDS, refuse_kind
from horae.model.workflows.decisions.values import Call

_NOT_TEXTS = {"integer": "a whole number", "number": "a number", "boolean": "true or false", "array": "a list"}
_KNOWN = IN_FOREACH | OF_ERROR
_WHOLE = 'An expression without text around it keeps the type of its value: "${steps.extract.result.rows}".'


def check_params(call: Call, spec: Spec, *, each: bool) -> None:
    """Refuse params of a step that cannot fit the schema of its job.

    `each` says that the step is a foreach: its items are the params, unless the step gives params.
    """
    if spec.schema is None or (call.params is None and (each or call.inline)):
        return
    given, schema = call.params or {}, spec.schema
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in given and name not in spec.params:
            remedy = f'Add "params": {{"{name}": ...}}.'
            raise BadInput(f'params lacks "{name}", which job "{spec.name}" needs.', remedy, field="params")
    if schema.get("additionalProperties") is False:
        for name in given:
            if name not in known:
                near = get_close_matches(name, list(known), n=1)
                remedy = f'Did you mean "{near[0]}"?' if near else f"It takes {', '.join(known) or 'none'}."
                detail = f'Job "{spec.name}" has no parameter "{name[:60]}".'
                raise BadInput(detail, remedy, field=f"params.{name[:60]}")
    _check_values({name: value for name, value in given.items() if name in known}, schema, spec.name)


def _check_values(given: dict[str, Any], schema: dict[str, Any], job: str) -> None:
    literal = {name: value for name, value in given.items() if not _has_expression(value)}
    loose = {key: part for key, part in schema.items() if key != "required"}
    problem = check_schema(loose, "schema").problem(literal)
    if problem is not None:
        where = ".".join(["params", *problem.path])
        raise BadInput(f'{where} of job "{job}": {problem.message}.', "See the job's `schema`.", field=where)
    for name, value in given.items():
        wanted = schema["properties"][name]
        if not isinstance(value, str) or "${" not in value or not isinstance(wanted, dict):
            continue
        word = _NOT_TEXTS.get(str(wanted.get("type")))
        if word is not None and _is_mixed(value):
            detail = f'params.{name} is always a text, but job "{job}" needs {word}.'
            raise BadInput(detail, _WHOLE, field=f"params.{name}")
        if not _is_mixed(value):
            expression = whole_expression(value, f"params.{name}", _KNOWN, _WHOLE)
            refuse_kind(expression, f"params.{name}", _kinds(wanted.get("type")), f'See the `schema` of job "{job}".')


def _kinds(declared: Any) -> list[str]:
    """Return the kinds that a type of a schema allows; all kinds if there is none."""
    named = [declared] if isinstance(declared, str) else declared if isinstance(declared, list) and declared else KINDS
    return [*named, "integer"] if "number" in named else list(named)


def _has_expression(value: Any) -> bool:
    if isinstance(value, str):
        return "${" in value
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(map(_has_expression, members))


def _is_mixed(text: str) -> bool:
    """Return whether a text contains an expression together with other text, or several expressions."""
    stripped = text.strip()
    return "${" in text and not (stripped.startswith("${") and stripped.endswith("}") and stripped.count("${") == 1)
