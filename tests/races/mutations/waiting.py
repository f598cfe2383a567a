"""Guards of waiting executions: promotion, wider lanes, timeouts and gates."""

from tests.races.mutating import code, sql
from tests.races.mutating.mutation import gone

PROMOTES = (
    gone("promote locks no slice", sql.unlock("due_waiting"), by="promote / promote"),
    gone("promote waits for slices", sql.wait("due_waiting"), by="promote / promote"),
    gone(
        "promote does not check the due time",
        sql.drop("due_waiting", "wake_at <=", instead="$2 > 0"),
        by="test_promote.test_due_executions_are_queued_and_others_wait",
    ),
    gone("relax locks no slice", sql.unlock("waited_in_lane"), by="relax / claim"),
    gone("directing locks no slice", sql.unlock("undirected"), by="direct / direct, two servers"),
    gone("directing waits for slices", sql.wait("undirected"), by="direct / direct, two servers"),
    gone("the use of a lane is not recorded", code.never("lane-use-noted"), by="direct / forget lanes"),
    gone("a lane is not locked while slices move there", sql.unlock("sibling_lane"), by="direct / forget lanes"),
    gone("relax waits for slices", sql.wait("waited_in_lane"), by="relax / claim"),
    gone(
        "relax does not check the waiting time",
        sql.drop("waited_in_lane", "queued_at", instead="$2 > 0"),
        by="test_relax.test_long_waiting_slices_move_to_the_wider_lane_with_rank_and_arrival",
    ),
    gone(
        "timeouts are checked by two servers",
        sql.unlock("timeouts_due"),
        by="end overdue / end overdue, two servers",
    ),
    gone("timeouts wait for locked rows", sql.wait("timeouts_due"), by="end overdue / end overdue, two servers"),
    gone("ending locks no queued slice", sql.unlock("queued_of_parcels"), by="end overdue / claim"),
    gone("ending waits for queued slices", sql.wait("queued_of_parcels"), by="end overdue / claim"),
    gone("ending locks no waiting slice", sql.unlock("waiting_of_parcels"), by="end overdue / promote"),
    gone("ending waits for waiting slices", sql.wait("waiting_of_parcels"), by="end overdue / promote"),
    gone("locked slices are not checked again", code.never("overdue-held-elsewhere"), by="end overdue / claim"),
    gone("opening a gate locks no slice", sql.unlock("waiting_at_gate"), by="open_gate / open_gate"),
    gone("opening a gate waits for slices", sql.wait("waiting_at_gate"), by="open_gate / open_gate"),
    gone(
        "promote locks the parcels too",
        sql.lock_joined("due_waiting"),
        because="parcels never change and nothing else locks them: it would only write to rows unnecessarily",
    ),
)
