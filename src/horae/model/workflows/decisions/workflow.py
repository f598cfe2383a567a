"""A running workflow: the state of its execution and of its steps, and the decisions about them.

The store keeps a `WorkflowExecution` for each execution of a workflow, and a `StepRow` for each step of the phases it
has reached. The ends of steps reach a decision as `StepEnd`s; its `Decisions` are all consequences of the decision.
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

WorkflowState = Literal["running", "failing", "cancelling", "undoing", "ending"]
Verdict = Literal["success", "failed", "cancelled"]
StepState = Literal["pending", "held", "waiting", "running", "success", "failed", "skipped", "cancelled"]
Final = Literal["success", "failed", "skipped", "cancelled"]

FINAL: frozenset[str] = frozenset({"success", "failed", "skipped", "cancelled"})
OPEN: frozenset[str] = frozenset({"waiting", "running"})  # states of steps that have begun and not ended

# Reasons of steps that are held, did not run, or ended without an execution.
PAUSED, BREAKPOINT = "paused", "breakpoint"
NOT_WANTED = "when"  # the step's condition was false
NOT_JOINED = "join"  # the outcomes of the step's upstreams do not match its join rule
NOT_CHOSEN = "switch"  # a switch before the step chose other steps
GIVEN_UP = "workflow"  # the workflow failed or was cancelled before the step began
TOLERANCE = "tolerance"  # more items of a foreach failed than it tolerates
BOUND = "bound"  # a loop needed more runs than its limit
FAULT = "expression"  # an expression could not be computed or gave an unusable value


class Pin(Struct, frozen=True, array_like=True):
    """The job version that a step of one workflow execution runs, fixed when the execution begins."""

    job: UUID
    version: int


class WorkflowExecution(Struct, frozen=True, kw_only=True):
    """An execution of a workflow. It ends when its last phase has no steps left."""

    execution: UUID
    root: UUID  # the outermost workflow that contains it; its own id if there is none
    job: UUID
    version: int
    phase: Phase = "main"
    verdict: Verdict = "success"  # the final state, unless a later failure or a cancellation changes it
    left: int = 0  # steps of the phase that have not ended
    open: int = 0  # steps of the phase that have begun and not ended
    ended: int = 0  # the number of ended steps in all phases; the step that ends next gets it as its `ended_seq`
    stopped: bool = False  # the phase starts no more steps, because it failed or was cancelled
    paused: bool = False
    breakpoints: frozenset[str] = frozenset()  # steps that are held when they are ready, until a user resumes
    undo: tuple[str, ...] = ()  # the steps to undo, in this order, once known
    cause: str = ""  # the step whose failure led to the verdict
    error: Failure | None = None  # the failure of that step, or of the workflow itself
    reason: str = ""  # the reason of the end in one word: timeout, cancelled, ...
    pins: Mapping[str, Pin] = {}  # step name, or `undo_name` -> the job version

    @property
    def state(self) -> WorkflowState:
        """The state in one word, for users and filters."""
        if self.phase == "undo":
            return "undoing"
        if self.phase != "main":
            return "ending"
        words: dict[Verdict, WorkflowState] = {"success": "running", "failed": "failing", "cancelled": "cancelling"}
        return words[self.verdict]


class StepRow(Struct, frozen=True, kw_only=True):
    """A step of one execution of a workflow."""

    step: str
    phase: Phase = "main"
    state: StepState = "pending"
    missing: int = 0  # upstreams that have not ended
    succeeded: int = 0  # upstreams that have succeeded
    failed: int = 0  # upstreams that have failed or were cancelled
    skipped: int = 0  # upstreams that were skipped, or switches that chose other steps
    execution: UUID | None = None  # its newest child; the first child of a foreach; set by the store
    iteration: int = 0  # of a loop: the number of runs before the current one
    total: int = 0  # of a foreach: the number of items
    ok: int = 0  # of a foreach: the number of items that have succeeded
    bad: int = 0  # of a foreach: the number of items that have ended otherwise
    reused: int = 0  # of a foreach: the number of successful items whose results a rerun reuses
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
    """The end of a step's child, of several children of a foreach, or of a wait: the input of `decide.after`.

    For a foreach it counts the children that ended in one transaction. It has no effect if it is outdated: the step has
    ended already, or another child has replaced this one.
    """

    step: str
    state: Final = "success"
    result: bytes | None = None
    error: Failure | None = None
    reason: str = ""
    execution: UUID | None = None  # the child's execution; None for a wait and for a foreach
    ok: int = 0  # of a foreach: the number of successful items
    bad: int = 0  # of a foreach: the number of items that ended otherwise
    cancelled: int = 0  # of a foreach: the number of cancelled items; they are in `bad` too
    forced: bool = False  # a user, or a rerun, set this end, in whichever state the step was


class Start(Struct, frozen=True, kw_only=True):
    """Children to start: one, or one for each item of a foreach. `WorkflowExecution.pins` has their job and version.

    The step's row is among the changed rows; the store fills in its `execution`. If a child cannot be started (its job
    is deleted, or its params do not fit the schema), the store passes a failed `StepEnd` to `decide.after` in the same
    transaction.
    """

    step: str  # for an undo step, its `undo_name`
    items: Sequence[bytes]  # the params of each child, as JSON
    foreach: bool = False
    # If a rerun reuses the results of some items: the indexes, in the complete list, of the items to run.
    item_indexes: Sequence[int] | None = None
    concurrency: int | None = None  # the maximum number of foreach children in progress at once
    ordered: bool = False  # children run one at a time, each after the end of the child before it
    iteration: int = 0
    delay: Micros = 0  # minimum delay before the start
    priority: int | None = None


class StepWait(Struct, frozen=True, kw_only=True):
    """The wait of a step that waits instead of starting a child. Expressions in its name and message are evaluated.

    For a `Sleep` the store records nothing but the `wake_at` of the step's row. When the awaited event arrives or the
    wait times out, the store passes a `StepEnd` to `decide.after`.
    """

    step: str
    wait: Wait
    wake_at: Instant | None = None  # when the wait times out, or a sleep is over
    remind_at: Instant | None = None


class WorkflowResult(Struct, frozen=True, kw_only=True):
    """The end of a workflow's execution."""

    state: Verdict
    result: bytes | None = None
    error: Failure | None = None
    reason: str = ""


class Decisions(Struct, kw_only=True):
    """The consequences of a decision. The store writes all of them in the transaction that caused the decision.

    It applies them in this order: `unstarted_become` to the stored rows, then `rows` and `workflow`, then `starts` and
    `awaits`, then `stop` and `cancel`. Children stopped by these two end at once or later, and the store passes each
    end to `decide.after`. `end` ends the workflow's own execution and has no other consequence.
    """

    workflow: WorkflowExecution
    rows: dict[str, StepRow] = {}  # new and changed rows
    fresh: set[str] = set()  # the names in `rows` that are new rows
    unstarted_become: Final | None = None  # the new state of all pending and held rows, with reason `GIVEN_UP`
    starts: list[Start] = []
    awaits: list[StepWait] = []
    cancel: list[str] = []  # steps whose children are to be cancelled
    stop: bool = False  # whether to cancel all children, and to end all waits
    end: WorkflowResult | None = None


class RowRequest(Struct, frozen=True):
    """A request of a decision for the rows that it needs next: names of steps in up to three forms."""

    rows: frozenset[str] = frozenset()
    results: frozenset[str] = frozenset()  # rows with `result`; the result of a foreach is a JSON list in item order
    items: frozenset[str] = frozenset()  # rows of foreach steps with `done`


Rows: TypeAlias = Mapping[str, StepRow]
T = TypeVar("T")
# A decision asks for rows until it is complete, so it reads only the rows it depends on.
Deciding: TypeAlias = Generator[RowRequest, Rows, T]


class WorkflowContext(Struct, frozen=True, kw_only=True):
    """The workflow's own execution, as an input to expressions."""

    id: UUID
    params: bytes = b"{}"  # the params of the execution, merged over the default params of the job
    due_at: Instant = 0
    interval: tuple[Instant, Instant] | None = None
    most_items: int = MOST_ITEMS  # the maximum number of items of a foreach
    secret: bytes = b""  # the secret that signs callback URLs
