"""The table of a job: all its fields, each declared once."""

from typing import Annotated, Any, Literal, get_args

from msgspec import Struct

from horae.env import SECOND, Micros
from horae.model.admission.circuit import CIRCUIT, Circuit
from horae.model.admission.limits import AT_ONCE, BURST, LIMITS, KeyLimit
from horae.model.admission.placement.placement import AFFINITY, PREFERS, Affinity, Preference
from horae.model.admission.rate import RATE, RATE_TEXT, Rate
from horae.model.base.duration import DAY, HOUR
from horae.model.definitions.field_kinds import (
    COMMAND,
    DEPENDENCIES,
    DEPENDS_ON,
    ENV,
    FAILURES,
    HTTP,
    MADE,
    NEEDS,
    PARAMS,
    PYTHON,
    RESOURCES,
    RETRY,
    SCHEDULE,
    SCHEMA,
    SECRETS,
    SPAN,
    TASK,
    TIMEOUTS,
    TRIGGERS,
    VALUES,
    WITHIN,
    WORKFLOW,
    JobField,
)
from horae.model.definitions.retry import MOST_RETRIES, RetryPolicy
from horae.model.definitions.tasks import Task
from horae.model.definitions.template_use import TemplateUse
from horae.model.definitions.timeouts import Timeouts
from horae.model.executions.deduplication import BATCH, CACHE, DEBOUNCE, UNIQUE, Batch, Cache, Debounce, Unique
from horae.model.fields.kinds import Choice, Duration, Flag, Integer, Key, Name, Tags, Text
from horae.model.triggers.dependency import LATE, Condition, Late

PRIORITIES = range(10)  # 0 is the least urgent, 9 the most
DEFAULT_PRIORITY = 4
MOST_SLOTS = 100_000
PAUSE_AFTER = "Give the number of failed executions in a row: 1 to 1000."
PRIORITY = f"Priorities run from 0 (least urgent) to 9 (most urgent); the default is {DEFAULT_PRIORITY}."
RETRIES = f"Give the number of further tries after the first: 0 to {MOST_RETRIES}."
SEQUENCE = 'Write the key of executions that run one after another: "${params.account}".'
NOT_AS_A_WHOLE = "A workflow is not tried again as a whole: give retries to its steps, or rerun it from what failed."
NO_WORKER = "No worker runs a workflow: set this field on the steps that need it."

Delivery = Literal["at-least-once", "at-most-once"]
DELIVERIES: tuple[Delivery, ...] = get_args(Delivery)


class SpecFields(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """All fields of a job, each declared once. Attributes have the stored form; kinds convert them to the API form."""

    name: Annotated[
        str, JobField(Name(), "Its name, unique among jobs.", example="daily-report", steps="never", sdk=False, flag="")
    ]
    description: Annotated[str, JobField(Text(4096), "What it is for.")] = ""
    schedule: Annotated[
        Any,
        JobField(
            SCHEDULE, "When it runs.", example={"cron": "0 9 * * MON-FRI", "timezone": "Europe/Paris"}, steps="never"
        ),
    ] = None
    triggers: Annotated[
        tuple[dict[str, Any], ...],
        JobField(TRIGGERS, "More triggers, each with a name of its own.", steps="never", flag=""),
    ] = ()
    task: Annotated[
        Task,
        TASK,
        JobField(
            COMMAND,
            "A program and its arguments; a text is split as a shell would split it, but no shell runs.",
            name="command",
            example=["python", "report.py"],
            steps="inherited",
            sdk=False,
        ),
        JobField(
            PYTHON, "A function that a worker registers.", name="python", example="digest", steps="inherited", sdk=False
        ),
        JobField(
            HTTP,
            "An HTTP request.",
            name="http",
            example={"url": "https://example.com/hook", "method": "POST"},
            steps="inherited",
            sdk=False,
        ),
        JobField(
            WORKFLOW,
            "Steps that are executions of their own.",
            name="workflow",
            example={"steps": [{"name": "load", "job": "load-orders", "after": ["extract"]}]},
            steps="inherited",
            flag="",
            sdk=False,
        ),
    ]
    params: Annotated[
        dict[str, Any],
        JobField(
            PARAMS,
            "Default parameters; a submission overrides them name by name.",
            example={"day": "2026-11-15"},
            steps="inherited",
            merges=True,
            flag="param",
        ),
    ] = {}
    schema: Annotated[dict[str, Any] | None, JobField(SCHEMA, "The JSON schema of its params.", flag="", sdk=False)] = (
        None
    )
    retry: Annotated[
        RetryPolicy,
        FAILURES,
        JobField(
            Integer(0, MOST_RETRIES, RETRIES),
            "Further tries after the job's own failures.",
            name="retries",
            no_workflow=NOT_AS_A_WHOLE,
            namespaced=True,
        ),
        JobField(
            RETRY,
            "The delays of retries, and the failures that are retried.",
            example={"delay": "1s", "factor": 2, "max": "5m", "retryOn": ["ConnectionError"]},
            namespaced=True,
            flag="retry-delay",
        ),
    ] = RetryPolicy()
    timeout: Annotated[
        Micros | None, FAILURES, JobField(SPAN, "How long one attempt may take.", example="5m", namespaced=True)
    ] = None
    timeouts: Annotated[
        Timeouts,
        FAILURES,
        JobField(
            TIMEOUTS,
            "Timeouts for the queue, the start, heartbeats and all attempts together; `run` is `timeout`.",
            example={"queue": "10m", "total": "1h"},
            merges=True,
            flag="",
        ),
    ] = Timeouts()
    pause_after: Annotated[
        int | None,
        JobField(
            Integer(1, 1000, PAUSE_AFTER),
            "Failed executions in a row after which its triggers pause.",
            steps="never",
            namespaced=True,
        ),
    ] = None
    within: Annotated[
        Micros | None,
        JobField(
            WITHIN,
            "The deadline of its executions, as a span from when they are due.",
            example="2h",
            steps="never",
            namespaced=True,
        ),
    ] = None
    grace: Annotated[
        Micros, JobField(Duration(0, HOUR), "The time from SIGTERM until it is killed.", namespaced=True)
    ] = 10 * SECOND
    priority: Annotated[
        int,
        JobField(
            Integer(0, 9, PRIORITY),
            "From 0 (least urgent) to 9 (most urgent).",
            steps="inherited",
            namespaced=True,
        ),
    ] = DEFAULT_PRIORITY
    queue: Annotated[str, JobField(Name(), "The queue that its executions wait in.", namespaced=True)] = "default"
    interruptible: Annotated[bool, JobField(Flag(), "Whether spot workers may run it.")] = True
    preemptible: Annotated[
        bool, JobField(Flag(), "Whether more urgent work may preempt it.", no_workflow=NO_WORKER)
    ] = False
    preempts: Annotated[
        bool,
        JobField(Flag(off="preempts-nothing"), "Whether it preempts preemptible work.", no_workflow=NO_WORKER),
    ] = False
    sensitive: Annotated[
        bool, JobField(Flag(), "Whether its params and results are sealed in the store.", steps="inherited")
    ] = False
    durable: Annotated[bool, JobField(Flag(), "Whether its function may wait without a worker.")] = False
    needs: Annotated[
        tuple[str, ...],
        JobField(
            NEEDS,
            "Labels its worker must carry.",
            example=["gpu=a100"],
            no_workflow=NO_WORKER,
            flag="need",
            metavar="LABEL",
        ),
    ] = ()
    prefers: Annotated[
        tuple[Preference, ...],
        JobField(
            PREFERS,
            "Labels of workers for which it waits some time before it runs on others.",
            example=[{"label": "zone=eu-1", "weight": 2, "patience": "30s"}],
            no_workflow=NO_WORKER,
            flag="prefer",
        ),
    ] = ()
    slots: Annotated[
        int, JobField(Integer(1, MOST_SLOTS), "How many slots of its worker it takes.", no_workflow=NO_WORKER)
    ] = 1
    resources: Annotated[
        dict[str, int],
        JobField(
            RESOURCES,
            "Amounts of other resources that it takes of its worker.",
            example={"memory": "2GiB", "gpu": 1},
            no_workflow=NO_WORKER,
            flag="resource",
            metavar="NAME=AMOUNT",
        ),
    ] = {}
    affinity: Annotated[
        Affinity | None,
        JobField(
            AFFINITY,
            "Run on the worker that ran this key last, if that worker is free soon.",
            example="${params.model}",
            no_workflow=NO_WORKER,
        ),
    ] = None
    spread: Annotated[
        bool, JobField(Flag(), "Whether its executions are spread evenly over workers.", no_workflow=NO_WORKER)
    ] = False
    dependencies: Annotated[
        tuple[str, ...],
        DEPENDENCIES,
        JobField(
            DEPENDS_ON,
            "Jobs that must have ended before it runs.",
            example=[{"job": "extract", "condition": "finished"}],
            steps="never",
            flag="depends-on",
        ),
    ] = ()
    conditions: dict[str, Condition] = {}  # internal: conditions of dependencies, except `success`
    dependency_timeout: Annotated[
        Micros,
        JobField(
            Duration(SECOND, 400 * DAY), "How long an execution waits for dependencies.", steps="never", namespaced=True
        ),
    ] = DAY
    on_dependency_timeout: Annotated[
        Late,
        JobField(
            Choice(LATE),
            "What happens to an execution whose dependencies do not end in time.",
            steps="never",
            namespaced=True,
        ),
    ] = "fail"
    tags: Annotated[
        dict[str, str],
        JobField(
            Tags(), "Labels by which it is found.", example={"team": "data"}, merges=True, namespaced=True, flag="tag"
        ),
    ] = {}
    env: Annotated[
        dict[str, str],
        JobField(ENV, "Variables of a command's environment.", merges=True, no_workflow=NO_WORKER, sdk=False),
    ] = {}
    secrets: Annotated[
        tuple[str, ...],
        JobField(
            SECRETS,
            "Secrets that its function reads.",
            steps="inherited",
            flag="secret",
            metavar="NAME",
        ),
    ] = ()
    delivery: Annotated[
        Delivery, JobField(Choice(DELIVERIES), "Whether an execution runs again when its worker is lost.")
    ] = "at-least-once"
    concurrency: Annotated[int | None, JobField(AT_ONCE, "How many of its executions run at once.")] = None
    rate: Annotated[
        Rate | None,
        RATE,
        JobField(RATE_TEXT, "How often its executions start.", example="100/1m", metavar="N/SPAN"),
        JobField(BURST, "How many may start at once after a pause.", name="burst"),
    ] = None
    limits: Annotated[
        tuple[KeyLimit, ...],
        JobField(
            LIMITS,
            "How many executions run at once, and how often they start, for each value of a key.",
            example=[{"key": "${params.customer}", "concurrency": 2, "rate": "10/1m"}],
            flag="limit",
        ),
    ] = ()
    sequence: Annotated[str, JobField(Key(SEQUENCE), "A key whose executions run one after another.")] = ""
    key_for: Annotated[
        Micros,
        JobField(
            Duration(SECOND, 400 * DAY), "How long the key of a submission stays taken.", steps="never", namespaced=True
        ),
    ] = DAY
    unique: Annotated[
        Unique | None,
        JobField(
            UNIQUE,
            "One execution for each key: a repeated submission is answered with the first execution.",
            example={"key": "${params.table}", "for": "live", "keep": "first"},
            steps="never",
        ),
    ] = None
    debounce: Annotated[
        Debounce | None,
        JobField(
            DEBOUNCE,
            "Run once, when no further submission has arrived for this long.",
            example={"key": "${params.page}", "wait": "5s", "max": "1m"},
            steps="never",
        ),
    ] = None
    batch: Annotated[
        Batch | None,
        JobField(
            BATCH,
            "Collect submissions: one execution gets up to this many.",
            example={"size": 100, "wait": "1s"},
            steps="never",
        ),
    ] = None
    cache: Annotated[
        Cache | None,
        JobField(CACHE, "A result answers equal submissions for this long.", example={"ttl": "1h"}, steps="never"),
    ] = None
    circuit: Annotated[
        Circuit | None,
        JobField(CIRCUIT, "Stop the job for a while when this share of its attempts fails.", example="50%"),
    ] = None
    made: Annotated[
        TemplateUse | None,
        MADE,
        JobField(Name(), "The template that it is made from.", name="template", steps="never", sdk=False),
        JobField(
            VALUES,
            "The values of the template's parameters.",
            name="with",
            default={},
            steps="never",
            merges=True,
            sdk=False,
        ),
    ] = None
