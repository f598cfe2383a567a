"""Fields as keywords, of jobs and others. `python -m tools.sdk` writes this module from their tables."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

from horae.model.executions.job_exceptions import Span

# A function of (failures, error) that returns a span to wait, False to give up, or None for the policy's delay.
RetryFunction = Callable[[int, BaseException], Span | bool | None]


class JobOptions(TypedDict, total=False):
    """The options of `@app.job`; None stands for the default."""

    description: str | None
    """What it is for."""
    schedule: str | Mapping[str, Any] | None
    """When it runs."""
    triggers: Sequence[str | Mapping[str, Any]] | None
    """More triggers, each with a name of its own."""
    params: Mapping[str, Any] | None
    """Default parameters; a submission overrides them name by name."""
    retries: int | None
    """Further tries after the job's own failures."""
    retry: Mapping[str, Any] | Sequence[Span] | RetryFunction | None
    """The delays of retries, and the failures that are retried."""
    timeout: Span | None
    """How long one attempt may take."""
    timeouts: Mapping[str, Span] | None
    """Timeouts for the queue, the start, heartbeats and all attempts together; `run` is `timeout`."""
    pause_after: int | None
    """Failed executions in a row after which its triggers pause."""
    within: Span | None
    """The deadline of its executions, as a span from when they are due."""
    grace: Span | None
    """The time from SIGTERM until it is killed."""
    priority: int | None
    """From 0 (least urgent) to 9 (most urgent)."""
    queue: str | None
    """The queue that its executions wait in."""
    interruptible: bool | None
    """Whether spot workers may run it."""
    preemptible: bool | None
    """Whether more urgent work may preempt it."""
    preempts: bool | None
    """Whether it preempts preemptible work."""
    sensitive: bool | None
    """Whether its params and results are sealed in the store."""
    durable: bool | None
    """Whether its function may wait without a worker."""
    needs: Sequence[str] | Mapping[str, Any] | None
    """Labels its worker must carry."""
    prefers: Sequence[str | Mapping[str, Any]] | None
    """Labels of workers for which it waits some time before it runs on others."""
    slots: int | None
    """How many slots of its worker it takes."""
    resources: Mapping[str, int | str] | None
    """Amounts of other resources that it takes of its worker."""
    affinity: str | Mapping[str, Any] | None
    """Run on the worker that ran this key last, if that worker is free soon."""
    spread: bool | None
    """Whether its executions are spread evenly over workers."""
    dependencies: Sequence[Any] | None
    """Jobs that must have ended before it runs."""
    dependency_timeout: Span | None
    """How long an execution waits for dependencies."""
    on_dependency_timeout: Literal["fail", "skip", "run"] | None
    """What happens to an execution whose dependencies do not end in time."""
    tags: Mapping[str, str] | None
    """Labels by which it is found."""
    secrets: Sequence[str] | None
    """Secrets that its function reads."""
    delivery: Literal["at-least-once", "at-most-once"] | None
    """Whether an execution runs again when its worker is lost."""
    concurrency: int | None
    """How many of its executions run at once."""
    rate: str | None
    """How often its executions start."""
    burst: int | None
    """How many may start at once after a pause."""
    limits: Sequence[Mapping[str, Any]] | None
    """How many executions run at once, and how often they start, for each value of a key."""
    sequence: str | None
    """A key whose executions run one after another."""
    key_for: Span | None
    """How long the key of a submission stays taken."""
    unique: bool | Mapping[str, Any] | None
    """One execution for each key: a repeated submission is answered with the first execution."""
    debounce: Mapping[str, Any] | None
    """Run once, when no further submission has arrived for this long."""
    cache: Mapping[str, Any] | None
    """A result answers equal submissions for this long."""
    circuit: str | bool | Mapping[str, Any] | None
    """Stop the job for a while when this share of its attempts fails."""
    isolation: Literal["thread", "process"] | None
    """Where a sync function runs; by default, one with a timeout runs in a separate process."""
    process_limits: Mapping[str, Any] | None
    """The limits of a separate process: {"memory": "1GiB", "cpu": "10m"}."""


class WorkflowOptions(TypedDict, total=False):
    """The options of `@app.workflow`; None stands for the default."""

    description: str | None
    """What it is for."""
    schedule: str | Mapping[str, Any] | None
    """When it runs."""
    triggers: Sequence[str | Mapping[str, Any]] | None
    """More triggers, each with a name of its own."""
    params: Mapping[str, Any] | None
    """Default parameters; a submission overrides them name by name."""
    retry: Mapping[str, Any] | Sequence[Span] | RetryFunction | None
    """The delays of retries, and the failures that are retried."""
    timeout: Span | None
    """How long one attempt may take."""
    timeouts: Mapping[str, Span] | None
    """Timeouts for the queue, the start, heartbeats and all attempts together; `run` is `timeout`."""
    pause_after: int | None
    """Failed executions in a row after which its triggers pause."""
    within: Span | None
    """The deadline of its executions, as a span from when they are due."""
    grace: Span | None
    """The time from SIGTERM until it is killed."""
    priority: int | None
    """From 0 (least urgent) to 9 (most urgent)."""
    queue: str | None
    """The queue that its executions wait in."""
    interruptible: bool | None
    """Whether spot workers may run it."""
    sensitive: bool | None
    """Whether its params and results are sealed in the store."""
    durable: bool | None
    """Whether its function may wait without a worker."""
    dependencies: Sequence[Any] | None
    """Jobs that must have ended before it runs."""
    dependency_timeout: Span | None
    """How long an execution waits for dependencies."""
    on_dependency_timeout: Literal["fail", "skip", "run"] | None
    """What happens to an execution whose dependencies do not end in time."""
    tags: Mapping[str, str] | None
    """Labels by which it is found."""
    secrets: Sequence[str] | None
    """Secrets that its function reads."""
    delivery: Literal["at-least-once", "at-most-once"] | None
    """Whether an execution runs again when its worker is lost."""
    concurrency: int | None
    """How many of its executions run at once."""
    rate: str | None
    """How often its executions start."""
    burst: int | None
    """How many may start at once after a pause."""
    limits: Sequence[Mapping[str, Any]] | None
    """How many executions run at once, and how often they start, for each value of a key."""
    sequence: str | None
    """A key whose executions run one after another."""
    key_for: Span | None
    """How long the key of a submission stays taken."""
    unique: bool | Mapping[str, Any] | None
    """One execution for each key: a repeated submission is answered with the first execution."""
    debounce: Mapping[str, Any] | None
    """Run once, when no further submission has arrived for this long."""
    batch: Mapping[str, Any] | None
    """Collect submissions: one execution gets up to this many."""
    cache: Mapping[str, Any] | None
    """A result answers equal submissions for this long."""
    circuit: str | bool | Mapping[str, Any] | None
    """Stop the job for a while when this share of its attempts fails."""
    on_error: Literal["fail", "finish", "ignore"] | None
    """The policy for the other steps when a step fails."""


class JobFields(TypedDict, total=False):
    """The fields of a definition; None resets a field to its default."""

    description: str | None
    """What it is for."""
    schedule: str | Mapping[str, Any] | None
    """When it runs."""
    triggers: Sequence[str | Mapping[str, Any]] | None
    """More triggers, each with a name of its own."""
    command: str | Sequence[str] | Mapping[str, Any] | None
    """A program and its arguments; a text is split as a shell would split it, but no shell runs."""
    python: str | Mapping[str, Any] | None
    """A function that a worker registers."""
    http: str | Mapping[str, Any] | None
    """An HTTP request."""
    workflow: Sequence[Mapping[str, Any]] | Mapping[str, Any] | None
    """Steps that are executions of their own."""
    params: Mapping[str, Any] | None
    """Default parameters; a submission overrides them name by name."""
    schema: Mapping[str, Any] | None
    """The JSON schema of its params."""
    retries: int | None
    """Further tries after the job's own failures."""
    retry: Mapping[str, Any] | Sequence[Span] | None
    """The delays of retries, and the failures that are retried."""
    timeout: Span | None
    """How long one attempt may take."""
    timeouts: Mapping[str, Span] | None
    """Timeouts for the queue, the start, heartbeats and all attempts together; `run` is `timeout`."""
    pause_after: int | None
    """Failed executions in a row after which its triggers pause."""
    within: Span | None
    """The deadline of its executions, as a span from when they are due."""
    grace: Span | None
    """The time from SIGTERM until it is killed."""
    priority: int | None
    """From 0 (least urgent) to 9 (most urgent)."""
    queue: str | None
    """The queue that its executions wait in."""
    interruptible: bool | None
    """Whether spot workers may run it."""
    preemptible: bool | None
    """Whether more urgent work may preempt it."""
    preempts: bool | None
    """Whether it preempts preemptible work."""
    sensitive: bool | None
    """Whether its params and results are sealed in the store."""
    durable: bool | None
    """Whether its function may wait without a worker."""
    needs: Sequence[str] | Mapping[str, Any] | None
    """Labels its worker must carry."""
    prefers: Sequence[str | Mapping[str, Any]] | None
    """Labels of workers for which it waits some time before it runs on others."""
    slots: int | None
    """How many slots of its worker it takes."""
    resources: Mapping[str, int | str] | None
    """Amounts of other resources that it takes of its worker."""
    affinity: str | Mapping[str, Any] | None
    """Run on the worker that ran this key last, if that worker is free soon."""
    spread: bool | None
    """Whether its executions are spread evenly over workers."""
    dependencies: Sequence[Any] | None
    """Jobs that must have ended before it runs."""
    dependency_timeout: Span | None
    """How long an execution waits for dependencies."""
    on_dependency_timeout: Literal["fail", "skip", "run"] | None
    """What happens to an execution whose dependencies do not end in time."""
    tags: Mapping[str, str] | None
    """Labels by which it is found."""
    env: Mapping[str, str] | None
    """Variables of a command's environment."""
    secrets: Sequence[str] | None
    """Secrets that its function reads."""
    delivery: Literal["at-least-once", "at-most-once"] | None
    """Whether an execution runs again when its worker is lost."""
    concurrency: int | None
    """How many of its executions run at once."""
    rate: str | None
    """How often its executions start."""
    burst: int | None
    """How many may start at once after a pause."""
    limits: Sequence[Mapping[str, Any]] | None
    """How many executions run at once, and how often they start, for each value of a key."""
    sequence: str | None
    """A key whose executions run one after another."""
    key_for: Span | None
    """How long the key of a submission stays taken."""
    unique: bool | Mapping[str, Any] | None
    """One execution for each key: a repeated submission is answered with the first execution."""
    debounce: Mapping[str, Any] | None
    """Run once, when no further submission has arrived for this long."""
    batch: Mapping[str, Any] | None
    """Collect submissions: one execution gets up to this many."""
    cache: Mapping[str, Any] | None
    """A result answers equal submissions for this long."""
    circuit: str | bool | Mapping[str, Any] | None
    """Stop the job for a while when this share of its attempts fails."""
    template: str | None
    """The template that it is made from."""
    with_: Mapping[str, Any] | None
    """The values of the template's parameters."""


class QueueFields(TypedDict, total=False):
    """The fields of `client.queues.set`; None resets a field to its default."""

    policy: str | Mapping[str, Any] | None
    """The order of executions: fifo, priority, fair, deadline, shortest, or an object with the kind and its fields."""
    concurrency: int | None
    """How many of its executions run at once."""
    rate: str | None
    """How often they start."""
    burst: int | None
    """How many may start at once after a pause."""
    sequence: bool | None
    """Whether they run one at a time, in order, also through retries."""
    max_queued: int | None
    """How many executions it holds at most, queued or waiting."""
    preempts: bool | None
    """Whether executions that wait here preempt preemptible ones."""
    default: bool | None
    """Whether jobs that name no queue go here."""


class NamespaceFields(TypedDict, total=False):
    """The settings of a namespace; None resets a field to its default."""

    description: str | None
    """What it is for."""
    retention: Span | Mapping[str, Span] | None
    """How long ended executions are kept: one span, or one for each outcome; by default, the servers' setting."""
    archive: bool | Sequence[str] | None
    """Executions that are archived when their retention ends: true for all, or outcomes."""
    defaults: Mapping[str, Any] | None
    """Values for fields that jobs do not set themselves."""
    weight: float | None
    """Its weight against other namespaces, by which servers divide their own work."""
    queue_policy: str | Mapping[str, Any] | None
    """The policy of queues that set none."""


class QuotaFields(TypedDict, total=False):
    """The bounds of a namespace; None stands for no bound."""

    queued: int | None
    """Executions that are queued, or wait without having started."""
    running: int | None
    """Executions that run at once."""
    executions_per_day: int | None
    """Executions created in a day of UTC, by requests or triggers."""
    worker_seconds_per_day: int | None
    """Worker seconds of the executions that end in the day."""
    stored_bytes_per_day: int | None
    """Bytes of params and results added in the day."""
    submissions_per_second: float | None
    """Executions submitted by requests, evenly spread; a second's worth may come at once."""
    starts_per_second: float | None
    """Attempts that start, evenly spread; a second's worth may start at once."""
    over: Literal["refuse", "wait"] | None
    """Whether executions over the quota are refused or wait."""


class SubmitOptions(TypedDict, total=False):
    """The options of a submission."""

    delay: Span | None
    """The wait before it runs."""
    at: datetime | str | None
    """When it runs."""
    key: str | None
    """A key that makes it unique: while the key is taken, no new execution is created."""
    key_for: Span | None
    """How long its key stays taken, instead of the job's own time."""
    priority: int | None
    """From 0 (least urgent) to 9 (most urgent); the default is the job's own."""
    deadline: datetime | str | None
    """When it should end; deadline queues order by this."""
    within: Span | None
    """The deadline, as a span after it is due."""
    tags: Mapping[str, str] | None
    """Tags besides the job's own."""
    interval: tuple[datetime | str, datetime | str] | None
    """The interval of its data; jobs that depend on this one inherit it."""
    propagate: bool | None
    """Whether its end starts jobs that depend on this one."""
    wait_for_dependencies: bool | None
    """Whether it waits for the job's dependencies."""


class BulkOptions(TypedDict, total=False):
    """The shared options of a bulk submission."""

    delay: Span | None
    """The wait before it runs."""
    at: datetime | str | None
    """When it runs."""
    priority: int | None
    """From 0 (least urgent) to 9 (most urgent); the default is the job's own."""
    deadline: datetime | str | None
    """When it should end; deadline queues order by this."""
    within: Span | None
    """The deadline, as a span after it is due."""
    tags: Mapping[str, str] | None
    """Tags besides the job's own."""
    interval: tuple[datetime | str, datetime | str] | None
    """The interval of its data; jobs that depend on this one inherit it."""
    propagate: bool | None
    """Whether its end starts jobs that depend on this one."""
    wait_for_dependencies: bool | None
    """Whether it waits for the job's dependencies."""
