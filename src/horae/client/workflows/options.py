"""Fields of steps as keywords. `python -m tools.sdk` writes this module from their tables."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from horae.model.executions.job_exceptions import Span


class WaitOptions(TypedDict, total=False):
    """The options of every step."""

    name: str | None
    """Its name, unique in the workflow."""
    after: Any
    """Steps that must end before it."""
    when: Any
    """A condition; if it does not hold, the step is skipped."""
    join: (
        Literal[
            "allSuccess",
            "allDone",
            "oneSuccess",
            "oneFailed",
            "noneFailed",
            "noneFailedOneSuccess",
            "allFailed",
            "allSkipped",
            "always",
        ]
        | None
    )
    """The condition on the outcomes of the steps before it."""
    ignore_failure: bool | None
    """Whether its failure counts as a success without a result."""


class StepOptions(WaitOptions, total=False):
    """The options of a step that runs a job."""

    params: Mapping[str, Any] | None
    """The params of its execution, with expressions."""
    description: str | None
    """What it is for."""
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
    grace: Span | None
    """The time from SIGTERM until it is killed."""
    queue: str | None
    """The queue that its executions wait in."""
    interruptible: bool | None
    """Whether spot workers may run it."""
    preemptible: bool | None
    """Whether more urgent work may preempt it."""
    preempts: bool | None
    """Whether it preempts preemptible work."""
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
    tags: Mapping[str, str] | None
    """Labels by which it is found."""
    env: Mapping[str, str] | None
    """Variables of a command's environment."""
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
    circuit: str | bool | Mapping[str, Any] | None
    """Stop the job for a while when this share of its attempts fails."""
    while_: Any
    """It runs again as long as this holds before a run."""
    until: Any
    """It runs again until this holds after a run."""
    every: Span | None
    """The span from the end of a run to the next."""
    max_runs: int | None
    """The loop fails after this many runs; 100 by default."""
    priority: int | None
    """Its priority; by default, the priority of the workflow."""
    undo: Any
    """The job that undoes it when the workflow fails."""


class EventOptions(WaitOptions, total=False):
    """The options of `step.event`."""

    timeout: Span | None
    """How long it waits at most."""
    on_timeout: Literal["fail", "skip"] | None
    """The outcome of a step that waits too long."""


class SignalOptions(WaitOptions, total=False):
    """The options of `step.signal`."""

    timeout: Span | None
    """How long it waits at most."""
    on_timeout: Literal["fail", "skip"] | None
    """The outcome of a step that waits too long."""


class ApprovalOptions(WaitOptions, total=False):
    """The options of `step.approval`."""

    roles: Sequence[str] | None
    """Roles that may answer; by default, operator and all higher roles."""
    message: str | None
    """The message to the approver, with expressions."""
    remind: Span | None
    """A reminder is sent this long after the request."""
    timeout: Span | None
    """How long it waits at most."""
    on_timeout: Literal["reject", "approve", "skip"] | None
    """The answer if nobody answers in time."""


class CallbackOptions(WaitOptions, total=False):
    """The options of `step.callback`."""

    timeout: Span | None
    """How long it waits at most."""
    on_timeout: Literal["fail", "skip"] | None
    """The outcome of a step that waits too long."""
