"""From the decoded body of POST /api/v1/jobs to a spec, or to an error that says what is wrong and where."""

import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct, structs

from horae.env import SECOND, Instant
from horae.errors import BadInput
from horae.model.admission.reading.circuit import FIELDS as CIRCUITS
from horae.model.admission.reading.circuit import read_circuit
from horae.model.admission.reading.limits import FIELDS as LIMITS
from horae.model.admission.reading.limits import read_limits
from horae.model.admission.reading.placement import FIELDS as PLACEMENT
from horae.model.admission.reading.placement import read_placement
from horae.model.base.duration import DAY, HOUR
from horae.model.definitions.job import DEFAULT_PRIORITY, Spec
from horae.model.definitions.reading.dependencies import read_dependencies
from horae.model.definitions.reading.interruption import FIELDS as INTERRUPTION
from horae.model.definitions.reading.interruption import read_interruption
from horae.model.definitions.reading.meeting import FIELDS as MEETINGS
from horae.model.definitions.reading.meeting import read_meetings
from horae.model.definitions.reading.privacy import check_sensitive, read_sensitive
from horae.model.definitions.reading.retry import parse_retry
from horae.model.definitions.reading.schedule import name_triggers, parse_trigger, parse_when, speaking_of
from horae.model.definitions.reading.task import PARSERS
from horae.model.definitions.reading.timeouts import read_timeouts, with_run
from horae.model.definitions.tasks import Task
from horae.model.executions.parcel import check_item
from horae.model.expressions.meter import defining
from horae.model.expressions.template import compile_template
from horae.model.fields.values import (
    NAME,
    a_duration,
    a_name,
    a_span,
    a_text,
    an_int,
    an_object,
    kind_of,
    one_of,
    refuse_unknown,
    shallow,
    tags,
)
from horae.model.tenancy.read_secrets import check_references
from horae.model.tenancy.secret_refs import read_secrets
from horae.model.triggers.decisions.when import When
from horae.model.triggers.dependency import LATE, Condition
from horae.model.workflows.decisions.values import Workflow
from horae.model.workflows.reading.workflow import check_owned, with_timeout

TASKS = tuple(PARSERS)
FIELDS = (
    *("name", "description", "schedule", "triggers", *TASKS, "params", "schema", "retries", "retry", "timeout"),
    *("timeouts", "grace", "priority", "queue", *PLACEMENT, "dependencies", "dependencyTimeout"),
    *("onDependencyTimeout", "tags", "pauseAfter", "within"),
    *("env", "secrets", "delivery", "keyFor", "sensitive", *INTERRUPTION),
    *MEETINGS,
    *LIMITS,
    *CIRCUITS,
    *("template", "with"),  # filled in before the rest is read
)
MOST_DESCRIPTION = 4096
MOST_ENV = 256
MOST_ENV_BYTES = 64 * 1024
MOST_BYTES = 256 * 1024  # of a whole definition; it travels to workers with every first grant
_DIALECTS = tuple(f"https://json-schema.org/draft/{draft}/schema" for draft in ("2019-09", "2020-12"))
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_ONE_TASK = (
    'Say what runs: {"command": "python report.py"}, {"python": "digest"}, {"http": {"url": "https://..."}} or'
    ' {"workflow": {"steps": [...]}}.'
)
_PRIORITY = f"Priorities run from 0 (least urgent) to 9 (most urgent); the default is {DEFAULT_PRIORITY}."


class Definition(Struct, frozen=True, kw_only=True):
    """What a request says about a job; `dependencies` are names or ids as given, still to be resolved."""

    spec: Spec
    whens: tuple[When, ...] = ()  # the schedule's first
    dependencies: tuple[str, ...] = ()
    conditions: dict[str, Condition] = {}  # of these, unless it is success
    derived: tuple[UUID, int] | None = None  # the template, and the version of it, that it was made from just now


def parse_definition(body: Any, *, namespace_name: str, created_at: Instant) -> Definition:
    """Read a job's definition or refuse it with BadInput; null stands for a field that is left out.

    `created_at` is when the job was made: intervals count from there.
    """
    with defining():
        return _definition(body, namespace_name, created_at)


def _definition(body: Any, namespace_name: str, created_at: Instant) -> Definition:
    given = an_object(body, "body", 'Send an object such as {"name": "report", "command": "python report.py"}.')
    shallow(given, "body")
    refuse_unknown(given, FIELDS, "A job")
    if given.get("with") is not None or given.get("template") is not None:
        how = 'Name it: {"template": "backup", "with": {...}}.'
        raise BadInput("Parameters are given to no template.", how, field="with")
    given = with_timeout(with_run({name: value for name, value in given.items() if value is not None}))
    if "name" not in given:
        raise BadInput("A job needs a name.", 'Add "name": "daily-report".', field="name")
    name = a_name(given["name"], "name", NAME)
    spec = _spec(name, given)
    check_references(spec)
    _check_whole(spec)
    if isinstance(spec.task, Workflow):
        check_owned(spec.task, lambda own: parse_definition({"name": "step", **own}, namespace_name="", created_at=0))
    whens = parse_whens(spec, key=f"{namespace_name}/{name}", created_at=created_at)
    check_sensitive(spec, whens)
    needed = read_dependencies(given.get("dependencies", []), name)
    conditions: dict[str, Condition] = {ref: word for ref, word in needed.items() if word != "success"}
    return Definition(spec=spec, whens=whens, dependencies=tuple(needed), conditions=conditions)


def parse_whens(spec: Spec, *, key: str, created_at: Instant, past: bool = False) -> tuple[When, ...]:
    """The triggers of a job: that of its schedule, and those it names. `key` is namespace/job, by which `H` spreads.

    With `past`, instants may have passed: what was accepted once is not refused now.
    """

    def made_at(value: Any) -> Instant:
        return 0 if past and isinstance(value, dict) and "at" in value else created_at

    whens = [] if spec.schedule is None else [parse_when(spec.schedule, key=key, created_at=made_at(spec.schedule))]
    for i, trigger in enumerate(spec.triggers):
        with speaking_of(f"triggers[{i}]"):
            whens.append(parse_trigger(trigger, key=key, created_at=made_at(trigger)))
    return tuple(whens)


def _spec(name: str, given: dict[str, Any]) -> Spec:
    late: Any = one_of(given.get("onDependencyTimeout", "fail"), "onDependencyTimeout", LATE)
    delivery: Any = one_of(given.get("delivery", "at-least-once"), "delivery", ("at-least-once", "at-most-once"))
    run, timeouts, total = read_timeouts(given)
    spec = Spec(
        name=name,
        task=_task(given),
        description=a_text(given.get("description", ""), "description", most=MOST_DESCRIPTION),
        schedule=given.get("schedule"),
        triggers=tuple(name_triggers(given.get("triggers", []))),
        params=_params(given.get("params", {})),
        schema=_schema(given.get("schema")),
        retry=structs.replace(parse_retry(given.get("retries"), given.get("retry")), within=total),
        timeout=run,
        timeouts=timeouts,
        pause_after=_pause_after(given.get("pauseAfter")),
        within=a_span(given["within"], "within") if "within" in given else None,
        grace=a_duration(given.get("grace", "10s"), "grace", 0, HOUR),
        priority=an_int(given.get("priority", DEFAULT_PRIORITY), "priority", 0, 9, _PRIORITY),
        queue=a_name(given.get("queue", "default"), "queue", NAME),
        **read_placement(given),
        dependency_timeout=a_duration(given.get("dependencyTimeout", "1d"), "dependencyTimeout", SECOND, 400 * DAY),
        on_dependency_timeout=late,
        tags=tags(given.get("tags", {})),
        env=_env(given.get("env", {})),
        secrets=read_secrets(given.get("secrets", [])),
        sensitive=read_sensitive(given.get("sensitive", False)),
        delivery=delivery,
        key_for=a_duration(given.get("keyFor", "1d"), "keyFor", SECOND, 400 * DAY),
        **read_meetings(given),
        **read_limits(given),
        **read_interruption(given),
        **read_circuit(given),
    )
    if delivery == "at-most-once" and spec.retry.most_tries:
        raise BadInput(
            f"An at-most-once job is never tried again, but retries is {spec.retry.most_tries}.",
            'Set "retries": 0, or leave "delivery" out.',
            field="retries",
        )
    return spec


def _task(given: dict[str, Any]) -> Task:
    named = [kind for kind in TASKS if kind in given]
    if len(named) > 1:
        raise BadInput(f"A job runs one thing, not {' and '.join(named)}.", _ONE_TASK, field=named[1])
    if not named:
        raise BadInput("Nothing says what this job runs.", _ONE_TASK, field="command")
    return PARSERS[named[0]](given[named[0]])


def _pause_after(value: Any) -> int | None:
    remedy = "It counts failed executions in a row: 1 to 1000."
    return None if value is None else an_int(value, "pauseAfter", 1, 1000, remedy)


def _params(value: Any) -> dict[str, Any]:
    params = an_object(value, "params", 'Write an object such as {"day": "2026-11-15"}.')
    _check_json(params, "params")
    return params


def _check_json(value: Any, field: str) -> None:
    """What was decoded from JSON encodes again, unless it is nested too deep or came from elsewhere."""
    try:
        encoded = msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError):
        raise BadInput(f"{field} is not JSON.", "Use texts, numbers, lists and objects.", field=field) from None
    check_item(encoded, field)


def _schema(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    schema = an_object(value, "schema", "Give the JSON schema of params.")
    _check_json(schema, "schema")
    if schema.get("type", "object") != "object":
        raise BadInput("schema does not describe an object.", 'params are one: set "type": "object".', field="schema")
    if any(not ref.startswith("#") for ref in _references(schema)):
        raise BadInput("schema refers to another document.", "Put what it refers to under $defs.", field="schema")
    return schema


def _references(value: Any) -> Iterator[str]:
    """Every $ref and its kin; a schema that can be read here needs no fetching anywhere."""
    if isinstance(value, list):
        for member in value:
            yield from _references(member)
    elif isinstance(value, dict):
        for name, member in value.items():
            if name in ("$ref", "$dynamicRef", "$recursiveRef", "$schema") and isinstance(member, str):
                yield "#" if name == "$schema" and member in _DIALECTS else member
            yield from _references(member)


def _env(value: Any) -> dict[str, str]:
    given = an_object(value, "env", 'Write {"LOG_LEVEL": "info"}.')
    if len(given) > MOST_ENV:
        raise BadInput(f"env has {len(given)} entries.", f"At most {MOST_ENV} are allowed.", field="env")
    for name, text in given.items():
        field = f"env.{name[:60]}"
        if not _ENV.fullmatch(name):
            raise BadInput(f"{name[:60]!r} is not a variable's name.", "Use letters, digits and _.", field=field)
        if name.upper().startswith("HORAE_"):
            raise BadInput(f"{name} is set by Horae itself.", "Choose a name without HORAE_.", field=field)
        if not isinstance(text, str):
            raise BadInput(f"{field} is {kind_of(text)}, not a text.", f'Write "{name}": "{text}".', field=field)
        compile_template(a_text(text, field, most=MOST_ENV_BYTES), field)
    size = sum(len(name) + len(text.encode()) for name, text in given.items())
    if size > MOST_ENV_BYTES:
        raise BadInput(f"env has {size} bytes.", f"At most {MOST_ENV_BYTES} are allowed.", field="env")
    return given


def _check_whole(spec: Spec) -> None:
    size = len(msgspec.json.encode(spec))
    if size > MOST_BYTES:
        remedy = f"At most {MOST_BYTES} are allowed; keep large values elsewhere and pass a reference."
        raise BadInput(f"This definition has {size} bytes.", remedy, field="params")
