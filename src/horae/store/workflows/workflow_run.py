"""A workflow inside one transaction: the rows that its decisions have read, and the changes that they made.

The changes are collected in a `WorkflowRun` and written at the end. So later decisions of the transaction see the
changes of earlier ones, and each row is written once. The root of the workflow is locked before its first row is read.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import TypeVar
from uuid import UUID

import msgspec
from msgspec import structs

from horae.env import Instant
from horae.model.definitions.job import Spec
from horae.model.fleet.protocol import Failure
from horae.model.workflows.decisions import decide
from horae.model.workflows.decisions.plan import Plan, plan_of
from horae.model.workflows.decisions.values import Workflow
from horae.model.workflows.decisions.workflow import (
    GIVEN_UP,
    Deciding,
    Decisions,
    Pin,
    RowRequest,
    Start,
    StepEnd,
    StepRow,
    StepWait,
    WorkflowExecution,
    WorkflowResult,
)
from horae.model.workflows.decisions.workflow import Rows as Answer
from horae.store.base.deferred import Change, Deferred
from horae.store.base.shelves import Columns
from horae.store.definitions.jobs import definitions
from horae.store.script import Fetch, ForEach, Insert, Script, Statement
from horae.store.workflows import results as workflow_results
from horae.store.workflows import rows as workflow_rows
from horae.store.workflows.rows import ALL, ENDED, OPENING, StoredWorkflow

T = TypeVar("T")
MOST_PLANS = 1_000
_PLANS: dict[str, Plan] = {}  # digest -> plan, oldest first; valid for every store


def digest_of(workflow: Workflow) -> str:
    """Return the digest that identifies a graph."""
    return blake2b(msgspec.json.encode(workflow), digest_size=16).hexdigest()


def plan_by(digest: str, workflow: Workflow) -> Plan:
    """Return the plan of a graph, which decisions need; it is compiled once and then cached by the digest."""
    plan = _PLANS.get(digest)
    if plan is None:
        plan = _PLANS[digest] = plan_of(workflow)
        if len(_PLANS) > MOST_PLANS:
            _PLANS.pop(next(iter(_PLANS)), None)
    return plan


def plans_of(wanted: Iterable[tuple[str, UUID, int]]) -> Script[dict[str, Plan]]:
    """Return plans by their digests; each of `wanted` is a digest with the job and version that have this graph.

    The definition is read only if the plan is not cached.
    """
    asked = {digest: (job, version) for digest, job, version in wanted}
    found = {digest: plan for digest in asked if (plan := _PLANS.get(digest)) is not None}
    missing = sorted({version for digest, version in asked.items() if digest not in found})
    specs = (yield from definitions(missing)) if missing else {}
    for digest, version in asked.items():
        if digest not in found:
            task = msgspec.json.decode(specs[version], type=Spec).task
            assert isinstance(task, Workflow)
            found[digest] = plan_by(digest, task)
    return found


SECRET_KEY = "callback_secret"
_PAIR: Columns = (("key", "text"), ("value", "text"))
SECRET = Statement("callback_secret", f"SELECT value FROM store WHERE key = '{SECRET_KEY}'")


def secret() -> Script[bytes]:
    """Return the store's secret that signs the URLs of callbacks; empty until a server has created it."""
    rows = yield Fetch(SECRET)
    return bytes.fromhex(rows[0][0]) if rows else b""


def keep_secret(fresh: str) -> Script[bytes]:
    """Return the store's secret that signs the URLs of callbacks; if there is none, store `fresh` (hexadecimal)."""
    known = yield from secret()
    if known:
        return known
    yield Insert("store", _PAIR, [(SECRET_KEY, fresh)], "ON CONFLICT DO NOTHING")
    return (yield from secret())


def with_secrets(runs: Iterable["WorkflowRun"]) -> Script[None]:
    """Give workflows that have callbacks the secret that signs the URLs of callbacks."""
    calling = [run for run in runs if run.plan.callbacks and not run.stored.secret]
    if calling:
        known = yield from secret()
        for run in calling:
            run.stored = structs.replace(run.stored, secret=known)


class WorkflowRun:
    """A workflow in the state that decisions of this transaction have given it, with the changes not written yet."""

    def __init__(self, held: StoredWorkflow, plan: Plan, *, is_new: bool = False) -> None:
        self.stored, self.plan = held, plan
        self.place = held.place  # never changes
        self.workflow: WorkflowExecution = held.workflow
        self.rows: dict[str, StepRow] = {}
        self.pins: dict[str, Pin | None] = {}
        self.stops: set[str] = set(held.stops)
        self.starts: list[Start] = []
        self.awaits: list[StepWait] = []
        self.new_states: dict[str, str] = {}  # step -> its new state, if the state changed; the changes become events
        self.end: WorkflowResult | None = None
        self.is_over = held.state == ENDED
        self.is_opening = held.state == OPENING  # it has left the queue, but has no steps yet
        self._is_new = is_new
        self._known: set[str] = set()  # steps whose results were read, or set in this transaction
        self._changed: set[str] = set()  # steps with changes that are not written yet
        self._fresh: set[str] = set()  # those changed steps that have no row yet
        self._pinned = is_new  # whether the job versions of all steps are known

    def learn(self, rows: Iterable[tuple[StepRow, Pin | None]], *, results: bool = False) -> None:
        """Add rows of steps that were read from the store; a row that this object has already is newer and stays."""
        for row, pin in rows:
            if row.step not in self.rows:
                self.rows[row.step], self.pins[row.step] = row, pin
                if results:
                    self._known.add(row.step)

    def _answer(self, ask: RowRequest, moves: Deferred) -> Script[Answer]:
        """Return the rows that a decision requests; steps that have no row yet are left out."""
        lacking = {name for name in ask.rows | ask.items if name not in self.rows}
        lacking |= {name for name in ask.results if name not in self._known}
        if lacking and not self._is_new:
            given = [(*self.place, name, name in ask.results) for name in sorted(lacking)]
            for (_, name), (row, pin) in (yield from workflow_rows.steps_of(given)).items():
                if name in self.rows:
                    row = structs.replace(self.rows[name], result=row.result)
                self.rows[name], self.pins[name] = row, pin
                if name in ask.results:
                    self._known.add(name)
        rows = {name: self.rows[name] for name in ask.rows | ask.results if name in self.rows}
        asked = [row for name, row in rows.items() if name in ask.results]
        apart = [row for row in asked if workflow_results.is_stored_apart(row, self.plan)]
        if apart:
            yield from moves.make()
            rows |= yield from workflow_results.read(self.place, apart, self.plan)
        for name in sorted(ask.items):
            yield from moves.make()
            row = rows.get(name, self.rows[name])
            rows[name] = structs.replace(row, done=(yield from workflow_results.succeeded(self.place, row)))
        return rows

    def decide(
        self, deciding: Deciding[Decisions], moves: Deferred, now: Instant, ended_steps: Sequence[StepEnd] = ()
    ) -> Script[None]:
        """Make a decision and apply it. If the decision raises an error, only the workflow fails, not the transaction.

        `ended_steps` has the ended steps that caused the decision. They are not reported again, so they are recorded
        even if the decision raises an error.
        """
        try:
            decisions = yield from self.ask(deciding, moves)
        except _Fault as fault:
            yield from self._fail(fault.failure, ended_steps, moves, now)
            return
        yield from self._apply(decisions, moves, now)

    def ask(self, deciding: Deciding[T], moves: Deferred) -> Script[T]:
        """Send a decision the rows that it requests, until it returns its result; return this result."""
        answer: Answer | None = None
        while True:
            try:
                ask = next(deciding) if answer is None else deciding.send(answer)
            except StopIteration as made:
                decided: T = made.value
                return decided
            except Exception as error:
                raise _Fault(error) from error
            answer = yield from self._answer(ask, moves)

    def _fail(self, failure: Failure, ended_steps: Sequence[StepEnd], moves: Deferred, now: Instant) -> Script[None]:
        """Fail the workflow and record the ended steps; if that raises an error, too, end it at once."""
        about = self.stored.about
        try:
            failing = yield from self.ask(decide.fail(self.plan, self.workflow, about, failure, "fault", now), moves)
            yield from self._apply(failing, moves, now)
            if ended_steps and not self.is_over:
                heard = yield from self.ask(decide.after(self.plan, self.workflow, about, ended_steps, now), moves)
                yield from self._apply(heard, moves, now)
        except _Fault:
            end = WorkflowResult(state="failed", error=failure, reason="fault")
            yield from self._apply(Decisions(workflow=self.workflow, end=end), moves, now)

    def _apply(self, decisions: Decisions, moves: Deferred, now: Instant) -> Script[None]:
        if decisions.workflow.phase != self.workflow.phase:
            self.stops.discard(ALL)  # a phase changes only when all its steps have ended: none is left to stop
        if decisions.unstarted_become is not None:
            yield from self._end_unstarted(decisions, moves, now)
        self.workflow = decisions.workflow
        if decisions.fresh and not self._pinned:
            self.pins |= yield from workflow_rows.pins_of(self.place)
            self._pinned = True
        for name, row in decisions.rows.items():
            self._put(name, row, fresh=name in decisions.fresh)
        self.starts += decisions.starts
        self.awaits += decisions.awaits
        self.stops |= {ALL} if decisions.stop else set(decisions.cancel)
        if decisions.end is not None:
            self.end, self.is_over = decisions.end, True
            self.stops.discard(ALL)  # steps stay listed by name if a user ended them while their executions run

    def _end_unstarted(self, decisions: Decisions, moves: Deferred, now: Instant) -> Script[None]:
        """End all steps that have not begun by one statement, without reading them."""
        rest = decisions.unstarted_become
        assert rest is not None
        yield from moves.make(*self.changes())
        yield ForEach(
            workflow_rows.END_OTHER_STEPS, workflow_rows.END_OTHER_COLUMNS, [(*self.place, rest, GIVEN_UP, now)]
        )
        for name, row in self.rows.items():
            if row.state in ("pending", "held"):
                self.rows[name] = structs.replace(row, state=rest, reason=GIVEN_UP, ended_at=now)

    def _put(self, name: str, row: StepRow, *, fresh: bool) -> None:
        known = self.rows.get(name)
        if row.is_final and row.wake_at is not None:
            row = structs.replace(row, wake_at=None)
        ends = row.is_final and not (known is not None and known.is_final)
        if fresh or ends or known is None or row.result is not known.result:
            self._known.add(name)
        if known is None or row.state != known.state:
            self.new_states[name] = row.state
        self.rows[name] = row
        self.pins.setdefault(name, self.workflow.pins.get(name))
        self._changed.add(name)
        if fresh:
            self._fresh.add(name)

    def set_child(self, step: str, execution: UUID) -> None:
        """Set the id of a step's first child."""
        self._put(step, structs.replace(self.rows[step], execution=execution), fresh=step in self._fresh)

    def take_over(self, step: str, count: int) -> None:
        """Record the number of items of a foreach whose results this rerun takes over."""
        row = structs.replace(self.rows[step], ok=count, reused=count)
        self._put(step, row, fresh=step in self._fresh)

    def present_row(self, now: Instant) -> StoredWorkflow:
        """Return the workflow's row with all changes, as it is to be written."""
        in_time = self.workflow.phase == "main" and self.workflow.verdict == "success"
        wake_at = now if self.stops or self.is_opening else self.stored.until if in_time else None
        return structs.replace(
            self.stored,
            workflow=self.workflow,
            state=ENDED if self.is_over else OPENING if self.is_opening else self.workflow.state,
            stops=frozenset(self.stops),
            wake_at=None if self.is_over and not self.stops else wake_at,
        )

    def changes(self, now: Instant = 0) -> list[Change]:
        """Return the changes of steps that were not returned before; with `now`, also the change of the workflow's row.

        The caller writes them.
        """
        fresh = [(self.place, self.rows[name], self.pins.get(name)) for name in sorted(self._fresh)]
        known = sorted(self._changed - self._fresh)
        changed = [(self.place, self.rows[name], name in self._known) for name in known]
        self._changed.clear()
        self._fresh.clear()
        changes: list[Change] = [workflow_rows.put_steps(fresh)] if fresh else []
        if changed:
            changes.append(workflow_rows.set_steps(changed))
        if now and self._is_new:
            self._is_new = False
            changes.append(workflow_rows.put_workflows([self.present_row(now)]))
        elif now and (present := self.present_row(now)) != self.stored:
            changes.append(workflow_rows.set_workflows([present]))
        return changes


class _Fault(Exception):
    """An error that a decision raised.

    It is a bug of Horae, and must not fail the transaction of the report that caused the decision.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.failure = Failure(type="WorkflowFault", message=f"{type(error).__name__}: {error}", permanent=True)
