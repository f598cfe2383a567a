"""A running workflow: the state of its execution and of its steps, and the decisions about them.

The store keeps a `Flow` for each execution of a workflow and a `StepRow` for each step of the phases it has reached.
All input to a decision is a `StepEnd`; all its consequences are in `Decisions`.
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
OPEN: frozenset[str] = frozenset({"waiting", "running"})  # begun and not ended: something is in progress for it

# Reasons of steps that are held, did not run, or ended without an execution.
PAUSED, BREAKPOINT = "paused", "breakpoint"
NOT_WANTED = "when"  # its condition was false
NOT_JOINED = "join"  # the ends of its upstreams do not match its join rule
NOT_CHOSEN = "switch"  # no upstream switch chose it
GIVEN_UP = "workflow"  # the workflow failed or was cancelled before it began
TOLERANCE = "tolerance"  # more items of a foreach failed than it tolerates
BOUND = "bound"  # a loop needed more runs than its limit
FAULT = "expression"  # an expression could not be computed or gave an unusable value


class Pin(Struct, frozen=True, array_like=True):
    """The job version that a step of one workflow execution runs, fixed when the execution begins."""

    job: UUID
    version: int


class Flow(Struct, frozen=True, kw_only=True):
    """An execution of a workflow. It ends when its last phase has no steps left."""

    execution: UUID
    root: UUID  # the outermost workflow that contains it; its own id if there is none
    job: UUID
    version: int
    phase: Phase = "main"
    verdict: Verdict = "success"  # the result if nothing else happens
    left: int = 0  # steps of the phase that have not ended
    open: int = 0  # of these, the steps that have begun
    ended: int = 0  # ended steps of all phases; the next step's `ended_seq`
    stopped: bool = False  # the phase starts no more steps, because it failed or was cancelled
    paused: bool = False
    breakpoints: frozenset[str] = frozenset()  # steps before which it stops
    undo: tuple[str, ...] = ()  # the steps to undo, in this order, once known
    cause: str = ""  # the step whose failure led to the verdict
    error: Failure | None = None  # of that step, or of the workflow itself
    reason: str = ""  # the reason of the end in one word: timeout, cancelled, ...
    pins: Mapping[str, Pin] = {}  # by step name, or by `undo_name`

    @property
    def state(self) -> FlowState:
        """The state in one word, for users and filters."""
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
    missing: int = 0  # upstreams that have not ended; the next three count ended upstreams
    succeeded: int = 0
    failed: int = 0
    skipped: int = 0
    execution: UUID | None = None  # its newest child; the first child of a foreach; set by the store
    iteration: int = 0  # of a loop: the number of runs before the current one
    total: int = 0  # of a foreach: the number of items; the next two count their results
    ok: int = 0
    bad: int = 0
    taken: int = 0  # of the successful items, those reused by a rerun
    began_at: Instant | None = None
    ended_at: Instant | None = None
    ended_seq: int | None = None
    result: bytes | None = None  # JSON; None for null and for a foreach, whose results are stored with its children
    error: Failure | None = None
    reason: str = ""
    wake_at: Instant | None = None
    done: tuple[int, ...] | None = None  # of a foreach: the successful items, if loaded; None if not

    @property
    def is_final(self) -> bool:
        return self.state in FINAL


class StepEnd(Struct, frozen=True, kw_only=True):
    """Ended children of one step, or an ended wait: the input for the workflow's next decision.

    For a foreach it counts all children that ended in one transaction; otherwise there is exactly one. An outdated
    message (for a step that has ended, or a child that was replaced) has no effect.
    """

    step: str
    state: Final = "success"
    result: bytes | None = None
    error: Failure | None = None
    reason: str = ""
    execution: UUID | None = None  # of the child, if there is one; not set for a foreach
    ok: int = 0  # of a foreach: the number of successful items; `bad` counts the others
    bad: int = 0
    cancelled: int = 0  # of the others, the number of cancelled items
    forced: bool = False  # a user decided it by hand, whatever the step was doing


class Start(Struct, frozen=True, kw_only=True):
    """Children to start: one, or one per item of a foreach, with the job and version of the pin named `step`.

    The step's row is among the changed rows; the store fills in its `execution`. If a child cannot be started (its job
    is deleted, or its params do not fit the schema), `after` receives a failed `StepEnd` in the same transaction.
    """

    step: str  # for an undo step, its `undo_name`
    items: Sequence[bytes]  # params as JSON
    foreach: bool = False
    places: Sequence[int] | None = None  # indexes of the items among all items, if a rerun reuses the others
    concurrency: int | None = None  # the maximum number of foreach children in progress at once
    ordered: bool = False  # one at a time, each after the end of the one before it
    iteration: int = 0
    delay: Micros = 0  # minimum delay before the start
    priority: int | None = None


class StepWait(Struct, frozen=True, kw_only=True):
    """A wait of a step that has no child, with its names and texts rendered.

    A `Sleep` needs only the row's `wake_at`. When the awaited event arrives or the time is over, `after` receives an
    `StepEnd`.
    """

    step: str
    wait: Wait
    wake_at: Instant | None = None  # when the wait times out, or a sleep is over
    remind_at: Instant | None = None


class FlowEnd(Struct, frozen=True, kw_only=True):
    """The end of a workflow's execution."""

    state: Verdict
    result: bytes | None = None
    error: Failure | None = None
    reason: str = ""


class Decisions(Struct, kw_only=True):
    """The consequences of a decision; the store writes all of them in the transaction of their cause.

    They are applied in this order: `rest` to the stored rows, then `rows` and `flow`, then `starts` and `awaits`, then
    `stop` and `cancel`. Children stopped that way end at once or later, and each end is passed to `after`. An `end` has
    only one consequence: the parent's own end.
    """

    flow: Flow
    rows: dict[str, StepRow] = {}  # new and changed rows
    fresh: set[str] = set()  # of these, the new ones
    rest: Final | None = None  # the new state of all pending and held rows of the flow, with reason `GIVEN_UP`
    starts: list[Start] = []
    awaits: list[StepWait] = []
    cancel: list[str] = []  # steps whose children are to be cancelled
    stop: bool = False  # the same for everything open: children and waits
    end: FlowEnd | None = None


class RowRequest(Struct, frozen=True):
    """The rows that a decision needs next, some of them with results."""

    rows: frozenset[str] = frozenset()
    results: frozenset[str] = frozenset()  # rows with `result`; for a foreach it is the JSON list in item order
    items: frozenset[str] = frozenset()  # rows of foreach steps, with `done`


Rows: TypeAlias = Mapping[str, StepRow]
T = TypeVar("T")
# A decision asks for rows until it is complete, so it reads only the rows it depends on.
Deciding: TypeAlias = Generator[RowRequest, Rows, T]


class FlowContext(Struct, frozen=True, kw_only=True):
    """The workflow's own execution, as an input to expressions."""

    id: UUID
    params: bytes = b"{}"  # merged over the job's own params, as a child would see them
    due_at: Instant = 0
    interval: tuple[Instant, Instant] | None = None
    most_items: int = MOST_ITEMS  # of a foreach
    secret: bytes = b""  # the secret that signs callback URLs
