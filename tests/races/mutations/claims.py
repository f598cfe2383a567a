"""Guards of claims, and of preemption for them."""

from tests.races.mutating import code, sql
from tests.races.mutating.mutation import gone

CLAIMS = (
    gone("a claim locks no slice", sql.unlock("pick_queued"), by="claim / claim, two sessions"),
    gone("a claim waits for slices", sql.wait("pick_queued"), by="claim / claim, two sessions"),
    gone(
        "a claim does not follow the rank",
        sql.descending("pick_queued", "rank"),
        by="test_claim.test_lower_ranks_are_claimed_first",
    ),
    gone(
        "a cut does not name the slice",
        sql.drop("cut_queued", "lo"),
        by="test_claim.test_slices_of_one_parcel_are_taken_and_cut_apart",
    ),
    gone(
        "taking a queued slice does not name its position",
        sql.drop("take_queued", "parcel, lo", instead="parcel IN (SELECT parcel FROM given)"),
        by="claim / claim, two sessions and pieces of one parcel",
    ),
    gone(
        "the answer is not bound to its number",
        sql.drop("stamped", "n", instead="$3 > 0"),
        by="test_exchange.test_an_old_number_is_answered_with_its_remaining_slices",
    ),
    gone(
        "the answer is not bound to its channel",
        sql.drop("stamped", "channel", instead="$2 >= 0"),
        by="test_exchange.test_the_answer_to_a_channel_is_its_own",
    ),
    gone(
        "a claim starts no new attempt",
        code.drop_operand("claim-counts-attempt"),
        by="test_claim.test_every_claim_starts_a_new_attempt",
    ),
    gone(
        "a claim does not see the suspects of a session",
        code.argument("claim-sees-suspects", "held", 0),
        by="claim / claim, one session, two channels and suspects",
    ),
    gone(
        "paused jobs are not set aside",
        code.never("paused-aside"),
        by="test_claim.test_paused_jobs_are_set_aside_and_the_rest_goes_on",
    ),
)
PREEMPTS = (
    gone(
        "servers preempt without a lock",
        code.drop_statement("preempt-locks"),
        by="preempt / a step, and preempt",
    ),
    gone(
        "preempted executions are not checked again",
        sql.reword("still_running", "SELECT given.parcel, given.item, given.attempt, given.session FROM given"),
        by="preempt / report of a success",
    ),
    gone(
        "sessions of preempted executions are not locked",
        code.unlocked("preempt-locks-sessions"),
        by="preempt / report of a success",
    ),
    gone(
        "a lost session is asked to give way",
        code.drop_condition("preempt-of-live-session"),
        because="the rescue of its slices deletes the requests; no worker would receive them",
    ),
    gone(
        "requested slots are requested again",
        code.never("preempt-asked-already"),
        by="test_preempt.test_requested_slots_count_as_about_to_become_free",
    ),
    gone(
        "preempting waits for a queued slice",
        sql.wait("to_front"),
        because="the holder of the slice claims it: the wait would end without a slice to put in front",
    ),
)
