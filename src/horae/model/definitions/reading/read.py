"""The parser of job definitions: from the decoded body of POST /api/v1/jobs to a spec, or to a precise error."""

from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.errors import BadInput
from horae.model.definitions.job import JOB, Spec
from horae.model.definitions.reading.dependencies import read_dependencies
from horae.model.definitions.reading.rules import RULES, check_sensitive
from horae.model.definitions.reading.schedule import errors_under, parse_trigger, parse_when
from horae.model.definitions.reading.task import PARSERS
from horae.model.definitions.reading.timeouts import with_run
from horae.model.definitions.tasks import Task
from horae.model.expressions.meter import definition_budget
from horae.model.fields.values import an_object, shallow
from horae.model.triggers.decisions.named_trigger import NamedTrigger
from horae.model.triggers.dependency import Condition
from horae.model.workflows.decisions.values import Workflow
from horae.model.workflows.reading.workflow import check_owned, with_timeout

TASKS = tuple(PARSERS)
MOST_BYTES = 256 * 1024  # bytes of a whole definition, which is sent to workers together with grants
_ONE_TASK = (
    'Say what runs: {"command": "python report.py"}, {"python": "digest"}, {"http": {"url": "https://..."}} or'
    ' {"workflow": {"steps": [...]}}.'
)


class Definition(Struct, frozen=True, kw_only=True):
    """A parsed definition of a job; `dependencies` are names or ids as given, not yet resolved."""

    spec: Spec
    whens: tuple[NamedTrigger, ...] = ()  # its triggers; that of `schedule` is first
    dependencies: tuple[str, ...] = ()
    conditions: dict[str, Condition] = {}  # conditions of dependencies, except `success`
    derived: tuple[UUID, int] | None = None  # the template, and its version, from which it was rendered just now


def parse_definition(body: Any, *, namespace_name: str, created_at: Instant) -> Definition:
    """Read a job's definition. A null field counts as left out. Raises BadInput.

    `created_at` is when the job was created, the instant from which intervals count.
    """
    with definition_budget():
        return _definition(body, namespace_name, created_at)


def _definition(body: Any, namespace_name: str, created_at: Instant) -> Definition:
    given = an_object(body, "body", 'Send an object such as {"name": "report", "command": "python report.py"}.')
    shallow(given, "body")
    JOB.refuse_unknown(given)
    if given.get("with") is not None or given.get("template") is not None:
        how = 'Name the template: {"template": "backup", "with": {...}}.'
        raise BadInput("The parameters in `with` need a template.", how, field="with")
    given = with_timeout(with_run({name: value for name, value in given.items() if value is not None}))
    if "name" not in given:
        raise BadInput("A job needs a name.", 'Add "name": "daily-report".', field="name")
    spec = Spec(task=_task(given), **JOB.read(given))
    for check in RULES:
        check(spec)
    _check_whole(spec)
    if isinstance(spec.task, Workflow):
        check_owned(spec.task, lambda own: parse_definition({"name": "step", **own}, namespace_name="", created_at=0))
    whens = parse_whens(spec, key=f"{namespace_name}/{spec.name}", created_at=created_at)
    check_sensitive(spec, whens)
    needed = read_dependencies(given.get("dependencies", []), spec.name)
    conditions: dict[str, Condition] = {ref: word for ref, word in needed.items() if word != "success"}
    return Definition(spec=spec, whens=whens, dependencies=tuple(needed), conditions=conditions)


def parse_whens(spec: Spec, *, key: str, created_at: Instant, past: bool = False) -> tuple[NamedTrigger, ...]:
    """Read the triggers of a job: its schedule, and the named triggers.

    `H` in a cron expression stands for a value computed from a hash of `key` ("namespace/job"). With `past`, triggers
    may have instants in the past, because they were accepted earlier.
    """

    def made_at(value: Any) -> Instant:
        return 0 if past and isinstance(value, dict) and "at" in value else created_at

    whens = [] if spec.schedule is None else [parse_when(spec.schedule, key=key, created_at=made_at(spec.schedule))]
    for i, trigger in enumerate(spec.triggers):
        with errors_under(f"triggers[{i}]"):
            whens.append(parse_trigger(trigger, key=key, created_at=made_at(trigger)))
    return tuple(whens)


def _task(given: dict[str, Any]) -> Task:
    named = [kind for kind in TASKS if kind in given]
    if len(named) > 1:
        raise BadInput(f"A job runs one thing, not {' and '.join(named)}.", _ONE_TASK, field=named[1])
    if not named:
        raise BadInput("This job has no task.", _ONE_TASK, field="command")
    return PARSERS[named[0]](given[named[0]])


def _check_whole(spec: Spec) -> None:
    size = len(msgspec.json.encode(spec))
    if size > MOST_BYTES:
        remedy = f"At most {MOST_BYTES} are allowed; keep large values elsewhere and pass a reference."
        raise BadInput(f"This definition has {size} bytes.", remedy, field="params")
