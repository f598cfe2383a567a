"""Guards of holds, circuits and limits."""

from tests.races.mutating import code, sql
from tests.races.mutating.mutation import gone

HOLDS = (
    gone("a hold does not wait for claims under way", code.drop_statement("hold-locks-claims"), by="hold / claim"),
    gone(
        "a calendar's change does not wait for claims under way",
        code.drop_statement("calendar-hold-locks-claims"),
        by="a window's calendar changes / claim",
    ),
    gone(
        "a claim locks nothing against holds",
        sql.unlock("pick_queued", "holds"),
        by="hold / claim for parked exchanges",
    ),
    gone("a hand-over locks nothing against holds", sql.unlock("unheld_lanes", "holds"), by="hold / hand over"),
    gone(
        "a claim does not look for holds",
        sql.drop_exists("pick_queued", "holds", instead="$4 > 0"),
        by="test_holds.test_a_hold_lasts_until_it_is_ended_and_ends_once",
    ),
    gone("a hand-over does not look for holds", sql.drop_exists("unheld_lanes", "holds"), by="hold / hand over"),
    gone(
        "a hold applies to every queue",
        sql.drop("pick_queued", "queue IS NULL"),
        by="test_holds.test_a_hold_does_not_affect_another_queue",
    ),
    gone(
        "a hand-over obeys holds of other queues",
        sql.drop("unheld_lanes", "queue IS NULL"),
        by="test_holds.test_a_hold_does_not_affect_another_queue",
    ),
    gone(
        "a hold applies to every namespace",
        sql.drop("pick_queued", "holds.namespace"),
        by="test_holds.test_a_hold_does_not_affect_another_namespace",
    ),
    gone(
        "ended holds still apply",
        sql.drop("pick_queued", "ended_at"),
        by="test_holds.test_a_hold_lasts_until_it_is_ended_and_ends_once",
    ),
    gone(
        "a planned hold applies at once",
        sql.drop("pick_queued", "from_at", instead="$4 > 0"),
        by="test_holds.test_a_planned_hold_holds_from_its_time_on",
    ),
    gone("holds are ended without a lock", sql.unlock("due_holds"), by="advance / advance"),
    gone("ending holds waits for locked ones", sql.wait("due_holds"), by="advance / advance"),
)
CIRCUITS = (
    gone(
        "opening a circuit does not wait for claims under way",
        code.drop_statement("circuit-locks-claims"),
        by="a circuit is opened / claim",
    ),
    gone(
        "a claim locks nothing against circuits",
        sql.unlock("shut_circuits_of_jobs", "circuits"),
        by="a circuit is opened / claim for parked exchanges",
    ),
    gone(
        "failures are counted without a lock",
        code.drop_statement("circuit-feed-locks"),
        by="two servers count failures of one circuit",
    ),
    gone(
        "a circuit is changed by hand without a lock",
        code.drop_statement("circuit-force-locks"),
        because="the last transaction writes the whole row, and the table is locked when the circuit opens",
    ),
    gone(
        "circuits become half-open without a lock",
        code.drop_statement("circuit-turn-locks"),
        because="two servers would do it at once, and write the same row twice",
    ),
    gone(
        "probes are released without a lock",
        code.drop_statement("circuit-probes-lock"),
        by="two servers release probes",
    ),
    gone(
        "executions at a circuit's gate are not locked",
        sql.unlock("waiting_at_circuit"),
        because="the circuit has a lock that protects its gate, and a cancellation finds the row gone",
    ),
    gone(
        "a claim does not check circuits",
        sql.drop("shut_circuits_of_jobs", "state", instead="false"),
        by="test_circuits.test_an_open_circuit_stops_starts_until_it_is_reset",
    ),
    gone(
        "a hand-over ignores circuits",
        code.drop_condition("dealt-without-circuit"),
        by="test_circuits.test_nothing_is_handed_over_past_a_circuit",
    ),
    gone(
        "every slice counts as a probe",
        code.always("circuit-probes-only"),
        by="test_circuits.test_only_probes_run_in_a_half_open_circuit_and_they_close_it",
    ),
)
LIMITS = (
    gone("keys are not locked", code.drop_statement("keys-lock"), by="submit / submit under a key"),
    gone("keys are read before they are locked", code.swap("enter-locks-keys"), by="submit / submit under a key"),
    gone(
        "freeing a key does not lock it",
        code.drop_statement("free-locks-keys"),
        by="report that frees a key / submit under it",
    ),
    gone(
        "freeing a place in a sequence reads before the lock",
        code.call_before("free-locks-keys", "look"),
        because="the read under the lock decides; the first only costs a statement",
    ),
    gone(
        "admission waits for locked slices",
        sql.wait("waiting_at_keys"),
        by="report that frees a key / cancel of an execution waiting for it",
    ),
    gone(
        "admission waits for the locked next slice of a sequence",
        sql.wait("waiting_heads"),
        by="report / cancel of the next in a sequence",
    ),
    gone(
        "ended executions do not free their keys",
        code.drop_statement("end-frees-keys"),
        by="test_holders.test_an_end_admits_the_next_execution_in_the_same_report",
    ),
    gone(
        "an adoption does not lock the session of running executions",
        code.drop_statement("adoption-locks-session"),
        by="report / adoption of its executions",
    ),
    gone(
        "a retry keeps its keys",
        code.drop_statement("retry-frees-keys"),
        by="test_holders.test_a_retry_gives_its_key_back_and_asks_for_it_again",
    ),
    gone(
        "limits of queues are counted without a lock",
        code.drop_statement("limits-lock"),
        by="claim / claim under a queue's limit",
    ),
    gone(
        "setting a limit does not wait for claims under way",
        code.drop_statement("limit-locks-claims"),
        by="limit of a queue / claim without knowledge of it",
    ),
    gone(
        "claims do not lock limits",
        sql.unlock("pick_queued", "limits"),
        by="limit of a queue / claim without knowledge of it",
    ),
    gone(
        "a claim without knowledge of a limit goes on",
        sql.drop_exists("pick_queued", "limits"),
        by="test_coarse.test_a_server_that_does_not_know_a_limit_claims_nothing",
    ),
    gone(
        "a hand-over ignores limits",
        sql.drop_exists("unheld_lanes", "limits"),
        by="test_coarse.test_a_hand_over_does_not_bypass_a_limit",
    ),
    gone("rates of keys are not locked", sql.unlock("lock_rates"), by="claim / claim under a key's rate"),
    gone(
        "a claim waits for further rates",
        sql.wait("lock_free_rates"),
        because="a claim would wait while it holds other rates: two claims could wait for each other",
    ),
)
