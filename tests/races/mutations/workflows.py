"""Guards of workflows and of waits for signals."""

from tests.races.mutating import code, sql
from tests.races.mutating.mutation import gone

FLOWS = (
    gone(
        "the end of a step does not lock its workflow",
        sql.unlock("lock_workflow_of_child"),
        by="report / report, two steps before one",
    ),
    gone(
        "several workflows are not locked",
        sql.unlock("lock_roots"),
        by="report of steps of two workflows / the same in the other order",
    ),
    gone(
        "a workflow that is cancelled, paused or checked is not locked",
        sql.unlock("lock_workflow"),
        by="report of a step / cancel of its workflow",
    ),
    gone(
        "workflows are locked in no order",
        sql.unordered("lock_roots"),
        because="the ids come sorted, and PostgreSQL mostly finds them so; without it a crossing could deadlock",
    ),
    gone(
        "steps that are handed over lock nothing against holds",
        sql.unlock("workflows_with_steps", "holds"),
        by="hold / report of a step that another follows at once",
    ),
    gone(
        "steps of a queue with a hold are handed over",
        sql.drop_exists("workflows_with_steps", "holds"),
        by="test_workflow_newborn.test_a_step_of_a_queue_that_is_held_stays_in_it",
    ),
    gone(
        "steps are handed over whatever their queue's limit",
        sql.drop_exists("workflows_with_steps", "limits"),
        by="test_workflow_newborn.test_a_limit_that_the_server_does_not_know_is_respected",
    ),
    gone(
        "steps overtake queued executions",
        code.drop_condition("newborn-behind-line"),
        by="test_workflow_newborn.test_executions_queued_earlier_come_first",
    ),
    gone(
        "a workflow that has ended goes on",
        code.always("workflow-not-over"),
        because="a child that ends after its workflow has a final row",
    ),
    gone(
        "cancel locks a workflow's own row",
        sql.drop("item_waiting", "reason"),
        by="test_workflows.test_cancelling_a_workflow_cancels_its_steps_below_too",
    ),
    gone(
        "a workflow counts under the limit of its queue",
        code.drop_operand("workflow-is-unlimited"),
        by="test_workflows.test_a_workflow_does_not_block_its_own_steps_in_a_sequential_queue",
    ),
    gone(
        "a workflow frees its keys while its steps run",
        sql.drop("use_of_keys", "reason", instead="false"),
        by="test_workflows.test_a_workflow_keeps_its_keys_until_it_ends",
    ),
    gone(
        "a pause leaves queued steps",
        sql.drop("queued_steps", "attempt", instead="false"),
        by="report of a step / pause of its workflow",
    ),
    gone(
        "a pause waits for slices that a claim holds",
        sql.wait("queued_steps"),
        because="a claim holds them only for a moment, and does not lock their workflow meanwhile",
    ),
)
SIGNALS = (
    gone(
        "a signal does not lock the session that runs its execution",
        code.drop_statement("signal-locks-session"),
        by="signal / report of the waiting execution",
    ),
    gone(
        "a signal does not check again where its execution is",
        code.always("signal-looks-again"),
        by="signal / report of the waiting execution",
    ),
    gone(
        "a signal does not lock queued slices",
        code.unlocked("signal-holds-execution", only="item_queued"),
        by="signal / claim, wait, and report",
    ),
    gone(
        "a signal does not lock waiting slices",
        code.unlocked("signal-holds-execution", only="item_waiting"),
        by="signal / signal, one wait",
    ),
    gone(
        "a wait for a signal does not lock its session",
        code.unlocked("await-locks-session"),
        by="signal / wait, and report",
    ),
    gone(
        "a report does not check for signals",
        sql.reword("open_awaits", "SELECT given.parcel, given.item, '@wait:go' FROM given"),
        by="signal / report of the waiting execution",
    ),
)
