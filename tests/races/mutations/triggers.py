"""Guards of fires: turns, backfills, dependencies and calendars."""

from tests.races.mutating import code, sql
from tests.races.mutating.mutation import gone

FIRES = (
    gone("fire locks no timer", sql.unlock("due_timers"), by="fire / fire"),
    gone("fire waits for timers", sql.wait("due_timers"), by="fire / fire"),
    gone(
        "what was decided is not remembered",
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
        "overlap does not look at the last execution",
        code.never("overlap-sees-last"),
        by="test_fire.test_overlap_skip_does_not_start_beside_the_last",
    ),
    gone("a fire does not hold whose turn it is", sql.unlock("lock_turns"), by="a look at turns / passing the turn"),
    gone("passing a turn holds nothing", sql.unlock("turn_holder"), by="passing the turn / passing the turn"),
    gone("passing a turn waits", sql.wait("turn_holder"), by="passing the turn / passing the turn"),
    gone(
        "a turn is passed on while it is somebody's",
        code.never("turn-is-taken"),
        by="test_turns.test_queue_one_keeps_the_newest_and_runs_it_after_the_last",
    ),
    gone(
        "what waits at a gate is not held",
        sql.unlock("waiting_turns"),
        because="the holder's row is: whoever takes from the gate has it, and a cancellation finds the row gone",
    ),
    gone("what is forgotten is not held", sql.unlock("turns_after"), by="forgetting turns / fire"),
)
BACKFILLS = (
    gone(
        "a backfill is worked without its row",
        sql.unlock("take_backfill"),
        by="backfill / backfill, one at two servers",
    ),
    gone("a backfill waits for who works it", sql.wait("take_backfill"), by="backfill / backfill, one at two servers"),
    gone(
        "two backfills rewrite the same rows of the ledger",
        code.drop_statement("one-backfill-of-a-job"),
        code.drop_statement("ledger-rows-gone"),
        by="backfill / backfill, the same fires",
    ),
    gone(
        "backfills of one job do not wait for each other",
        code.drop_statement("one-backfill-of-a-job"),
        because="one that finds its rows gone begins again; under the lock none has to",
    ),
    gone(
        "rows that have gone are cut all the same",
        code.drop_statement("ledger-rows-gone"),
        because="retention may take a row between its read and its exchange, which no scene plays",
    ),
    gone(
        "a fire that ran may be cut out of the ledger",
        sql.drop("take_ledger_rows", "execution"),
        because="what is cut was chosen because it has no execution: a second line",
    ),
    gone(
        "a backfill forgets what it has started",
        code.drop_operand("backfill-counts-live"),
        by="test_backfills.test_never_more_live_executions_than_allowed",
    ),
)
DEPENDENCIES = (
    gone(
        "who brings an upstream's end does not lock the dependent",
        sql.unlock("lock_dependents"),
        by="report / report, two upstreams of one interval",
    ),
    gone(
        "dependents are locked in no order",
        sql.unordered("lock_dependents"),
        because="the ids come sorted, and PostgreSQL mostly finds them so; without it a crossing could deadlock",
    ),
    gone(
        "what waits for an upstream is not locked",
        sql.unlock("waiting_for_dependencies"),
        by="report / cancel of what waits for it",
    ),
    gone(
        "what waits for an upstream is waited for",
        sql.wait("waiting_for_dependencies"),
        by="report / cancel of what waits for it",
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
        "what was met is forgotten",
        code.drop_sql("join-met-stays", "NOT join_parts.met"),
        by="test_dependencies.test_what_was_met_stays_met",
    ),
    gone(
        "an edit does not look at what waits",
        code.drop_statement("edit-reconsiders-waits"),
        by="report / edit of dependencies, the other upstream is taken away",
    ),
    gone(
        "a fire begins to wait without looking",
        code.drop_statement("fire-settles-waits"),
        by="fire / report, a fire of its own and the upstream of its interval",
    ),
    gone(
        "joins that were looked at are looked at again",
        code.drop_condition("join-looked-at-once"),
        because="what was looked at is judged to wait: the same would be written once more",
    ),
)
CALENDARS = (
    gone(
        "a job is made to go by calendars without their lock",
        code.never("job-locks-calendars"),
        by="calendar deletion / creation of a job that goes by it",
    ),
    gone(
        "calendars change without a lock",
        code.drop_statement("calendar-locks"),
        by="calendar change / calendar change, one version",
    ),
    gone(
        "a change of calendars wakes nothing",
        sql.drop_setting("wake_timers", "next_fire_at", instead="trouble = NULL"),
        by="test_fire_calendars.test_a_change_wakes_what_it_advances",
    ),
    gone(
        "timers are woken without a lock",
        sql.unlock("timers_by_calendar"),
        because="the change of a row locks it; locked in one order before, two changes do not wait for each other",
    ),
)
