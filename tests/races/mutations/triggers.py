"""Guards of fires: turns, backfills, dependencies and calendars."""

from tests.races.mutating import code, sql
from tests.races.mutating.mutation import gone

FIRES = (
    gone("fire locks no timer", sql.unlock("due_timers"), by="fire / fire"),
    gone("fire waits for timers", sql.wait("due_timers"), by="fire / fire"),
    gone(
        "the decided time is not stored",
        sql.drop_setting("advance_timers", "decided_through"),
        by="test_fire.test_a_due_timer_fires_once_and_moves_on",
    ),
    gone(
        "the next fire is not advanced",
        sql.drop_setting("advance_timers", "next_fire_at"),
        by="test_fire.test_a_due_timer_fires_once_and_moves_on",
    ),
    gone("a pause does not lock the timers", sql.unlock("triggers_of_job"), by="fire / pause"),
    gone(
        "overlap does not check the last execution",
        code.never("overlap-sees-last"),
        by="test_fire.test_overlap_skip_does_not_start_beside_the_last",
    ),
    gone(
        "a fire does not lock the holder of the turn", sql.unlock("lock_turns"), by="a read of turns / passing the turn"
    ),
    gone("passing a turn locks nothing", sql.unlock("turn_holder"), by="passing the turn / passing the turn"),
    gone("passing a turn waits for locked rows", sql.wait("turn_holder"), by="passing the turn / passing the turn"),
    gone(
        "a turn is passed on while its holder is live",
        code.never("turn-is-taken"),
        by="test_turns.test_queue_one_keeps_the_newest_and_runs_it_after_the_last",
    ),
    gone(
        "executions at a gate are not locked",
        sql.unlock("waiting_turns"),
        because="the holder's row is the lock of the gate, and a cancellation finds the row gone",
    ),
    gone("deleted holders are not locked", sql.unlock("turns_after"), by="forgetting turns / fire"),
)
BACKFILLS = (
    gone(
        "a backfill is worked without a lock on its row",
        sql.unlock("take_backfill"),
        by="backfill / backfill, one at two servers",
    ),
    gone(
        "a backfill waits for the server that works it",
        sql.wait("take_backfill"),
        by="backfill / backfill, one at two servers",
    ),
    gone(
        "two backfills rewrite the same rows of the ledger",
        code.drop_statement("one-backfill-of-a-job"),
        code.drop_statement("ledger-rows-gone"),
        by="backfill / backfill, the same fires",
    ),
    gone(
        "backfills of one job do not wait for each other",
        code.drop_statement("one-backfill-of-a-job"),
        because="a backfill that finds its rows gone begins again; with the lock none has to",
    ),
    gone(
        "deleted rows are cut all the same",
        code.drop_statement("ledger-rows-gone"),
        because="the retention may delete a row between its read and its exchange, which no scene plays",
    ),
    gone(
        "a fire that ran may be cut out of the ledger",
        sql.drop("take_ledger_rows", "execution"),
        because="only fires without an execution are chosen for a cut: a second line of defence",
    ),
    gone(
        "a backfill forgets what it has started",
        code.drop_operand("backfill-counts-live"),
        by="test_backfills.test_the_number_of_live_executions_is_bounded",
    ),
)
DEPENDENCIES = (
    gone(
        "the end of an upstream does not lock the dependent",
        sql.unlock("lock_dependents"),
        by="report / report, two upstreams of one interval",
    ),
    gone(
        "dependents are locked in no order",
        sql.unordered("lock_dependents"),
        because="the ids come sorted, and PostgreSQL mostly finds them so; without it a crossing could deadlock",
    ),
    gone(
        "executions waiting for an upstream are not locked",
        sql.unlock("waiting_for_dependencies"),
        by="report / cancel of the waiting execution",
    ),
    gone(
        "the end of an upstream waits for locked executions",
        sql.wait("waiting_for_dependencies"),
        by="report / cancel of the waiting execution",
    ),
    gone(
        "a deleted dependent is started",
        code.drop_condition("dependent-not-deleted"),
        by="report / delete of the dependent",
    ),
    gone(
        "a deletion does not lock the dependent",
        code.drop_statement("delete-locks-dependent"),
        by="report / delete of the dependent",
    ),
    gone(
        "a met condition is forgotten",
        code.drop_sql("join-met-stays", "NOT join_parts.met"),
        by="test_dependencies.test_a_met_condition_stays_met",
    ),
    gone(
        "an edit does not check waiting executions",
        code.drop_statement("edit-reconsiders-waits"),
        by="report / edit of dependencies, the other upstream is removed",
    ),
    gone(
        "a fire begins to wait without a check of its join",
        code.drop_statement("fire-settles-waits"),
        by="fire / report, a scheduled fire and the upstream of its interval",
    ),
    gone(
        "checked joins are checked again",
        code.drop_condition("join-looked-at-once"),
        because="a checked join is judged to wait: the same row would be written again",
    ),
)
CALENDARS = (
    gone(
        "a job uses calendars without their lock",
        code.never("job-locks-calendars"),
        by="calendar deletion / creation of a job that uses it",
    ),
    gone(
        "calendars change without a lock",
        code.drop_statement("calendar-locks"),
        by="calendar change / calendar change, one version",
    ),
    gone(
        "a change of calendars wakes nothing",
        sql.drop_setting("wake_timers", "next_fire_at", instead="trouble = NULL"),
        by="test_fire_calendars.test_a_change_wakes_the_timers_that_it_advances",
    ),
    gone(
        "timers are woken without a lock",
        sql.unlock("timers_by_calendar"),
        because="the update locks the rows; locked in one order before, two changes do not wait for each other",
    ),
)
