"""Guards of reports, rescues and cancellations."""

from tests.races.mutating import code, sql
from tests.races.mutating.mutation import gone

REPORTS = (
    gone(
        "a report is matched with any session's slices",
        sql.drop("held", "session"),
        code.read_as("held-by-session", "session", None),
        code.read_as("mine-by-session", "session", None),
        by="test_report.test_another_sessions_items_are_not_touched",
    ),
    gone(
        "the statement that finds held slices does not select the session",
        sql.drop("held", "session"),
        because="its rows are grouped by session: it would only read more than it needs",
    ),
    gone(
        "a report is matched with any attempt",
        sql.drop("held", "attempt"),
        code.read_as("held-by-attempt", "attempt", 0),
        code.read_as("reported-attempt", "attempt", 0),
        by="test_report.test_a_late_report_of_an_older_attempt_changes_nothing",
    ),
    gone(
        "the statement that finds held slices does not select the attempt",
        sql.drop("held", "attempt"),
        because="`match` and the check of notes compare attempts too: it would only read more than it needs",
    ),
    gone(
        "a report is matched by equal bounds",
        sql.drop("held", "lo", instead="r.lo = given.lo"),
        sql.drop("held", "hi", instead="r.hi = given.hi"),
        by="report / report, overlapping parts of one slice",
    ),
    gone(
        "a finished attempt leaves its requests",
        code.drop_element("report-forgets-requests"),
        by="test_cancel.test_a_request_is_deleted_with_its_attempt",
    ),
    gone(
        "a rescue leaves the requests",
        code.drop_element("rescue-forgets-requests"),
        by="test_rescue.test_executions_that_a_lost_worker_was_asked_to_stop_have_stopped",
    ),
    gone(
        "a cancelled item that fails is retried",
        code.never("cancelled"),
        by="test_cancel.test_an_item_that_fails_after_being_asked_is_not_retried",
    ),
    gone(
        "known log lines are not ignored",
        sql.drop("keep_log_lines", "seq"),
        by="test_report.test_repeated_lines_in_other_pieces_keep_their_numbers",
    ),
    gone(
        "notes are not fenced",
        sql.drop("held", "attempt"),
        code.drop_condition("notes-of-attempt"),
        by="test_report.test_progress_and_logs_of_an_older_attempt_are_refused",
    ),
    gone(
        "a large result may be stored only once",
        code.drop_argument("result-stored-once", "conflict"),
        because="an item succeeds once, so its result is stored once; after a repair the old one must not be an error",
    ),
    gone(
        "a begun at-most-once execution is handed back",
        code.drop_condition("begun-runs-once"),
        by="test_report.test_a_started_at_most_once_item_cannot_be_handed_back",
    ),
    gone(
        "a lost at-most-once execution is queued again",
        code.drop_condition("lost-runs-once"),
        by="test_rescue.test_a_lost_at_most_once_execution_is_final_even_without_a_charge",
    ),
)
CANCELS = (
    gone("cancel locks no queued slice", sql.unlock("item_queued"), by="cancel / claim"),
    gone("cancel waits for a queued slice", sql.wait("item_queued"), by="cancel / cancel, neighbours"),
    gone("cancel locks no waiting slice", sql.unlock("item_waiting"), by="cancel / promote"),
    gone("cancel waits for a waiting slice", sql.wait("item_waiting"), by="cancel / promote"),
    gone(
        "cancel writes a request without the session's lock",
        code.drop_statement("cancel-locks-session"),
        by="cancel / report of a failure with retries",
    ),
    gone("cancel reads before it has the lock", code.swap("cancel-locks-session"), by="cancel / report of a success"),
    gone(
        "a request is written twice",
        code.drop_argument("cancel-asked-once", "conflict"),
        by="test_cancel.test_a_second_request_changes_nothing",
    ),
    gone("cancelling a job's queue locks no slice", sql.unlock("job_queued"), by="cancel a job's pending / claim"),
    gone("cancelling a job's queue waits for slices", sql.wait("job_queued"), by="cancel a job's pending / claim"),
    gone("a submission does not lock its job", sql.unlock("current_jobs"), by="submit / delete"),
    gone(
        "a continued deletion does not lock its job",
        sql.unlock("still_ending"),
        by="continued deletion / restore, submit",
    ),
    gone(
        "a deletion goes on after a restoration",
        sql.drop("still_ending", "ending"),
        by="continued deletion / restore, submit",
    ),
    gone(
        "slices of a deleted job that a claim held are forgotten",
        code.drop_condition("delete-sees-pending"),
        by="delete / claim of a part",
    ),
    gone(
        "asking a job's sessions locks none",
        code.drop_statement("ask-locks-session"),
        by="ask a job's sessions / report",
    ),
    gone(
        "cancel takes the whole slice",
        code.never("cancel-keeps-neighbours"),
        by="test_cancel.test_a_queued_item_ends_and_its_neighbours_stay",
    ),
)
