"""Guards of submissions, jobs, what they are made of, and what is kept beside them."""

from tests.races.mutating import code, sql
from tests.races.mutating.mutation import gone

SUBMITS = (
    gone(
        "a key that is taken is an error",
        code.drop_argument("key-taken-once", "conflict"),
        by="submit / submit, one key",
    ),
    gone(
        "a request that is known is an error",
        code.drop_argument("request-taken-once", "conflict"),
        by="submit / submit, one request at two servers",
    ),
    gone(
        "keys are taken in the order they were named",
        code.unsorted("keys-in-order"),
        by="submit / submit, the same keys named in two orders",
    ),
    gone(
        "requests are reserved in the order they came",
        code.unsorted("requests-in-order"),
        by="submit / submit, the same requests in two orders",
    ),
    gone(
        "an expired key is honoured",
        sql.drop("read_keys", "until", instead="$4::bigint > 0"),
        by="submit that is refused / submit, a key that has expired",
    ),
    gone(
        "a loser that finds nothing goes on",
        code.never("key-gone-meanwhile"),
        by="submit that is refused / submit, a key that has expired",
    ),
    gone(
        "keys are freed before their time",
        sql.drop("free_expired_keys", "until", instead="$4 > 0"),
        by="test_submit.test_a_key_stands_for_the_first_submission_until_it_expires",
    ),
    gone(
        "freeing expired keys waits for others",
        sql.wait("free_expired_keys"),
        because="keys are named in one order, so waiting here instead of at the insert leads to the same end",
    ),
    gone(
        "jobs that changed are not noticed",
        code.never("jobs-unmoved"),
        by="test_submit.test_every_version_in_a_batch_is_checked",
    ),
    gone(
        "the sweep of keys waits for others",
        sql.wait("expire_unique_keys"),
        by="sweep of expired keys / submit that replaces some of them",
    ),
    gone(
        "the sweep forgets keys before their time",
        sql.drop("expire_unique_keys", "until", instead="$1 > 0"),
        by="test_sweep.test_only_expired_keys_are_deleted",
    ),
)
MEETINGS = (
    gone(
        "a key of a job that is taken is an error",
        code.drop_argument("meeting-once", "conflict"),
        by="submit / submit, one key of a job while live",
    ),
    gone(
        "keys of a job are not locked",
        sql.unlock("lock_meetings"),
        by="submit / submit, a key of a job whose execution has ended",
    ),
    gone("a window is changed without its row on the shelf", sql.unlock("open_windows"), by="debounce / promote"),
    gone(
        "keys are forgotten without a lock",
        sql.unlock("meetings_after"),
        by="submit / sweep, a key of a job whose execution has ended",
    ),
    gone(
        "what has just begun is replaced",
        code.never("replaced-was-cancelled"),
        by="submit, the latest of a key / claim",
    ),
    gone(
        "room in a queue is counted without a lock",
        code.drop_statement("quota-locks"),
        by="submit / submit, room for one",
    ),
)
OTHERS = (
    gone("a queue that exists is an error", sql.must_be_new("add_queue"), by="ensure_lane / ensure_lane"),
    gone("a lane that exists is an error", sql.must_be_new("add_lane"), by="ensure_lane / ensure_lane"),
    gone(
        "a job's name that is taken is an error", sql.must_be_new("add_job"), by="test_jobs.test_a_name_is_taken_once"
    ),
    gone(
        "edits of dependencies do not lock each other",
        code.drop_element("edit-together"),
        by="edit / edit, dependencies on each other",
    ),
    gone(
        "an edit of a workflow does not look whether its jobs have changed",
        code.drop_condition("edit-of-what-is-true"),
        by="edit of a job / edit of a workflow that runs it with changes",
    ),
    gone(
        "a deletion does not look for workflows while they are made",
        code.drop_statement("delete-together"),
        by="delete / create of a workflow that runs it",
    ),
    gone(
        "a workflow is made without the lock of what it runs",
        code.always("create-together"),
        by="delete / create of a workflow that runs it",
    ),
    gone(
        "a workflow is made of what was deleted meanwhile",
        code.never("create-of-what-is-true"),
        by="delete / create of a workflow that runs it",
    ),
    gone(
        "who names a job does not lock the name",
        code.constant("edit-locks-name", "nothing"),
        by="create / rename, one name",
    ),
    gone("a change of a job does not lock it", sql.unlock("lock_job"), by="edit of the schedule / pause"),
    gone(
        "a step is remembered without the session's lock",
        code.unlocked("step-locks-session"),
        by="remember a step / mark_lost, rescue, a new attempt",
    ),
    gone(
        "a step is remembered by whoever says so",
        sql.drop("held_steps", "session", "attempt"),
        by="test_sweep.test_a_step_is_stored_once_and_only_for_the_session_that_holds_it",
    ),
    gone(
        "a lost session has steps remembered",
        code.drop_condition("step-of-live-session"),
        by="test_sweep.test_a_step_is_stored_once_and_only_for_the_session_that_holds_it",
    ),
    gone(
        "dead letters are marked in the order they were named",
        code.unsorted("dead-letters-in-order"),
        by="mark / mark, the same dead letters in two orders",
    ),
    gone(
        "repairs do not lock each other", code.drop_statement("repair-locks"), by="repair / repair, items on no shelf"
    ),
    gone(
        "a duty is taken from its holder",
        sql.drop("take_duty", "holder", instead="$3 > 0"),
        by="test_sweep.test_a_duty_is_held_by_one_server_until_its_time_is_over",
    ),
)
ROLLOUTS = (
    gone(
        "a rollout ends without waiting for fires under way",
        code.drop_argument("rollout-locks-triggers", "lock"),
        by="a rollout ends / fire",
    ),
    gone(
        "submissions do not look for rollouts",
        code.drop_condition("submit-sees-rollout"),
        by="a rollout ends / submit of what it chose",
    ),
    gone("an edit does not look for rollouts", code.never("edit-sees-rollout"), by="a rollout begins / edit"),
)
TEMPLATES = (
    gone(
        "an edit does not look whether its template changed",
        code.always("edit-of-current-template"),
        by="a template changes / a job that was made from it is edited",
    ),
    gone(
        "a template changes without a lock",
        code.drop_statement("template-unchanged"),
        by="a template changes / a job is made from it",
    ),
)
NAMESPACES = (
    gone(
        "a job is made without the lock of its namespace",
        code.drop_argument("create-locks-namespace", "shared"),
        by="a namespace is deleted / a job is made in it",
    ),
    gone(
        "a job is made whether or not its namespace is there",
        code.never("create-in-open-namespace"),
        by="a namespace is deleted / a job is made in it",
    ),
)
