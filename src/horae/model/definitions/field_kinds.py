"""Kinds of job fields with their own readers, and groups of fields that are read together."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from msgspec import structs

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.admission.placement.labels import read_needs, read_resources
from horae.model.base.duration import DAY
from horae.model.definitions.reading.retry import parse_retry, render_retry
from horae.model.definitions.reading.schedule import name_triggers
from horae.model.definitions.reading.timeouts import read_timeouts, render_timeouts
from horae.model.executions.parcel import check_item
from horae.model.expressions.template import compile_template
from horae.model.fields.kinds import Custom, Duration, SpanText, as_given
from horae.model.fields.table import Document, Field, Group
from horae.model.fields.values import MOST_WITHIN, a_text, an_object, kind_of
from horae.model.tenancy.secret_refs import SCHEME, read_secrets

MOST_ENV = 256
MOST_ENV_BYTES = 64 * 1024
_DIALECTS = tuple(f"https://json-schema.org/draft/{draft}/schema" for draft in ("2019-09", "2020-12"))
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


@dataclass(frozen=True, eq=False)
class JobField(Field):
    """A field of a job, with its meaning for steps, workflows and namespaces."""

    steps: Literal["own", "inherited", "never"] = "own"  # set by a step, only inherited from its job, or neither
    no_workflow: str = ""  # why a workflow cannot have it
    namespaced: bool = False  # whether a namespace may set a default for it


def _read_failures(given: Document, prefix: str) -> dict[str, Any]:
    run, timeouts, total = read_timeouts(given)
    policy = parse_retry(given.get("retries"), given.get("retry"))
    return {"retry": structs.replace(policy, within=total), "timeout": run, "timeouts": timeouts}


def _write_failures(spec: Any) -> dict[str, Any]:
    return {
        "retries": spec.retry.retries,
        "retry": render_retry(spec.retry),
        "timeout": None if spec.timeout is None else SPAN.write(spec.timeout),
        "timeouts": render_timeouts(spec.timeouts, spec.retry.within),
    }


def _read_json(value: Any, at: str, remedy: str) -> dict[str, Any]:
    """Read an object. Refuse one that is not JSON or is nested too deeply, because it could not be encoded again."""
    found = an_object(value, at, remedy)
    try:
        encoded = msgspec.json.encode(found)
    except (TypeError, ValueError, RecursionError):
        raise BadInput(f"{at} is not JSON.", "Use texts, numbers, lists and objects.", field=at) from None
    check_item(encoded, at)
    return found


def _read_params(value: Any, at: str) -> dict[str, Any]:
    return _read_json(value, at, 'Write an object such as {"day": "2026-11-15"}.')


def _read_schema(value: Any, at: str) -> dict[str, Any]:
    schema = _read_json(value, at, "Give the JSON schema of params.")
    if schema.get("type", "object") != "object":
        raise BadInput(f"{at} does not describe an object.", 'params are an object: set "type": "object".', field=at)
    for name, text in _references(schema):
        if name != "$schema" and not text.startswith("#"):
            raise BadInput(f"{at} refers to another document.", "Put what it refers to under $defs.", field=at)
        if name == "$schema" and text.removesuffix("#") not in _DIALECTS:
            remedy = f'Remove "$schema", or write the schema for {_DIALECTS[-1]}.'
            raise BadInput(f"{at} says that it is written for {text[:100]!r}.", remedy, field=at)
    return schema


def _references(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the name and text of every $ref and similar reference.

    A schema must not refer to other documents, which would have to be fetched.
    """
    if isinstance(value, list):
        for member in value:
            yield from _references(member)
    elif isinstance(value, dict):
        for name, member in value.items():
            if name in ("$ref", "$dynamicRef", "$recursiveRef", "$schema") and isinstance(member, str):
                yield name, member
            yield from _references(member)


def _read_env(value: Any, at: str) -> dict[str, str]:
    given = an_object(value, at, 'Write {"LOG_LEVEL": "info"}.')
    if len(given) > MOST_ENV:
        raise BadInput(f"{at} has {len(given)} entries.", f"At most {MOST_ENV} are allowed.", field=at)
    for name, text in given.items():
        field = f"{at}.{name[:60]}"
        if not _ENV.fullmatch(name):
            raise BadInput(f"{name[:60]!r} is not a variable's name.", "Use letters, digits and _.", field=field)
        if name.upper().startswith("HORAE_"):
            raise BadInput(f"{name} is set by Horae itself.", "Choose a name without HORAE_.", field=field)
        if not isinstance(text, str):
            raise BadInput(f"{field} is {kind_of(text)}, not a text.", f'Write "{name}": "{text}".', field=field)
        compile_template(a_text(text, field, most=MOST_ENV_BYTES), field)
    size = sum(len(name) + len(text.encode()) for name, text in given.items())
    if size > MOST_ENV_BYTES:
        raise BadInput(f"{at} has {size} bytes.", f"At most {MOST_ENV_BYTES} are allowed.", field=at)
    return given


def _plain_secrets(names: tuple[str, ...]) -> list[str]:
    return [name.removeprefix(SCHEME) for name in names]


_OBJECT = dict[str, Any]
TASK = Group()  # read and written by reading/task.py, which imports workflows, which in turn import these fields
COMMAND = Custom(as_given, str | list[str] | _OBJECT, "str | Sequence[str] | Mapping[str, Any]", out=Any)
PYTHON = Custom(as_given, str | _OBJECT, "str | Mapping[str, Any]", out=Any)
HTTP = Custom(as_given, str | _OBJECT, "str | Mapping[str, Any]", out=Any)
WORKFLOW = Custom(as_given, list[_OBJECT] | _OBJECT, "Sequence[Mapping[str, Any]] | Mapping[str, Any]", out=Any)
SCHEDULE = Custom(as_given, str | _OBJECT, "str | Mapping[str, Any]", out=Any)
TRIGGERS = Custom(
    lambda value, at: tuple(name_triggers(value)),
    list[str | _OBJECT],
    "Sequence[str | Mapping[str, Any]]",
    list,
    out=list[_OBJECT],
)
PARAMS = Custom(_read_params, _OBJECT, "Mapping[str, Any]", option="pairs")
SCHEMA = Custom(_read_schema, _OBJECT, "Mapping[str, Any]")
FAILURES = Group(_read_failures, _write_failures)
RETRY = Custom(as_given, list[SpanText] | _OBJECT, "Mapping[str, Any] | Sequence[Span] | RetryFunction", out=Any)
SPAN = Duration(1000, 365 * DAY)
WITHIN = Duration(SECOND, MOST_WITHIN)
TIMEOUTS = Custom(as_given, _OBJECT, "Mapping[str, Span]", out=dict[str, str])
NEEDS = Custom(
    read_needs, list[str] | _OBJECT, "Sequence[str] | Mapping[str, Any]", list, out=list[str], option="repeated"
)
RESOURCES = Custom(read_resources, dict[str, int | str], "Mapping[str, int | str]", out=dict[str, int], option="pairs")
ENV = Custom(_read_env, dict[str, str], "Mapping[str, str]", option="pairs")
SECRETS = Custom(lambda value, at: read_secrets(value), list[str], "Sequence[str]", _plain_secrets, option="repeated")
DEPENDENCIES = Group()  # read and written by reading/dependencies.py, because the store has ids and users write names
DEPENDS_ON = Custom(as_given, list[str | dict[str, str]], "Sequence[Any]", list, option="repeated")
MADE = Group()  # filled in by templates before the other fields are read
VALUES = Custom(as_given, _OBJECT, "Mapping[str, Any]", option="pairs")
