"""Audit of workflows.

It checks that the stored state of each workflow agrees with the states of its steps, and that each running step has an
execution that has not ended. A finding names the execution of the workflow.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from horae.model.base.ids import index_of, parcel_of
from horae.model.workflows.decisions.plan import Plan
from horae.model.workflows.decisions.workflow import FINAL, OPEN, StepRow
from horae.store.base import shelves
from horae.store.executions.reads.audit import Finding
from horae.store.script import Fetch, ForEach, Script, Statement
from horae.store.workflows import rows as workflow_rows
from horae.store.workflows.rows import OPENING, StoredWorkflow
from horae.store.workflows.workflow_run import plans_of

PAGE = 200  # workflows in a page
FIRST = UUID(int=0)
UNDER_WAY = Statement(
    "workflows_under_way",
    "SELECT f.execution, f.parcel, f.item FROM flows f WHERE f.state <> 'ended' AND f.execution > $1"
    " ORDER BY f.execution LIMIT $2",
)
PARENTS = Statement(
    "parents_there",
    "SELECT w.parcel, w.lo FROM given JOIN waiting w ON w.parcel = given.parcel AND w.lo = given.item"
    " WHERE w.reason = 'children'",
)
STRAY = Statement(
    "parents_without_workflow",
    "SELECT w.parcel, w.lo FROM waiting w LEFT JOIN flows f ON f.parcel = w.parcel AND f.item = w.lo"
    " AND f.state <> 'ended' WHERE w.reason = 'children' AND f.parcel IS NULL",
)
LIVE = Statement(
    "live_children",
    f"SELECT given.parcel, given.item FROM given WHERE {shelves.is_live('given.parcel', 'given.item')}",
)


def audit_workflows() -> Script[list[Finding]]:
    """Return all findings about workflows under way."""
    findings = [
        Finding(
            kind="workflow-mismatch",
            shelf="waiting",
            parcel=parcel,
            lo=lo,
            hi=lo + 1,
            detail="it waits for children, but is not a workflow under way",
        )
        for parcel, lo in (yield Fetch(STRAY))
    ]
    after = FIRST
    while True:
        rows = yield Fetch(UNDER_WAY, (after, PAGE))
        if not rows:
            return findings
        findings += yield from _page([row[0] for row in rows])
        after = rows[-1][0]


def _page(executions: Sequence[UUID]) -> Script[list[Finding]]:
    held = yield from workflow_rows.workflows_of(executions)
    plans = yield from plans_of((one.digest, one.workflow.job, one.workflow.version) for one in held.values())
    places = [one.place for one in held.values()]
    steps = yield from workflow_rows.some_steps(workflow_rows.EVERY_STEP, places)
    there = set((yield ForEach(PARENTS, shelves.ITEM, sorted(places))))
    running = {row.execution for rows in steps.values() for row, _ in rows if row.state == "running" and not row.total}
    children = sorted((parcel_of(execution), index_of(execution)) for execution in running if execution is not None)
    live = set((yield ForEach(LIVE, shelves.ITEM, children))) if children else set()
    findings: list[Finding] = []
    for one in held.values():
        rows = [row for row, _ in steps[one.place]]
        wrong = list(_wrong(one, plans[one.digest], rows, live))
        if one.place not in there:
            wrong.append("its execution is not on `waiting`")
        findings += [_finding(one, detail) for detail in wrong]
    return findings


def _finding(held: StoredWorkflow, detail: str) -> Finding:
    parcel, item = held.place
    return Finding(kind="workflow-mismatch", shelf="waiting", parcel=parcel, lo=item, hi=item + 1, detail=detail)


def _wrong(held: StoredWorkflow, plan: Plan, rows: Sequence[StepRow], live: set[tuple[UUID, int]]) -> Iterator[str]:
    """Yield contradictions between the row of a workflow and the rows of its steps.

    `live` has the parcels and items of running steps whose execution has not ended.
    """
    workflow = held.workflow
    if held.state == OPENING:
        return
    mine = [row for row in rows if row.phase == workflow.phase]
    left = sum(row.state not in FINAL for row in mine)
    begun = sum(row.state in OPEN for row in mine)
    if (left, begun) != (workflow.left, workflow.open):
        yield f"{left} steps are left and {begun} have begun, not {workflow.left} and {workflow.open}"
    if not left:
        yield "all its steps have ended, but the workflow has not"
    by_name = {row.step: row for row in rows}
    for row in mine:
        yield from _wrong_step(plan, row, by_name, live)
    doubled = [
        execution for execution, count in Counter(row.execution for row in rows if row.execution).items() if count > 1
    ]
    if doubled:
        yield f"{doubled[0]} is the execution of two steps"


def _wrong_step(plan: Plan, row: StepRow, by_name: Mapping[str, StepRow], live: set[tuple[UUID, int]]) -> Iterator[str]:
    """Yield contradictions of one step."""
    if row.state == "running" and row.total:
        if row.total <= row.ok + row.bad:
            yield f'step "{row.step}" is running, but all its items have ended'
    elif row.state == "running" and row.execution is not None:
        if (parcel_of(row.execution), index_of(row.execution)) not in live:
            yield f'step "{row.step}" is running, but its execution has ended'
    elif row.state == "pending" and row.step in plan.nodes:
        upstreams = plan.nodes[row.step].upstreams
        missing = sum(not (up in by_name and by_name[up].is_final) for up in upstreams)
        if missing != row.missing:
            yield f'step "{row.step}" waits for {row.missing} steps, but {missing} of its upstreams have not ended'
        if not missing:
            yield f'step "{row.step}" has not started, but all its upstreams have ended'
