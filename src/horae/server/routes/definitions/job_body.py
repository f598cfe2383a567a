"""Body of requests that define a job, for the OpenAPI document; `model.definitions.reading` reads it."""

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from horae.server.reading.bodies import Body, Duration, Name, Priority, Tags


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
    within: (
        Annotated[Duration, Meta(description="The deadline of its executions, as a span from when they are due.")]
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
