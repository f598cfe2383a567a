"""Kinds of a template's fields: the job definition with placeholders, and its parameters."""

import re
from typing import Any

from horae.errors import BadInput
from horae.model.definitions.job import JOB
from horae.model.documents.schema import check_schema
from horae.model.fields.kinds import Custom
from horae.model.fields.values import an_object, refuse_unknown

NOT_FILLED = ("name", "template", "with")  # fields that only the jobs made from a template give
MOST_PARAMETERS = 100
HOW = 'Send {"parameters": {"region": {"type": "string"}}, "job": {"command": ["backup", "${with.region}"]}}.'
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


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
