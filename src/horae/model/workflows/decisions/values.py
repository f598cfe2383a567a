"""What a workflow says: its steps, how they follow one another, and what they wait for.

A workflow is the task of a job, beside commands, functions and requests. Its time limit is its job's `timeout`.
"""

from typing import Any, Literal

from msgspec import Struct

from horae.env import Micros

OnError = Literal["fail", "finish", "ignore"]
ON_ERROR: tuple[OnError, ...] = ("fail", "finish", "ignore")
JoinRule = Literal[
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
Phase = Literal["main", "onSuccess", "onFailure", "finally", "undo"]
PHASES: tuple[Phase, ...] = ("main", "onSuccess", "onFailure", "finally")  # those that a definition spells
OnLate = Literal["fail", "skip", "reject", "approve"]  # what becomes of a wait that takes too long
MOST_STEPS = 1_000  # of one workflow, its handlers included
MOST_RUNS = 10_000  # of a loop
MOST_ITEMS = 100_000  # of a foreach, unless the server's settings allow fewer


class Part(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A part of a workflow as it is stored: camelCase, spans in microseconds, expressions as they were written."""


class Call(Part, frozen=True, kw_only=True):
    """What a step runs: a job by its id, or a job of its own that the workflow keeps for it.

    `own` holds what the workflow says of that job in the API's spelling: an inline task, or the fields that differ from
    those of `job`. Whoever has such fields runs as the job `owned`, which is made and changed with the workflow.
    """

    job: str = ""  # the job it names: as the user spelled it until it is stored, its id afterwards
    own: dict[str, Any] = {}
    owned: str = ""  # the id of the job that the workflow keeps for it; empty until it is stored, or without `own`
    version: int = 0  # of that job, of what is defined here alone; 0 for the present one
    params: dict[str, Any] | None = None  # with expressions; None when nothing is said of them

    @property
    def runs(self) -> str:
        """The id of the job whose executions are this step's; empty when it runs none."""
        return self.owned or self.job

    @property
    def inline(self) -> bool:
        """Whether it is defined here and nowhere else."""
        return bool(self.own) and not self.job


class Foreach(Part, frozen=True, kw_only=True):
    """One execution for each item of a list that an expression gives."""

    items: Any  # an expression, or the list itself
    concurrency: int | None = None
    tolerate: int = 0  # failed items up to which the step is a success
    tolerate_percent: int | None = None  # the same as a share of all items

    def tolerates(self, total: int) -> int:
        """How many of so many may fail."""
        return self.tolerate if self.tolerate_percent is None else total * self.tolerate_percent // 100


class Loop(Part, frozen=True, kw_only=True):
    """One execution after another: as long as `condition` holds before each, or until it holds after one."""

    condition: str
    until: bool = False
    every: Micros = 0  # between an end and the next start
    most: int = 100  # runs; a loop that needs more fails


class Sleep(Part, frozen=True, kw_only=True, tag_field="kind", tag="sleep"):
    """A span, or until an instant that an expression gives."""

    span: Micros | None = None
    until: str = ""


class EventWait(Part, frozen=True, kw_only=True, tag_field="kind", tag="event"):
    """The next event of a name for which `filter` holds; its result is the event."""

    name: str
    filter: str = ""  # knows `event` beside what other expressions know
    timeout: Micros | None = None
    on_timeout: OnLate = "fail"


class SignalWait(Part, frozen=True, kw_only=True, tag_field="kind", tag="signal"):
    """A signal to this very execution; its result is the signal's payload."""

    name: str
    timeout: Micros | None = None
    on_timeout: OnLate = "fail"


class Approval(Part, frozen=True, kw_only=True, tag_field="kind", tag="approval"):
    """Somebody who may says yes; a no is a failure."""

    roles: tuple[str, ...] = ()  # empty: whoever may operate
    message: str = ""  # with expressions
    remind: Micros | None = None
    timeout: Micros | None = None
    on_timeout: OnLate = "reject"


class Callback(Part, frozen=True, kw_only=True, tag_field="kind", tag="callback"):
    """A call of a URL with a token that only this step has; its result is the call's body."""

    timeout: Micros | None = None
    on_timeout: OnLate = "fail"


Wait = Sleep | EventWait | SignalWait | Approval | Callback


class Branch(Part, frozen=True, kw_only=True):
    """Steps that go on when a condition holds; without one, when no branch before it was taken."""

    when: str = ""
    then: tuple[str, ...]


class Step(Call, frozen=True, kw_only=True):
    """A node of a workflow.

    It runs a job (once, for each item, or in a loop), waits for something, or chooses a branch.
    """

    name: str
    after: tuple[str, ...] = ()  # beside the steps that its expressions speak of
    when: str = ""
    join: JoinRule = "allSuccess"
    foreach: Foreach | None = None
    loop: Loop | None = None
    wait: Wait | None = None
    switch: tuple[Branch, ...] = ()
    priority: int | None = None  # instead of the workflow's
    ignore_failure: bool = False  # a failure counts as a success without a result
    undo: Call | None = None


class Workflow(Part, frozen=True, kw_only=True, tag_field="kind", tag="workflow"):
    """A graph of steps, and what follows when it has come to its end."""

    steps: tuple[Step, ...]
    on_error: OnError = "fail"
    output: Any = None  # with expressions; None: the last steps' results
    on_success: tuple[Step, ...] = ()
    on_failure: tuple[Step, ...] = ()
    last: tuple[Step, ...] = ()  # `finally` in a definition

    def of(self, phase: Phase) -> tuple[Step, ...]:
        """The steps of a phase, in the order in which they are written."""
        phases: dict[Phase, tuple[Step, ...]] = {
            "main": self.steps,
            "onSuccess": self.on_success,
            "onFailure": self.on_failure,
            "finally": self.last,
        }
        return phases.get(phase, ())

    @property
    def everything(self) -> tuple[Step, ...]:
        """The steps of all phases."""
        return (*self.steps, *self.on_success, *self.on_failure, *self.last)


UNDO = ":undo"


def undo_name(step: str) -> str:
    """The name under which the undoing of a step is kept; no step can be named so."""
    return f"{step}{UNDO}"
