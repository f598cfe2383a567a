"""Guards of submissions, jobs, their parts, and rows beside them."""

from tests.races.mutating import code, sql
from tests.races.mutating.mutation import gone

SUBMITS = (
    gone(
        "a taken key is an error",
        code.drop_argument("key-taken-once", "conflict"),
        by="submit / submit, one key",
    ),
    gone(
        "a known request is an error",
        code.drop_argument("request-taken-once", "conflict"),
        by="submit / submit, one request at two servers",
    ),
    gone(
        "keys are taken in the order of the request",
        code.unsorted("keys-in-order"),
        by="submit / submit, the same keys named in two orders",
    ),
    gone(
        "requests are reserved in the order of the batch",
        code.unsorted("requests-in-order"),
        by="submit / submit, the same requests in two orders",
    ),
    gone(
        "an expired key is used",
        sql.drop("read_keys", "until", instead="$4::bigint > 0"),
        by="refused submit / submit, a key that has expired",
    ),
    gone(
        "a submission that lost its key and finds none goes on",
        code.never("key-gone-meanwhile"),
        by="refused submit / submit, a key that has expired",
    ),
    gone(
        "keys are freed before they expire",
        sql.drop("free_expired_keys", "until", instead="$4 > 0"),
        by="test_submit.test_a_key_stands_for_the_first_submission_until_it_expires",
    ),
    gone(
        "freeing expired keys waits for locked ones",
        sql.wait("free_expired_keys"),
        because="keys are locked in one order, so waiting here instead of at the insert has the same result",
    ),
    gone(
        "changed jobs are not noticed",
        code.never("jobs-unmoved"),
        by="test_submit.test_every_version_in_a_batch_is_checked",
    ),
    gone(
        "the sweep of keys waits for locked ones",
        sql.wait("expire_unique_keys"),
        by="sweep of expired keys / submit that replaces some of them",
    ),
    gone(
        "the sweep deletes keys before they expire",
        sql.drop("expire_unique_keys", "until", instead="$1 > 0"),
        by="test_sweep.test_only_expired_keys_are_deleted",
    ),
)
MEETINGS = (
    gone(
        "a taken key of a job is an error",
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
        "keys are deleted without a lock",
        sql.unlock("meetings_after"),
        by="submit / sweep, a key of a job whose execution has ended",
    ),
    gone(
        "an execution that has just begun is replaced",
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
    gone("an existing queue is an error", sql.must_be_new("add_queue"), by="ensure_lane / ensure_lane"),
    gone("an existing lane is an error", sql.must_be_new("add_lane"), by="ensure_lane / ensure_lane"),
    gone("a taken name of a job is an error", sql.must_be_new("add_job"), by="test_jobs.test_a_name_is_taken_once"),
    gone(
        "edits of dependencies do not lock each other",
        code.drop_element("edit-together"),
        by="edit / edit, dependencies on each other",
    ),
    gone(
        "an edit of a workflow does not check whether its jobs have changed",
        code.drop_condition("edit-of-what-is-true"),
        by="edit of a job / edit of a workflow that runs it with changes",
    ),
    gone(
        "a deletion does not see workflows that are being created",
        code.drop_statement("delete-together"),
        by="delete / create of a workflow that runs it",
    ),
    gone(
        "a workflow is created without the locks of its jobs",
        code.always("create-together"),
        by="delete / create of a workflow that runs it",
    ),
    gone(
        "a workflow is created with a job that was deleted meanwhile",
        code.never("create-of-what-is-true"),
        by="delete / create of a workflow that runs it",
    ),
    gone(
        "naming a job does not lock the name",
        code.constant("edit-locks-name", "nothing"),
        by="create / rename, one name",
    ),
    gone("a change of a job does not lock it", sql.unlock("lock_job"), by="edit of the schedule / pause"),
    gone(
        "a step is stored without the session's lock",
        code.unlocked("step-locks-session"),
        by="store a step / mark_lost, rescue, a new attempt",
    ),
    gone(
        "any session can store a step",
        sql.drop("held_steps", "session", "attempt"),
        by="test_sweep.test_a_step_is_stored_once_and_only_for_the_session_that_holds_it",
    ),
    gone(
        "a lost session can store steps",
        code.drop_condition("step-of-live-session"),
        by="test_sweep.test_a_step_is_stored_once_and_only_for_the_session_that_holds_it",
    ),
    gone(
        "dead letters are marked in the order of the request",
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
        "submissions do not check rollouts",
        code.drop_condition("submit-sees-rollout"),
        by="a rollout ends / submit of its choice",
    ),
    gone("an edit does not check rollouts", code.never("edit-sees-rollout"), by="a rollout begins / edit"),
)
TEMPLATES = (
    gone(
        "an edit does not check whether its template changed",
        code.always("edit-of-current-template"),
        by="a template changes / a job made from it is edited",
    ),
    gone(
        "a template changes without a lock",
        code.drop_statement("template-unchanged"),
        by="a template changes / a job is created from it",
    ),
)
NAMESPACES = (
    gone(
        "a job is created without the lock of its namespace",
        code.drop_argument("create-locks-namespace", "shared"),
        by="a namespace is deleted / a job is created in it",
    ),
    gone(
        "a job is created in a namespace that may be gone",
        code.never("create-in-open-namespace"),
        by="a namespace is deleted / a job is created in it",
    ),
)

USERS = (
    gone(
        "users are added without a lock on their names",
        code.drop_statement("add-locks-name"),
        by="a user is added / a user is added whose name differs in case",
    ),
    gone(
        "a user signs in with an old password",
        sql.drop("user_signed_in", "COALESCE", instead="$3 > ''"),
        by="a user signs in / the password is changed",
    ),
    gone(
        "a deactivated user signs in",
        sql.drop("user_signed_in", "active"),
        by="a user signs in / the user is deactivated",
    ),
    gone(
        "a user gets a role without a lock",
        sql.unlock("join_namespace"),
        by="a user gets a role / the user is deleted",
    ),
)
