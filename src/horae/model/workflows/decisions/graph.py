"""The graph of a workflow's execution for users: steps, edges, times, and its critical path."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal
from uuid import UUID

from msgspec import UNSET, UnsetType, field

from horae.env import Instant
from horae.model.base.instant import format_instant
from horae.model.base.view import Time, View, shown_time
from horae.model.fleet.protocol import Failure
from horae.model.workflows.decisions.plan import Plan
from horae.model.workflows.decisions.values import UNDO, WorkflowStep
from horae.model.workflows.decisions.workflow import Pin, StepRow, StepState, WorkflowExecution
from horae.model.workflows.waits import Approval, Callback, EventWait, SignalWait, Sleep, Wait

Kind = Literal["job", "foreach", "loop", "switch", "sleep", "event", "signal", "approval", "callback"]
WAITS: Mapping[type, Kind] = {
    Sleep: "sleep",
    EventWait: "event",
    SignalWait: "signal",
    Approval: "approval",
    Callback: "callback",
}
NO_WAITS: Mapping[str, Wait] = {}
Starts = Mapping[str, Instant | None]  # the start of each step's execution; None if it has not begun
NO_STARTS: Starts = {}


class ForeachCounts(View, frozen=True, kw_only=True):
    """The results so far of the executions of a foreach step.

    `reused` counts the successful items that ran in an earlier execution and whose results this rerun reuses.
    """

    total: int
    success: int
    failed: int
    remaining: int
    reused: int | UnsetType = UNSET


class GraphWait(View, frozen=True, kw_only=True):
    """The wait of a step: the name of an event or signal, or the message and roles of an approval."""

    name: str | UnsetType = UNSET
    message: str | UnsetType = UNSET
    roles: list[str] | UnsetType = UNSET


class GraphNode(View, frozen=True, kw_only=True):
    """A step: its kind, its state, and its newest execution (of a foreach, the first)."""

    step: str
    phase: str
    kind: Kind
    status: str
    job: str | None = None
    version: int | None = None
    execution_id: UUID | None = None
    run: int | UnsetType = UNSET  # of a loop: the number of the current run, from 1; 0 before the first
    items: ForeachCounts | UnsetType = UNSET
    waits_for: GraphWait | UnsetType = UNSET
    ready_at: Time | None = None  # when it became ready to start
    # When its execution started, for a foreach the first one; a step without an execution starts when it is ready.
    started_at: Time | None = None
    ended_at: Time | None = None
    wake_at: Time | None = None
    waited: float | None = None  # seconds from `ready_at` to its start, or until now
    seconds: float | None = None  # seconds from its start to its end, or until now
    reason: str = ""
    error: Failure | None = None
    critical: bool = False


class GraphEdge(View, frozen=True, kw_only=True):
    """An edge: the target runs after the source."""

    source: str = field(name="from")
    target: str = field(name="to")


class PathTimes(View, frozen=True, kw_only=True):
    """The time on the critical path: the seconds in which its steps waited to start, and in which they ran."""

    waited: float
    ran: float


class GraphView(View, frozen=True, kw_only=True):
    """The graph of an execution of a workflow.

    `criticalPath` lists the steps that determined the workflow's duration, in order: shortening one of them shortens
    the workflow.
    """

    execution_id: UUID
    job: str
    version: int
    status: str
    phase: str
    paused: bool
    started_at: Time
    ended_at: Time | None = None
    cause: str | None = None
    error: Failure | None = None
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    critical_path: list[str]
    critical_seconds: PathTimes


def kind_of(step: WorkflowStep | None) -> Kind:
    """Return the kind of a step."""
    if step is None:
        return "job"
    if step.wait is not None:
        return WAITS[type(step.wait)]
    if step.switch:
        return "switch"
    return "foreach" if step.foreach is not None else "loop" if step.loop is not None else "job"


def show_graph(
    plan: Plan,
    workflow: WorkflowExecution,
    rows: Iterable[tuple[StepRow, Pin | None]],
    names: Mapping[UUID, str],
    began_at: Instant,
    ended_at: Instant | None,
    status: str,
    now: Instant,
    waits: Mapping[str, Wait] = NO_WAITS,
    starts: Starts = NO_STARTS,
) -> GraphView:
    """Return the graph of a workflow. Its nodes, also those of later phases, are in an order in which they can run."""
    stored = {row.step: (row, pin) for row, pin in rows}
    order = [*plan.order["main"], *_undoings(stored)]
    order += [name for phase, names in plan.order.items() if phase != "main" for name in names]
    rest: StepState = "pending" if ended_at is None else "skipped"
    blank = {
        name: (StepRow(step=name, phase=plan.nodes[name].phase, state=rest), None)
        for name in order
        if name in plan.nodes
    }
    steps = {name: stored.get(name) or blank[name] for name in order}
    path = critical_path(plan, {name: row for name, (row, _) in steps.items()}, ended_at or now)
    on_path = frozenset(path)
    nodes = [
        _node(plan, row, pin, names, row.step in on_path, now, waits.get(row.step), starts)
        for row, pin in steps.values()
    ]
    return GraphView(
        execution_id=workflow.execution,
        job=names.get(workflow.job, ""),
        version=workflow.version,
        status=status,
        phase=workflow.phase,
        paused=workflow.paused,
        started_at=shown_time(began_at) or "",
        ended_at=shown_time(ended_at),
        cause=workflow.cause or None,
        error=workflow.error,
        nodes=nodes,
        edges=_edges(plan, order),
        critical_path=path,
        critical_seconds=PathTimes(
            waited=sum(node.waited or 0 for node in nodes if node.critical),
            ran=sum(node.seconds or 0 for node in nodes if node.critical),
        ),
    )


def _edges(plan: Plan, order: Iterable[str]) -> list[GraphEdge]:
    nodes = ((name, plan.nodes[name]) for name in order if name in plan.nodes)
    return [GraphEdge(source=upstream, target=name) for name, node in nodes for upstream in node.upstreams]


def _undoings(stored: Mapping[str, tuple[StepRow, Pin | None]]) -> list[str]:
    """Return the undo steps in their order: the step that ended last is undone first."""

    def ended(name: str) -> int:
        undone = stored.get(name.removesuffix(UNDO))
        return -1 if undone is None or undone[0].ended_seq is None else undone[0].ended_seq

    return sorted((name for name in stored if name.endswith(UNDO)), key=ended, reverse=True)


def _node(
    plan: Plan,
    row: StepRow,
    pin: Pin | None,
    names: Mapping[UUID, str],
    critical: bool,
    now: Instant,
    wait: Wait | None,
    starts: Starts,
) -> GraphNode:
    node = plan.nodes.get(row.step)
    kind = kind_of(None if node is None else node.step)
    more: dict[str, Any] = {}
    if kind == "loop":
        more["run"] = row.iteration + 1 if row.began_at is not None else 0
    if row.total:
        left = row.total - row.ok - row.bad
        more["items"] = ForeachCounts(
            total=row.total, success=row.ok, failed=row.bad, remaining=left, reused=row.reused or UNSET
        )
    if wait is not None:
        more["waits_for"] = _wait(wait)
    started, waited, ran = _times(row, starts, now)
    return GraphNode(
        step=row.step,
        phase=row.phase,
        kind=kind,
        status=row.state,
        job=None if pin is None else names.get(pin.job),
        version=None if pin is None else pin.version,
        execution_id=row.execution,
        ready_at=shown_time(row.began_at),
        started_at=shown_time(started),
        ended_at=shown_time(row.ended_at),
        wake_at=shown_time(row.wake_at),
        waited=waited,
        seconds=ran,
        reason=row.reason,
        error=row.error,
        critical=critical,
        **more,
    )


def _times(row: StepRow, starts: Starts, now: Instant) -> tuple[Instant | None, float | None, float | None]:
    """Return when a step started, how many seconds it waited to start, and how many seconds it ran.

    A step without an execution, or with one that is no longer stored, counts as started when it was ready. A step whose
    execution ended before a worker took it has only waited.
    """
    if row.began_at is None:
        return None, None, None
    end = row.ended_at or now
    start = starts.get(row.step)
    has_not_begun = row.step in starts or row.state in ("running", "cancelled")
    if start is None and row.execution is not None and has_not_begun:
        return None, (end - row.began_at) / 1_000_000, None
    started = min(max(row.began_at, start or row.began_at), end)
    return started, (started - row.began_at) / 1_000_000, (end - started) / 1_000_000


def _wait(wait: Wait) -> GraphWait:
    if isinstance(wait, EventWait | SignalWait):
        return GraphWait(name=wait.name)
    if isinstance(wait, Approval):
        return GraphWait(message=wait.message, roles=list(wait.roles))
    return GraphWait()


def describe_wait(wait: Wait | None, until: Instant | None) -> str:
    """Describe the wait of a step for users."""
    if isinstance(wait, EventWait | SignalWait):
        return f"for the {WAITS[type(wait)]} {wait.name!r}"
    if isinstance(wait, Approval):
        roles = f" of {', '.join(wait.roles)}" if wait.roles else ""
        return f"for the approval{roles}" + (f": {wait.message}" if wait.message else "")
    if isinstance(wait, Callback):
        return "until its URL is called"
    return "" if until is None else f"until {format_instant(until)}"


def critical_path(plan: Plan, rows: Mapping[str, StepRow], now: Instant) -> list[str]:
    """Return the steps of the main phase that determined its duration, in order.

    They are found backwards: from the step that ended last to its upstream that ended last, and so on.
    """

    def end(name: str) -> tuple[Instant, int]:
        row = rows[name]
        return (row.ended_at or now, row.ended_seq if row.ended_seq is not None else len(rows))

    begun = [name for name, row in rows.items() if row.began_at is not None and name in plan.nodes]
    main = [name for name in begun if rows[name].phase == "main"]
    path: list[str] = []
    last = max(main, key=end, default=None)
    while last is not None:
        path.append(last)
        last = max((name for name in plan.nodes[last].upstreams if name in main), key=end, default=None)
    return path[::-1]
