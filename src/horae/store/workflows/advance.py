"""Advance: when a step ends, its workflow starts the next steps in the same transaction.

Every script that ends executions calls `follow` with the steps among these executions. `follow` never reads all steps
of a workflow: only the row of the ended step, the rows of the steps that follow it, and the results to which their
expressions refer. If the end of a step ends a workflow that is itself a step, the parent advances in the same
transaction, too. This needs no further lock, because a tree of workflows has one lock.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from uuid import UUID

from msgspec import structs

from horae.env import Instant
from horae.model.admission.keys import CHILD
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.base.packing import pack
from horae.model.executions.parcel import extras_of
from horae.model.executions.settle import TOO_LARGE, FinishedSlice
from horae.model.fleet.protocol import MAX_INLINE_RESULT, MAX_RESULT
from horae.model.workflows.decisions import decide
from horae.model.workflows.decisions.plan import Plan
from horae.model.workflows.decisions.workflow import Final, StepEnd, WorkflowResult
from horae.store.base import shelves
from horae.store.base.deferred import Change, Deferred
from horae.store.executions.leaving import dead_letters
from horae.store.executions.state_changes import StepChange
from horae.store.script import ForEach, Script, Statement
from horae.store.triggers.dependencies.starts import Consequences, NewId
from horae.store.workflows import locks as workflow_locks
from horae.store.workflows import results as workflow_results
from horae.store.workflows import rows as workflow_rows
from horae.store.workflows import waits as workflow_waits
from horae.store.workflows.starts import NewChildren, begin_steps, changes_of
from horae.store.workflows.terms import StepTerms
from horae.store.workflows.workflow_run import WorkflowRun, plans_of, with_secrets

# The lock of the workflow protects these rows: only a transaction that holds it moves a workflow that waits for its
# children.
PARENTS = Statement(
    "waiting_parents",
    f"SELECT {shelves.names(shelves.WAITING, 'w.')} FROM given JOIN waiting w ON w.parcel = given.parcel"
    " AND w.lo = given.item WHERE w.reason = 'children'",
)

EndedSteps = dict[UUID, list[StepEnd]]  # workflow -> its ended steps


class WorkflowBatch:
    """The workflows that one transaction advances. Their roots are locked, or this transaction creates them."""

    def __init__(
        self,
        moves: Deferred,
        new_id: NewId,
        now: Instant,
        consequences: Consequences,
        child_cache: workflow_locks.ChildCache | None = None,
    ) -> None:
        self.moves, self.new_id, self.now, self.consequences, self._child_cache = (
            moves,
            new_id,
            now,
            consequences,
            child_cache,
        )
        self.runs: dict[UUID, WorkflowRun] = {}
        self.finished: list[FinishedSlice] = []  # workflows that have ended
        self.terms = StepTerms()
        self._begun: list[NewChildren] = []

    def read_ended(self, finished: Sequence[FinishedSlice]) -> Script[EndedSteps]:
        """Lock and read the workflows to which ended executions belong; return the ended steps by workflow.

        Executions that are not steps are ignored.
        """
        children = yield from workflow_locks.lock_workflows_of_steps(
            {f.slice.parcel for f in finished}, self._child_cache
        )
        plans = yield from plans_of((child.digest, child.job, child.version) for child in children.values())
        apart = [
            f
            for f in finished
            if workflow_results.may_be_stored_apart(f) and _is_single(children.get(f.slice.parcel), plans)
        ]
        large = (yield from self._large(apart)) if apart else {}
        ended_steps: dict[UUID, list[StepEnd]] = {}
        digests = {child.workflow: child.digest for child in children.values()}
        for f in sorted(finished, key=lambda f: (f.slice.parcel, f.slice.lo)):
            child = children.get(f.slice.parcel)
            if child is not None:
                ended_steps.setdefault(child.workflow, []).extend(_ended(f, child.extras, plans[child.digest], large))
        unknown = {workflow: plans[digests[workflow]] for workflow in ended_steps if workflow not in self.runs}
        if unknown:
            yield from self._learn(
                {workflow: {one.step for one in ended_steps[workflow]} for workflow in unknown}, unknown
            )
            yield from with_secrets(self.runs.values())
        return {workflow: _gathered(ended) for workflow, ended in ended_steps.items() if workflow in self.runs}

    def _learn(self, ended: Mapping[UUID, set[str]], plans: Mapping[UUID, Plan]) -> Script[None]:
        """Read workflows with their ended steps, the steps that follow these, and the terms of the following steps."""
        wanted = []
        asked: set[str] = set()  # ids of jobs; the terms of each are read with one step only
        for workflow, steps in ended.items():
            nodes, place = plans[workflow].nodes, (parcel_of(workflow), index_of(workflow))
            followers = {f for name in steps if name in nodes for f in nodes[name].followers} - steps
            for i, name in enumerate(sorted(steps | followers)):
                runs = nodes[name].step.runs if name in followers else ""
                starts = bool(runs) and runs not in asked
                asked.add(runs)
                wanted.append((*place, name, i == 0, starts, self.now))
        rows = yield ForEach(workflow_rows.WITH_STEPS, workflow_rows.FIRST, wanted)
        places: dict[tuple[UUID, int], WorkflowRun] = {}
        for row in rows:
            if row[workflow_rows.WORKFLOW_AT] is not None:
                held = workflow_rows.read_workflow(row[workflow_rows.WORKFLOW_AT : workflow_rows.TERMS_AT])
                places[held.place] = self.runs[held.workflow.execution] = WorkflowRun(
                    held, plans[held.workflow.execution]
                )
        for row in rows:
            run = places.get((row[0], row[1]))
            if run is not None:
                run.learn([workflow_rows.read_step(row)])
            self.terms.learn(row[workflow_rows.TERMS_AT :])

    def _large(self, finished: Sequence[FinishedSlice]) -> Script[dict[tuple[UUID, int], bytes]]:
        """Read results that are stored apart from their slice, because expressions of later steps may refer to them."""
        yield from self.moves.make()
        return (
            yield from workflow_results.large(
                dict(place for f in finished for place in workflow_results.items_stored_apart(f))
            )
        )

    def load(self, executions: Iterable[UUID]) -> Script[None]:
        """Read the state of workflows that the caller has locked."""
        held = yield from workflow_rows.workflows_of(
            [execution for execution in executions if execution not in self.runs]
        )
        plans = yield from plans_of((one.digest, one.workflow.job, one.workflow.version) for one in held.values())
        self.runs |= {execution: WorkflowRun(one, plans[one.digest]) for execution, one in held.items()}
        yield from with_secrets(self.runs.values())

    def settle(self, ended_steps: EndedSteps) -> Script[None]:
        """Decide the consequences of ended steps; these may end further steps, so repeat this until none ends.

        Then add all changes to the deferred changes (`moves`).
        """
        while True:
            for workflow, ended in ended_steps.items():
                run = self.runs[workflow]
                if not run.is_over:  # guard: workflow-not-over
                    deciding = decide.after(run.plan, run.workflow, run.stored.about, ended, self.now)
                    yield from run.decide(deciding, self.moves, self.now, ended)
            ended_steps = yield from self._go_on()
            if not ended_steps:
                break
        for run in self.runs.values():
            mine, namespace = run.workflow, run.stored.namespace
            self.consequences.stepped += [
                StepChange(mine.execution, mine.job, namespace, step, state) for step, state in run.new_states.items()
            ]
            self.moves.add(run.changes(self.now))
            self.moves.add(workflow_waits.drop_ended(run))
            if run.stops:
                self.consequences.check_by(self.now)
            else:
                waits = (row.wake_at for row in run.rows.values() if row.state == "waiting")
                for at in (run.stored.until, *waits):
                    self.consequences.check_by(at)
        for begun in self._begun:
            self.moves.add(changes_of(begun, self.now, self.consequences))
            if self._child_cache is not None:
                self._remember(begun, self._child_cache)
        self.consequences.open_lanes |= self.terms.open

    def _remember(self, begun: NewChildren, child_cache: workflow_locks.ChildCache) -> None:
        """Cache the workflows of new children, because this server will most likely handle their ends."""
        for parcel, _ in begun.parcels:
            run = self.runs.get(parcel.envelope.parent or parcel.id)
            if run is not None:
                mine, digest = run.workflow, run.stored.digest
                child_cache.add(
                    workflow_locks.ChildParcel(
                        parcel.id, parcel.extras, mine.execution, digest, mine.job, mine.version, mine.root
                    )
                )

    def _go_on(self) -> Script[EndedSteps]:
        """Start steps, begin waits and end workflows, as decided. Return the steps that end thereby, by workflow.

        These are steps that could not start, waits that are over at once, and steps that were nested workflows.
        """
        ended_steps: EndedSteps = {}
        begun = yield from begin_steps(self.runs.values(), self.terms, self.new_id, self.now)
        self._begun.append(begun)
        for run, ended in begun.refused:
            ended_steps.setdefault(run.workflow.execution, []).append(ended)
        for run in self.runs.values():
            if run.awaits:
                awaits, run.awaits = run.awaits, []
                over_already = yield from workflow_waits.begin_waits(run, awaits, self.moves, self.now)
                if over_already:
                    ended_steps.setdefault(run.workflow.execution, []).extend(over_already)
        over = {execution: run.end for execution, run in self.runs.items() if run.end is not None}
        if over:
            for run in self.runs.values():
                run.end = None
            finished = yield from self._end(over)
            self.finished += finished
            above = [f for f in finished if f.slice.flags & CHILD]
            if above:
                for workflow, ended_above in (yield from self.read_ended(above)).items():
                    ended_steps.setdefault(workflow, []).extend(ended_above)
        return ended_steps

    def _end(self, over: dict[UUID, WorkflowResult]) -> Script[list[FinishedSlice]]:
        """Move workflows that have ended from `waiting` to `history`; return them."""
        given = sorted((parcel_of(execution), index_of(execution)) for execution in over)
        finished: list[FinishedSlice] = []
        for row in (yield ForEach(PARENTS, shelves.ITEM, given)):
            parent = shelves.waiting(row)
            execution = execution_id(parent.parcel, parent.lo)
            end, run = over[execution], self.runs[execution]
            state, error, result = end.state, end.error, None
            if end.result is not None and len(end.result) > MAX_RESULT:
                state, error = "failed", TOO_LARGE
            elif end.result is not None:
                large = len(end.result) > MAX_INLINE_RESULT
                result = pack([b"" if large else end.result])
                if large:
                    self.moves.add([shelves.put_blobs([(parent.parcel, parent.lo, end.result)])])
            finished.append(
                FinishedSlice(
                    slice=parent, state=state, reason=end.reason, queued_at=run.stored.queued_at,
                    started_at=run.stored.began_at, completed_at=self.now, results=result, error=error,
                )
            )  # fmt: skip
        self.moves.add(_ends(finished))
        self.moves.add(self._letters(finished))
        return finished

    def _letters(self, finished: Sequence[FinishedSlice]) -> list[Change]:
        """Return the changes that reopen dead letters whose retry was a workflow that is cancelled now."""
        cancelled = [execution_id(f.slice.parcel, f.slice.lo) for f in finished if f.state == "cancelled"]
        letters = [(self.runs[execution].stored.extra.retry_of, execution) for execution in cancelled]
        opened = [(letter, execution) for letter, execution in letters if letter is not None]
        return [dead_letters.reopened(opened)] if opened else []


def _ends(finished: Sequence[FinishedSlice]) -> list[Change]:
    return [shelves.take("waiting", [f.slice for f in finished]), shelves.put_finished(finished)]


def follow(
    finished: Sequence[FinishedSlice],
    moves: Deferred,
    new_id: NewId,
    now: Instant,
    consequences: Consequences,
    child_cache: workflow_locks.ChildCache | None = None,
) -> Script[list[FinishedSlice]]:
    """Advance the workflows whose steps are among `finished`; return the workflows that end thereby, up to the root.

    The changes are added to `moves`. `consequences` collects the executions that were started.
    """
    batch = WorkflowBatch(moves, new_id, now, consequences, child_cache)
    ended_steps = yield from batch.read_ended(finished)
    if ended_steps:
        yield from batch.settle(ended_steps)
    return batch.finished


def _is_single(child: workflow_locks.ChildParcel | None, plans: Mapping[str, Plan]) -> bool:
    """Tell whether the executions of a parcel are single steps, not items of a foreach.

    Results of a foreach are read only when an expression needs them.
    """
    return child is not None and _fan_of(child.extras, plans[child.digest]) is None


def _fan_of(extras: bytes | None, plan: Plan) -> str | None:
    """Return the foreach step to which all items of a parcel belong.

    Return None if it is another kind of step, or if each item has its own extra, so that the items must be examined.
    """
    if extras is None or extras.startswith(b"["):
        return None
    step = extras_of(extras, 0, 1)[0].step or ""
    return step if plan.is_foreach(step) else None


def _ended(
    f: FinishedSlice, extras: bytes | None, plan: Plan, large: Mapping[tuple[UUID, int], bytes]
) -> Iterator[StepEnd]:
    """Yield the ends of steps, or of items of a foreach, that follow from the end of a slice of children."""
    s = f.slice
    fan = _fan_of(extras, plan)
    if fan is not None:
        yield _items_ended(f, fan, s.hi - s.lo)
        return
    for item, extra in enumerate(extras_of(extras, s.lo, s.hi), s.lo):
        step = extra.step or ""
        if plan.is_foreach(step):
            yield _items_ended(f, step, 1)
            continue
        result = None if f.results is None else large.get((s.parcel, item)) or f.results.one(item - s.lo)
        yield StepEnd(
            step=step, state=_final(f.state), result=result, error=f.error, reason=f.reason,
            execution=execution_id(s.parcel, item),
        )  # fmt: skip


def _items_ended(f: FinishedSlice, step: str, count: int) -> StepEnd:
    ok = count if f.state == "success" else 0
    state = _final(f.state)
    return StepEnd(
        step=step, state=state, error=f.error, reason=f.reason, ok=ok, bad=count - ok,
        cancelled=count if state == "cancelled" else 0,
    )  # fmt: skip


def _final(state: str) -> Final:
    finals: dict[str, Final] = {"success": "success", "failed": "failed", "skipped": "skipped"}
    return finals.get(state, "cancelled")


def _gathered(ended: Sequence[StepEnd]) -> list[StepEnd]:
    """Merge the ends of the children of each foreach, so that one decision handles them all."""
    single = [one for one in ended if one.execution is not None]
    fans: dict[str, StepEnd] = {}
    for one in ended:
        if one.execution is None:
            known = fans.get(one.step)
            if known is None:
                fans[one.step] = one
            else:
                worse = known if known.bad else one
                fans[one.step] = structs.replace(
                    worse, ok=known.ok + one.ok, bad=known.bad + one.bad, cancelled=known.cancelled + one.cancelled
                )
    return [*single, *fans.values()]
