"""Rows of workflows and of their steps. A transaction that changes them has locked the root, see `locks`."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.base.ids import index_of, parcel_of
from horae.model.executions.execution import Extra
from horae.model.fleet.protocol import MAX_INLINE_RESULT, Failure
from horae.model.workflows.decisions.workflow import Pin, StepRow, WorkflowContext, WorkflowExecution
from horae.store.base.shelves import ITEM, Columns, json_or_none, names
from horae.store.script import Fetch, ForEach, Insert, Row, Script, Statement
from horae.store.workflows import terms as workflow_terms

# Stored states besides those in `WorkflowState`: the workflow has left the queue but has no steps yet, or has ended.
OPENING, ENDED = "opening", "ended"
ALL = "*"  # in the column `stops`: all steps are to be stopped

FIXED_COLUMNS: Columns = (
    *ITEM, ("execution", "uuid"), ("root", "uuid"), ("parent", "uuid"), ("namespace", "int"), ("job", "uuid"),
    ("version", "int"), ("digest", "text"), ("params", "bytea"), ("extra", "bytea"), ("priority", "smallint"),
    ("deadline", "bigint"), ("due_at", "bigint"), ("queued_at", "bigint"), ("began_at", "bigint"), ("until", "bigint"),
)  # fmt: skip
STATE_COLUMNS: Columns = (
    ("state", "text"), ("phase", "text"), ("verdict", "text"), ("remaining", "int"), ("begun", "int"),
    ("ended", "int"), ("stopped", "bool"), ("paused", "bool"), ("cause", "text"), ("reason", "text"), ("error", "text"),
    ("marks", "text"), ("stops", "text"), ("wake_at", "bigint"),
)  # fmt: skip
WORKFLOWS: Columns = (
    *FIXED_COLUMNS,
    *STATE_COLUMNS,
)  # not the column `pins`: it has an entry for each step, and is read only when needed
STEP: Columns = (*ITEM, ("step", "text"))
STEPS: Columns = (
    *STEP, ("job", "uuid"), ("version", "int"), ("phase", "text"), ("state", "text"), ("missing", "int"),
    ("succeeded", "int"), ("failed", "int"), ("skipped", "int"), ("execution", "uuid"), ("iteration", "int"),
    ("total", "int"), ("ok", "int"), ("bad", "int"), ("taken", "int"), ("began_at", "bigint"), ("ended_at", "bigint"),
    ("ended_seq", "int"), ("error", "text"), ("reason", "text"), ("wake_at", "bigint"), ("result", "bytea"),
)  # fmt: skip
RESULT_AT = len(STEPS) - 1
_OF_STEP = "ON s.parcel = given.parcel AND s.item = given.item AND s.step = given.step"
_STEP_HEAD = names(STEPS[:RESULT_AT], "s.")
OF_WORKFLOWS = Statement(
    "workflows_of",
    f"SELECT {names(WORKFLOWS, 'f.')} FROM given JOIN flows f ON f.parcel = given.parcel AND f.item = given.item",
)
# Results are read only on request: one result may be larger than all other columns of the workflow's rows.
OF_STEPS = Statement(
    "workflow_steps_of",
    f"SELECT {_STEP_HEAD}, CASE WHEN given.wanted THEN s.result END FROM given JOIN flow_steps s {_OF_STEP}",
)
# Reads with one statement instead of four: the steps that a workflow's next decision needs first; the workflow itself,
# in the row of the step that has `given.first`; and the terms of the steps that may start, see `terms`.
WITH_STEPS = Statement(
    "workflows_with_steps",
    f"SELECT {_STEP_HEAD}, NULL, {names(WORKFLOWS, 'f.')}, {workflow_terms.COLUMNS} FROM given"
    f" JOIN flow_steps s {_OF_STEP}"
    " LEFT JOIN flows f ON given.first AND f.parcel = given.parcel AND f.item = given.item"
    " LEFT JOIN jobs j ON given.starts AND j.id = s.job"
    " LEFT JOIN job_versions v ON v.job = j.id AND v.version = s.version LEFT JOIN queues q ON q.id = v.queue",
    at_once=True,
)
WORKFLOW_AT, TERMS_AT = len(STEPS), len(STEPS) + len(WORKFLOWS)
FIRST: Columns = (*STEP, ("first", "bool"), ("starts", "bool"), ("at", "bigint"))
WANTED: Columns = (*STEP, ("wanted", "bool"))
PINS = Statement("pins_of_workflow", "SELECT f.pins FROM flows f WHERE f.parcel = $1 AND f.item = $2")
_ALL_OF = f"SELECT {_STEP_HEAD}, NULL FROM given JOIN flow_steps s ON s.parcel = given.parcel AND s.item = given.item"
EVERY_STEP = Statement("workflow_steps_all", _ALL_OF)
OPEN_STEPS = Statement("workflow_steps_open", f"{_ALL_OF} WHERE s.state IN ('waiting', 'running')")
FAILED_STEPS = Statement("workflow_steps_failed", f"{_ALL_OF} WHERE s.state = 'failed' ORDER BY s.ended_seq")
HELD_STEPS = Statement("workflow_steps_held", f"{_ALL_OF} WHERE s.state = 'held'")
_CHANGES = [name for name, _ in STEPS[len(STEP) + 2 : RESULT_AT]]
SET_STEPS = Statement(
    "set_workflow_steps",
    f"UPDATE flow_steps SET {', '.join(f'{name} = given.{name}' for name in _CHANGES)},"
    " result = CASE WHEN given.known THEN given.result ELSE flow_steps.result END FROM given"
    " WHERE flow_steps.parcel = given.parcel AND flow_steps.item = given.item AND flow_steps.step = given.step",
)
SET_COLUMNS: Columns = (*STEP, *STEPS[len(STEP) + 2 :], ("known", "bool"))
SET_WORKFLOWS = Statement(
    "set_workflows",
    f"UPDATE flows SET {', '.join(f'{name} = given.{name}' for name, _ in STATE_COLUMNS)} FROM given"
    " WHERE flows.parcel = given.parcel AND flows.item = given.item",
)
END_OTHER_STEPS = Statement(
    "end_other_steps",
    "UPDATE flow_steps SET state = given.state, reason = given.reason, ended_at = given.at FROM given"
    " WHERE flow_steps.parcel = given.parcel AND flow_steps.item = given.item"
    " AND flow_steps.state IN ('pending', 'held')",
)
END_OTHER_COLUMNS: Columns = (*ITEM, ("state", "text"), ("reason", "text"), ("at", "bigint"))
_read_failure = msgspec.json.Decoder(Failure).decode
_read_extra = msgspec.json.Decoder(Extra).decode
_read_stops = msgspec.json.Decoder(list[str]).decode
_read_pins = msgspec.json.Decoder(dict[str, Pin]).decode


class Marks(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The parts of a workflow's state that few workflows have; they are stored as JSON in one column."""

    breakpoints: tuple[str, ...] = ()  # steps before which the workflow stops
    undo: tuple[str, ...] = ()  # the steps to undo, in this order


_read_marks = msgspec.json.Decoder(Marks).decode
_UNMARKED = msgspec.json.encode(Marks()).decode()


class StoredWorkflow(Struct, frozen=True, kw_only=True):
    """A workflow as it is stored: its state, and its columns that never change."""

    workflow: WorkflowExecution
    parent: UUID | None
    namespace: int
    digest: str
    params: bytes
    extra: Extra
    priority: int
    deadline: Instant | None
    due_at: Instant
    queued_at: Instant
    began_at: Instant
    until: Instant | None  # the deadline: a workflow that has not ended then fails
    state: str
    stops: frozenset[str]  # steps whose executions are still to be stopped; ALL for all steps
    wake_at: Instant | None  # when the server must act next: begin it, stop steps, or check `until`
    secret: bytes = b""  # signs the URLs of callbacks; read only for workflows with callbacks, never written to the row

    @property
    def place(self) -> tuple[UUID, int]:
        """Return the key of its row: the parcel and the item of its execution."""
        return parcel_of(self.workflow.execution), index_of(self.workflow.execution)

    @property
    def about(self) -> WorkflowContext:
        """Return the values to which its expressions may refer."""
        return WorkflowContext(
            id=self.workflow.execution, params=self.params, due_at=self.due_at, interval=self.extra.interval,
            secret=self.secret,
        )  # fmt: skip


def read_workflow(row: Row) -> StoredWorkflow:
    (
        _, _, execution, root, parent, namespace, job, version, digest, params, extra, priority, deadline, due_at,
        queued_at, began_at, until, state, phase, verdict, left, begun, ended, stopped, paused, cause, reason, error,
        marks, stops, wake_at,
    ) = row  # fmt: skip
    decoded = _read_marks(marks)
    workflow = WorkflowExecution(
        execution=execution, root=root, job=job, version=version, phase=phase, verdict=verdict, left=left, open=begun,
        ended=ended, stopped=bool(stopped), paused=bool(paused), breakpoints=frozenset(decoded.breakpoints),
        undo=decoded.undo, cause=cause, error=None if error is None else _read_failure(error), reason=reason,
    )  # fmt: skip
    return StoredWorkflow(
        workflow=workflow, parent=parent, namespace=namespace, digest=digest, params=params, extra=_read_extra(extra),
        priority=priority, deadline=deadline, due_at=due_at, queued_at=queued_at, began_at=began_at, until=until,
        state=state, stops=frozenset(_read_stops(stops)), wake_at=wake_at,
    )  # fmt: skip


def read_step(row: Row) -> tuple[StepRow, Pin | None]:
    """Return a step and the job version that it runs."""
    (
        _, _, step, job, version, phase, state, missing, succeeded, failed, skipped, execution, iteration, total, ok,
        bad, taken, began_at, ended_at, ended_seq, error, reason, wake_at, result,
    ) = row[: len(STEPS)]  # fmt: skip
    step_row = StepRow(
        step=step, phase=phase, state=state, missing=missing, succeeded=succeeded, failed=failed, skipped=skipped,
        execution=execution, iteration=iteration, total=total, ok=ok, bad=bad, reused=taken, began_at=began_at,
        ended_at=ended_at, ended_seq=ended_seq, result=result, reason=reason, wake_at=wake_at,
        error=None if error is None else _read_failure(error),
    )  # fmt: skip
    return step_row, None if job is None else Pin(job, version)


def _fixed_values(held: StoredWorkflow) -> tuple[Any, ...]:
    workflow = held.workflow
    return (
        *held.place, workflow.execution, workflow.root, held.parent, held.namespace, workflow.job, workflow.version,
        held.digest, held.params, msgspec.json.encode(held.extra), held.priority, held.deadline, held.due_at,
        held.queued_at, held.began_at, held.until,
    )  # fmt: skip


def _state_values(held: StoredWorkflow) -> tuple[Any, ...]:
    workflow = held.workflow
    marked = workflow.breakpoints or workflow.undo
    marks = _text(Marks(tuple(sorted(workflow.breakpoints)), workflow.undo)) if marked else _UNMARKED
    return (
        held.state, workflow.phase, workflow.verdict, workflow.left, workflow.open, workflow.ended,
        workflow.stopped, workflow.paused, workflow.cause, workflow.reason, json_or_none(workflow.error), marks,
        _text(sorted(held.stops)) if held.stops else "[]", held.wake_at,
    )  # fmt: skip


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def put_workflows(workflows: Iterable[StoredWorkflow]) -> Insert:
    """Return the Insert of new workflows, with the job versions that their steps run (`pins`)."""
    columns: Columns = (*WORKFLOWS, ("pins", "text"))
    return Insert(
        "flows",
        columns,
        [(*_fixed_values(held), *_state_values(held), _text(held.workflow.pins)) for held in workflows],
    )


def pins_of(place: "Place") -> Script[dict[str, Pin]]:
    """Return the job versions that the steps of a workflow run; they were chosen when it began."""
    rows = yield Fetch(PINS, place)
    return _read_pins(rows[0][0])


def set_workflows(workflows: Iterable[StoredWorkflow]) -> ForEach:
    """Return the statement that writes the state of workflows to their rows."""
    return ForEach(SET_WORKFLOWS, (*ITEM, *STATE_COLUMNS), [(*held.place, *_state_values(held)) for held in workflows])


def _step_values(row: StepRow) -> tuple[Any, ...]:
    """Return the values of a step's columns that change.

    A large result is not among them, because it is stored with the child. But a result that a rerun took over has no
    child in the new workflow, so it is stored here whatever its size.
    """
    is_large = row.result is not None and len(row.result) > MAX_INLINE_RESULT
    result = None if is_large and (row.execution is not None or row.total) else row.result
    return (
        row.phase, row.state, row.missing, row.succeeded, row.failed, row.skipped, row.execution, row.iteration,
        row.total, row.ok, row.bad, row.reused, row.began_at, row.ended_at, row.ended_seq, json_or_none(row.error),
        row.reason, row.wake_at, result,
    )  # fmt: skip


Place = tuple[UUID, int]


def put_steps(steps: Iterable[tuple[Place, StepRow, Pin | None]]) -> Insert:
    """Return the Insert of new steps, with the job versions that they run."""
    rows = [
        (*place, row.step, *((None, None) if pin is None else (pin.job, pin.version)), *_step_values(row))
        for place, row, pin in steps
    ]
    return Insert("flow_steps", STEPS, rows)


def set_steps(steps: Iterable[tuple[Place, StepRow, bool]]) -> ForEach:
    """Return the statement that writes the state of steps to their rows.

    Each step has a flag: True if its result is known. Otherwise the stored result is not changed.
    """
    return ForEach(
        SET_STEPS, SET_COLUMNS, [(*place, row.step, *_step_values(row), known) for place, row, known in steps]
    )


def workflows_of(executions: Collection[UUID]) -> Script[dict[UUID, StoredWorkflow]]:
    """Read workflows by their executions."""
    rows = yield ForEach(
        OF_WORKFLOWS, ITEM, sorted((parcel_of(execution), index_of(execution)) for execution in executions)
    )
    found = map(read_workflow, rows)
    return {held.workflow.execution: held for held in found}


def steps_of(
    wanted: Sequence[tuple[UUID, int, str, bool]],
) -> Script[dict[tuple[Place, str], tuple[StepRow, Pin | None]]]:
    """Read steps by the place of their workflow and their name; the flag of each says whether to read its result."""
    rows = yield ForEach(OF_STEPS, WANTED, wanted)
    return {((row[0], row[1]), row[2]): read_step(row) for row in rows}


Pinned = tuple[StepRow, Pin | None]  # a step, and the job version that it runs


def some_steps(statement: Statement, places: Collection[Place]) -> Script[dict[Place, list[Pinned]]]:
    """Read those steps of the workflows at `places` that the statement selects."""
    found: dict[Place, list[Pinned]] = {place: [] for place in places}
    for row in (yield ForEach(statement, ITEM, sorted(places))):
        found[row[0], row[1]].append(read_step(row))
    return found
