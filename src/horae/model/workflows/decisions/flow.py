"""A workflow that runs: how its execution and each of its steps stand, and what is decided about them.

The store keeps a `Flow` for each execution of a workflow and a `StepRow` for each step of the phases it has come to.
Everything that happens comes as an `Ended`; everything that follows is in `Decisions`.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Literal, TypeAlias, TypeVar
from uuid import UUID

from msgspec import Struct

from horae.env import Instant, Micros
from horae.model.fleet.protocol import Failure
from horae.model.workflows.decisions.values import Phase
from horae.model.workflows.repeats import MOST_ITEMS
from horae.model.workflows.waits import Wait

FlowState = Literal["running", "failing", "cancelling", "undoing", "ending"]
Verdict = Literal["success", "failed", "cancelled"]
StepState = Literal["pending", "held", "waiting", "running", "success", "failed", "skipped", "cancelled"]
Final = Literal["success", "failed", "skipped", "cancelled"]

FINAL: frozenset[str] = frozenset({"success", "failed", "skipped", "cancelled"})
OPEN: frozenset[str] = frozenset({"waiting", "running"})  # begun, and not ended: something goes on for it

# Why a step is held, and the reasons of steps that did not run or end by themselves.
PAUSED, BREAKPOINT = "paused", "breakpoint"
NOT_WANTED = "when"  # its condition did not hold
NOT_JOINED = "join"  # its upstreams ended otherwise than its rule asks for
NOT_CHOSEN = "switch"  # no switch before it chose it
GIVEN_UP = "workflow"  # the workflow failed, or was cancelled, before it began
TOLERANCE = "tolerance"  # more items of a foreach failed than it tolerates
BOUND = "bound"  # a loop needed more runs than it may have
FAULT = "expression"  # an expression could not be computed, or gave something that cannot be used


class Pin(Struct, frozen=True, array_like=True):
    """The version of a job that a step of one workflow execution runs, from its begin to its end."""

    job: UUID
    version: int


class Flow(Struct, frozen=True, kw_only=True):
    """An execution of a workflow. It ends when nothing is left of its last phase."""

    execution: UUID
    root: UUID  # of the outermost workflow that it is part of; its own id when it is that
    job: UUID
    version: int
    phase: Phase = "main"
    verdict: Verdict = "success"  # what it ends as if nothing else happens
    left: int = 0  # steps of the phase that have not ended
    open: int = 0  # of these, those that have begun
    ended: int = 0  # steps that have ended, of all phases: the next one's `ended_seq`
    stopped: bool = False  # nothing more of the phase begins: it fails, or is cancelled
    paused: bool = False
    breakpoints: frozenset[str] = frozenset()  # steps before which it stops
    undo: tuple[str, ...] = ()  # the steps to be undone, in that order, once that is known
    cause: str = ""  # the step whose failure the verdict is
    error: Failure | None = None  # of that step, or of the workflow itself
    reason: str = ""  # why it ends as it does, in one word: timeout, cancelled, ...
    pins: Mapping[str, Pin] = {}  # by step, or by `undo_name`

    @property
    def state(self) -> FlowState:
        """In one word, for people and for filters."""
        if self.phase == "undo":
            return "undoing"
        if self.phase != "main":
            return "ending"
        words: dict[Verdict, FlowState] = {"success": "running", "failed": "failing", "cancelled": "cancelling"}
        return words[self.verdict]


class StepRow(Struct, frozen=True, kw_only=True):
    """A step of one execution of a workflow."""

    step: str
    phase: Phase = "main"
    state: StepState = "pending"
    missing: int = 0  # upstreams that have not ended; the next three count those that have
    succeeded: int = 0
    failed: int = 0
    skipped: int = 0
    execution: UUID | None = None  # its newest child, of a foreach the first; set by the store
    iteration: int = 0  # of a loop: how many runs began before the present one
    total: int = 0  # of a foreach: items, and what became of them
    ok: int = 0
    bad: int = 0
    taken: int = 0  # of those that succeeded, the ones that a rerun took over
    began_at: Instant | None = None
    ended_at: Instant | None = None
    ended_seq: int | None = None
    result: bytes | None = None  # JSON; None for null, and of a foreach, whose results lie with its children
    error: Failure | None = None
    reason: str = ""
    wake_at: Instant | None = None
    done: tuple[int, ...] | None = None  # of a foreach: the items that succeeded, where asked for; None: unknown

    @property
    def is_final(self) -> bool:
        return self.state in FINAL


class Ended(Struct, frozen=True, kw_only=True):
    """Children of one step that have ended, or a wait that is over: news for the workflow.

    Of a foreach it counts all that ended in one transaction; of anything else there is one. What is not true any more
    (a step that has ended, another child than the present one) changes nothing.
    """

    step: str
    state: Final = "success"
    result: bytes | None = None
    error: Failure | None = None
    reason: str = ""
    execution: UUID | None = None  # of the child, where there is one; not of a foreach
    ok: int = 0  # of a foreach: items that succeeded, and others
    bad: int = 0
    cancelled: int = 0  # of the others, those that were cancelled
    forced: bool = False  # somebody decided it by hand, whatever the step was doing


class Start(Struct, frozen=True, kw_only=True):
    """Children to be started: one, or of a foreach one for each item, as job and version of the pin named `step`.

    The step's row is among the changed ones; its `execution` is the store's to fill in. What cannot be started (the job
    is deleted, the params do not fit its schema) is told to `after` as a failed `Ended`, in the same transaction.
    """

    step: str  # of an undoing, its `undo_name`
    items: Sequence[bytes]  # params as JSON
    foreach: bool = False
    places: Sequence[int] | None = None  # of the items among all, where a rerun takes the others over
    concurrency: int | None = None  # how many of a foreach may be on the way at once
    ordered: bool = False  # one after another, each after the end of the one before it
    iteration: int = 0
    delay: Micros = 0  # before it may start
    priority: int | None = None


class Await(Struct, frozen=True, kw_only=True):
    """Something that a step waits for without a child: its names and texts filled in.

    A `Sleep` needs nothing but the row's `wake_at`. When what is waited for comes, or its time has passed, `after` is
    told so by an `Ended`.
    """

    step: str
    wait: Wait
    wake_at: Instant | None = None  # when the wait is too long, or a sleep is over
    remind_at: Instant | None = None


class End(Struct, frozen=True, kw_only=True):
    """The end of a workflow's execution."""

    state: Verdict
    result: bytes | None = None
    error: Failure | None = None
    reason: str = ""


class Decisions(Struct, kw_only=True):
    """What follows; the store writes all of it in the transaction of what it follows from.

    In this order: `rest` on what is stored, then `rows` and `flow`, then `starts` and `awaits`, then `stop` and
    `cancel`, whose children end at once or later: each such end is told to `after`. Of an `end` nothing but the end
    of the parent itself follows.
    """

    flow: Flow
    rows: dict[str, StepRow] = {}  # that are new or changed
    fresh: set[str] = set()  # of these, those that are new
    rest: Final | None = None  # what all rows of the flow that are pending or held become, with reason `GIVEN_UP`
    starts: list[Start] = []
    awaits: list[Await] = []
    cancel: list[str] = []  # steps whose children are to be cancelled
    stop: bool = False  # the same for all that is open: children, and waits
    end: End | None = None


class Ask(Struct, frozen=True):
    """What a decision must know next: rows of steps, and of some of them the result as well."""

    rows: frozenset[str] = frozenset()
    results: frozenset[str] = frozenset()  # rows, too, with `result`; of a foreach the JSON list in the order of items
    items: frozenset[str] = frozenset()  # rows of foreach steps, with `done`


Rows: TypeAlias = Mapping[str, StepRow]
T = TypeVar("T")
# A decision asks and is answered, until it is made; so it reads only what it depends on.
Deciding: TypeAlias = Generator[Ask, Rows, T]


class About(Struct, frozen=True, kw_only=True):
    """What expressions may speak of beside steps: the workflow's own execution."""

    id: UUID
    params: bytes = b"{}"  # with the job's own beneath, as a child of it would see them
    due_at: Instant = 0
    interval: tuple[Instant, Instant] | None = None
    most_items: int = MOST_ITEMS  # of a foreach
    secret: bytes = b""  # with which the URLs of its callbacks are made
