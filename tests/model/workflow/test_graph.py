"""The graph for users: steps in an order in which they can run, undo steps between them and the handlers."""

from uuid import UUID

from horae.model.workflows.decisions.graph import show_graph
from horae.model.workflows.decisions.plan import plan_of
from horae.model.workflows.decisions.values import Call, Workflow, WorkflowStep, undo_name
from horae.model.workflows.decisions.workflow import StepRow, WorkflowExecution

JOB = "0198c5a0-0000-7000-8000-000000000001"


def test_undo_steps_are_shown_in_order_before_the_handlers():
    undo = Call(job=JOB)
    steps = (
        WorkflowStep(name="a", job=JOB, undo=undo),
        WorkflowStep(name="b", job=JOB, after=("a",), undo=undo),
        WorkflowStep(name="c", job=JOB),
    )
    plan = plan_of(Workflow(steps=steps, last=(WorkflowStep(name="tidy", job=JOB),)))
    rows = [
        StepRow(step="a", state="success", began_at=1, ended_at=2, ended_seq=0),
        StepRow(step="b", state="success", began_at=2, ended_at=3, ended_seq=1),
        StepRow(step="c", state="failed", began_at=1, ended_at=4, ended_seq=2),
        *(StepRow(step=undo_name(name), phase="undo") for name in "ab"),
    ]
    flow = WorkflowExecution(execution=UUID(JOB), root=UUID(JOB), job=UUID(JOB), version=1)

    shown = show_graph(plan, flow, [(row, None) for row in rows], {}, 1, None, "running", 10)

    assert [node.step for node in shown.nodes[3:]] == ["b:undo", "a:undo", "tidy"]
    assert {node.step for node in shown.nodes[:3]} == {"a", "b", "c"}
    assert shown.critical_path == ["c"]
    assert shown.nodes[-1].status == "pending"
    over = show_graph(plan, flow, [(row, None) for row in rows], {}, 1, 9, "failed", 10)
    assert over.nodes[-1].status == "skipped", "it will not come any more"
