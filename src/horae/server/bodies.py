"""What requests may say, as types: decoded where the server reads them, documented where the engine does.

`model.definition` reads jobs' definitions and names every mistake; `JobBody` tells the OpenAPI document their shape.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct, field

from horae.model.principal import Permission, Role
from horae.model.protocol import ABSENT

MOST_ITEMS = 10_000  # in one bulk submission
Duration = Annotated[
    str | int | float,
    Meta(description='"5m", "1h30m", ISO 8601 or seconds.', extra_json_schema={"examples": ["5m", "PT1H", 90]}),
]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
Priority = Annotated[int, Meta(ge=0, le=9, description="0 (least urgent) to 9 (most urgent); 4 by default.")]
When = Annotated[
    str,
    Meta(description="RFC 3339 with an offset.", extra_json_schema={"format": "date-time"}),
]
Tags = Annotated[list[str] | dict[str, str], Meta(description='["nightly"] or {"team": "data"}.')]
Params = Annotated[Raw, Meta(description="An object.", extra_json_schema={"type": "object"})]
Key = Annotated[str, Meta(min_length=1, max_length=256)]


class Body(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """The body of a request; a field it does not know is refused."""


class JobPatch(Body, frozen=True, kw_only=True):
    """Parts of a job's definition; null takes a field back to its default."""

    name: Name | None = None
    description: Annotated[str, Meta(max_length=4096)] | None = None
    schedule: Annotated[
        str | dict[str, Any] | None,
        Meta(description='A cron text, {"every": "5m"} or {"at": "2026-11-15T08:00:00Z"}, with rules beside it.'),
    ] = None
    triggers: Annotated[
        list[str | dict[str, Any]] | None,
        Meta(description='More triggers, each as a schedule with a "name" of its own.'),
    ] = None
    command: Annotated[
        str | list[str] | dict[str, Any] | None,
        Meta(description='Argv as a text or a list, run without a shell; {"shell": "..."} asks for one.'),
    ] = None
    python: Annotated[
        str | dict[str, Any] | None, Meta(description='A registered function: "digest" or {"function": "digest"}.')
    ] = None
    http: Annotated[
        str | dict[str, Any] | None,
        Meta(description='A URL, or {"url", "method", "headers", "body", "expect", "redirects"}.'),
    ] = None
    workflow: Annotated[
        list[dict[str, Any]] | dict[str, Any] | None,
        Meta(description='Steps: {"steps": [{"name", "job" or what it does, "after", "when", ...}], "onError", ...}.'),
    ] = None
    params: dict[str, Any] | None = None
    schema: Annotated[dict[str, Any] | None, Meta(description="The JSON schema of params.")] = None
    retries: Annotated[int, Meta(ge=0, le=1000, description="Further tries after the job's own failures.")] | None = (
        None
    )
    retry: Annotated[
        list[Duration] | dict[str, Any] | None,
        Meta(
            description='Delays, or {"delay", "factor", "max", "jitter", "delays", "budgets", "retryOn", "giveUpOn"}.'
        ),
    ] = None
    timeout: Duration | None = None
    timeouts: Annotated[
        dict[str, Any] | None,
        Meta(description='{"queue", "start", "run", "heartbeat", "total"}: durations; `timeout` is `run`.'),
    ] = None
    pause_after: (
        Annotated[int, Meta(ge=1, le=1000, description="Failed executions in a row after which its triggers pause.")]
        | None
    ) = None
    grace: Duration | None = None
    priority: Priority | None = None
    queue: Name | None = None
    needs: Annotated[
        list[str] | dict[str, Any] | None, Meta(description='Labels a worker must carry: ["gpu=a100"].')
    ] = None
    interruptible: Annotated[bool, Meta(description="Whether spot workers may run it.")] | None = None
    preemptible: Annotated[bool, Meta(description="Whether more urgent work may take its place.")] | None = None
    preempts: Annotated[bool, Meta(description="Whether it takes the place of what is preemptible.")] | None = None
    sensitive: Annotated[bool, Meta(description="Whether its params and results are sealed.")] | None = None
    durable: Annotated[bool, Meta(description="Whether its function may wait without a worker.")] | None = None
    prefers: Annotated[
        list[str | dict[str, Any]] | None,
        Meta(description='Labels it waits for: [{"label": "zone=eu-1", "weight": 2, "patience": "30s"}].'),
    ] = None
    slots: Annotated[int, Meta(ge=1, le=100_000, description="How many slots of its worker it takes.")] | None = None
    resources: Annotated[
        dict[str, int | str] | None, Meta(description='What else it takes: {"memory": "2GiB", "gpu": 1}.')
    ] = None
    affinity: Annotated[
        str | dict[str, Any] | None,
        Meta(description='Run where this key ran last: "${params.model}" or {"key": "...", "patience": "30s"}.'),
    ] = None
    spread: Annotated[bool, Meta(description="Spread its executions evenly over workers.")] | None = None
    circuit: Annotated[
        str | bool | dict[str, Any] | None,
        Meta(description='A circuit breaker: "50%", or {"failures": "50%", "window": "1m", "minimum": 10, ...}.'),
    ] = None
    dependencies: Annotated[
        list[str | dict[str, str]] | None,
        Meta(description='Names or ids of other jobs, or {"job": "extract", "condition": "success|failure|finished"}.'),
    ] = None
    dependency_timeout: Annotated[
        Duration | None, Meta(description="How long an execution waits for them; a day unless given.")
    ] = None
    on_dependency_timeout: Literal["fail", "skip", "run"] | None = None
    tags: Tags | None = None
    env: dict[str, str] | None = None
    secrets: Annotated[list[str], Meta(description="Names of those that a function asks for.")] | None = None
    delivery: Literal["at-least-once", "at-most-once"] | None = None
    key_for: Duration | None = None
    concurrency: Annotated[int, Meta(ge=1, description="How many of it run at once.")] | None = None
    rate: Annotated[str, Meta(description='How often it starts: "100/1m".')] | None = None
    burst: Annotated[int, Meta(ge=1, description="How many starts may come at once after a pause; 1.")] | None = None
    limits: Annotated[
        list[dict[str, Any]] | None,
        Meta(description='The same for each value of a key: [{"key": "${params.customer}", "concurrency": 2}].'),
    ] = None
    sequence: Annotated[str, Meta(description="A key whose executions run one after another.")] | None = None
    unique: Annotated[
        bool | dict[str, Any] | None,
        Meta(description='One execution per key: {"key", "for": "live" or a span, "keep": "first|latest"}, or true.'),
    ] = None
    debounce: Annotated[
        dict[str, Any] | None,
        Meta(description='Run when submissions have ceased: {"key", "wait", "max", "keep": "first|latest"}.'),
    ] = None
    batch: Annotated[
        dict[str, Any] | None, Meta(description='One execution for many submissions: {"size", "wait", "key"}.')
    ] = None
    cache: Annotated[
        dict[str, Any] | None, Meta(description='Answer an equal submission with the result: {"ttl", "key"}.')
    ] = None
    template: Annotated[str | None, Meta(description="The template that it is made from.")] = None
    with_: Annotated[dict[str, Any] | None, Meta(description="The values of the template's parameters.")] = field(
        default=None, name="with"
    )


class JobBody(JobPatch, frozen=True, kw_only=True):
    """A job: its name, one of command, python, http and workflow, and whatever else differs from the defaults."""

    name: Name


class TriggerPatch(Body, frozen=True, kw_only=True):
    """Parts of a trigger: one kind's fields, rules and params; null takes a field back to its default."""

    name: Name | None = None
    cron: str | None = None
    timezone: str | None = None
    dialect: Literal["unix", "quartz"] | None = None
    dst_gap: Literal["shift", "skip"] | None = None
    dst_overlap: Literal["first", "second", "both"] | None = None
    every: Duration | None = None
    anchor: When | None = None
    at: When | None = None
    event: str | None = None
    filter: str | None = None
    webhook: bool | dict[str, Any] | None = None
    watch: str | None = None
    interval: Duration | None = None
    existing: Literal["ignore", "fire"] | None = None
    settle: Duration | None = None
    misfire: str | dict[str, Any] | None = None
    overlap: str | dict[str, Any] | None = None
    start_at: When | None = None
    end_at: When | None = None
    max_fires: Annotated[int, Meta(ge=1)] | None = None
    jitter: Duration | None = None
    spread: Duration | None = None
    grace: Duration | None = None
    params: dict[str, Any] | None = None
    paused: bool | None = None


class TriggerBody(TriggerPatch, frozen=True, kw_only=True):
    """A trigger: what tells its kind (cron, every, at, event, webhook or watch), and whatever else differs."""


class PreviewBody(TriggerPatch, frozen=True, kw_only=True):
    """A trigger to look at, or `job` and `trigger` of one that exists; from when, and how many fires."""

    job: str | None = None
    trigger: str | None = None
    from_: Annotated[When, Meta(description="Fires strictly after this; now otherwise.")] | None = field(
        default=None, name="from"
    )
    count: Annotated[int, Meta(ge=1, le=1000)] = 10


class YamlBody(Body, frozen=True, kw_only=True):
    """A YAML document."""

    text: str


class Rollback(Body, frozen=True, kw_only=True):
    """Which version to go back to."""

    version: Annotated[int, Meta(ge=1, le=2**31 - 1)]


class Span(Body, frozen=True, kw_only=True):
    """A data interval, from its start up to its end."""

    start: When
    end: When


class Trigger(Body, frozen=True, kw_only=True):
    """How to run a job now or later; every field may be left out."""

    params: Params = ABSENT
    delay: Duration | None = None
    at: When | None = None
    key: Key | None = None
    key_for: Duration | None = None
    priority: Priority | None = None
    deadline: Annotated[When, Meta(description="When it should have ended; queues by deadline order by it.")] | None = (
        None
    )
    within: Annotated[Duration, Meta(description="The same, from when it is due.")] | None = None
    tags: dict[str, str] = {}
    interval: Annotated[
        Span | None, Meta(description="The data it is about; jobs that depend on this one inherit it.")
    ] = None
    propagate: Annotated[bool, Meta(description="Whether its end is told to jobs that depend on this one.")] = True
    wait_for_dependencies: Annotated[
        bool, Meta(description="Wait for what the job depends on, instead of running at once.")
    ] = False


class NewExecution(Trigger, frozen=True, kw_only=True):
    """One execution asked for."""

    job: Annotated[str, Meta(min_length=1, max_length=128, description="The job's name or id.")]


class ManyOfOneJob(Trigger, frozen=True, kw_only=True):
    """Many executions of one job: `items` are their params, the rest is common to all."""

    job: Annotated[str, Meta(min_length=1, max_length=128)]
    items: Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=MOST_ITEMS)]
    atomic: Annotated[bool, Meta(description="All or nothing; otherwise each item is accepted or refused alone.")] = (
        False
    )


class ManyExecutions(Body, frozen=True, kw_only=True):
    """Many executions, each on its own terms."""

    items: Annotated[list[NewExecution], Meta(min_length=1, max_length=MOST_ITEMS)]
    atomic: bool = False


class Submission(Trigger, frozen=True, kw_only=True):
    """Whichever of the three forms of a submission came."""

    job: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    items: list[Raw] | None = None
    atomic: bool = False


class Reason(Body, frozen=True, kw_only=True):
    """Why."""

    reason: Annotated[str, Meta(max_length=1000)] = ""


class DeadLetterWhich(Body, frozen=True, kw_only=True):
    """Which dead letters, by what they are; an empty one means all that are open."""

    job: str | None = None
    queue: str | None = None
    error_type: str | None = None
    reason: Annotated[str, Meta(description="Why they ended: retries, permanent, runTimeout...")] | None = None
    text: Annotated[str, Meta(max_length=256, description="A part of the error's message.")] | None = None
    since: When | None = None
    until: When | None = None
    older_than: Annotated[str, Meta(description="Made longer ago than this, as 7d.")] | None = None


class DeadLetterFilter(DeadLetterWhich, frozen=True, kw_only=True):
    """Which dead letters, and how many of them."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 1000
    cursor: Annotated[str, Meta(max_length=512, description="`nextCursor` of the answer before.")] | None = None


class DeadLetterChoice(Body, frozen=True, kw_only=True):
    """Dead letters by id, or all that match a filter."""

    ids: Annotated[list[str], Meta(max_length=1000)] | None = None
    filter: DeadLetterFilter | None = None


class DeadLetterRetry(DeadLetterChoice, frozen=True, kw_only=True):
    """Dead letters to run again, and what changes about their params."""

    params: Annotated[
        dict[str, Any] | None, Meta(description="A merge patch: members replace theirs, null takes one away.")
    ] = None


class ReplayBody(Body, frozen=True, kw_only=True):
    """Dead letters to run again at a pace."""

    filter: DeadLetterWhich
    rate: Annotated[str, Meta(description='So many in a span, as "10/1s"; as fast as it goes otherwise.')] | None = None
    params: Annotated[
        dict[str, Any] | None, Meta(description="A merge patch: members replace theirs, null takes one away.")
    ] = None


class EventBody(Body, frozen=True, kw_only=True):
    """An event: its name, what it says, and an id by which it is known when it comes again."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$")]
    payload: Annotated[Any, Meta(description="Any JSON; filters and params see it as `event.payload`.")] = None
    id: Key | None = None


class ManyEvents(Body, frozen=True, kw_only=True):
    """Many events, taken together or not at all."""

    events: Annotated[list[EventBody], Meta(min_length=1, max_length=1000)]


class HookBody(Body, frozen=True, kw_only=True):
    """How to make a webhook; every field may be left out."""

    secret: Annotated[str, Meta(max_length=256, description="What is signed with, or one is made.")] | None = None
    new_url: Annotated[bool, Meta(description="Make a new URL beside the old one.")] = False
    old_for: Annotated[Duration, Meta(description="How long the old secret or URL stays valid.")] = "1d"


JobPattern = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._*?\[\]!-]{1,128}$", description="A name with * and ?.")]


class KeyBody(Body, frozen=True, kw_only=True):
    """A key to be made."""

    name: Annotated[str, Meta(min_length=1, max_length=128)]
    role: Annotated[Role, Meta(description="What it may do.")]
    permissions: Annotated[tuple[Permission, ...], Meta(description="Beyond its role, one by one.")] = ()
    queues: Annotated[tuple[Name, ...], Meta(max_length=100, description="The only queues it is for.")] = ()
    jobs: Annotated[
        tuple[JobPattern, ...], Meta(max_length=100, description='Patterns of the only jobs it is for: ["etl-*"].')
    ] = ()
    rate: (
        Annotated[
            str, Meta(max_length=64, description='Requests to each server, at most: "100/1s"; workers\' are not.')
        ]
        | None
    ) = None
    expires_at: When | None = None


class Code(Body, frozen=True, kw_only=True):
    """The single-use code of a sign-in link."""

    code: Annotated[str, Meta(min_length=1, max_length=256)]
