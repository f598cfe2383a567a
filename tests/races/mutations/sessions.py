"""Guards of sessions and their exchanges."""

from tests.races.mutating import code, sql
from tests.races.mutating.mutation import gone

SESSIONS = (
    gone(
        "exchange, rescue and cancel lock no session",
        sql.unlock("lock_sessions"),
        by="claim / claim, one exchange at two servers",
    ),
    gone(
        "sessions are locked in the order of the batch",
        code.one_by_one("sessions-in-order"),
        by="exchange / exchange, the same sessions named in two orders",
    ),
    gone(
        "the claim for parked exchanges locks no session",
        sql.unlock("lock_parked"),
        by="claim_for_parked / claim_for_parked, one exchange parked at two servers",
    ),
    gone(
        "the claim for parked exchanges waits for sessions",
        sql.wait("lock_parked"),
        by="claim / claim_for_parked, one exchange",
    ),
    gone(
        "an exchange does not check the session's state",
        code.drop_condition("exchange-of-live-session"),
        by="claim / mark_lost, rescue",
    ),
    gone(
        "an exchange that skips numbers is accepted",
        code.never("exchange-without-gap"),
        by="test_exchange.test_a_gap_is_refused_and_changes_nothing",
    ),
    gone(
        "an exchange with any number claims",
        code.drop_condition("claim-in-turn"),
        by="test_exchange.test_one_number_sent_to_many_servers_is_granted_once",
    ),
    gone(
        "a draining session claims",
        code.drop_condition("claim-while-live"),
        by="test_exchange.test_a_draining_session_reports_but_gets_nothing",
    ),
    gone(
        "an exchange does not take its number",
        code.drop_statement("exchange-takes-number"),
        by="claim / claim, one exchange at two servers",
    ),
    gone(
        "a parked exchange's number is not checked",
        code.drop_condition("parked-in-turn"),
        by="claim_for_parked / claim_for_parked, one exchange parked at two servers",
    ),
    gone(
        "an exchange parked beside another is served whatever its number",
        code.drop_condition("parked-awaits"),
        by="claim, with one parked beside it / claim_for_parked",
    ),
    gone(
        "an exchange parked beside another is claimed for again",
        code.drop_condition("parked-elsewhere"),
        by="test_exchange.test_a_repeated_exchange_is_not_parked_twice",
    ),
    gone(
        "a parked exchange's session may have ended",
        code.drop_condition("parked-while-live"),
        by="claim_for_parked / mark_lost, rescue",
    ),
    gone(
        "a claim for parked exchanges does not take their numbers",
        code.drop_statement("parked-takes-number"),
        by="claim_for_parked / claim_for_parked, one exchange parked at two servers",
    ),
    gone(
        "an empty answer does not compare its number",
        code.never("empty-in-turn"),
        by="claim_for_parked / answer_empty, one exchange",
    ),
    gone(
        "an empty answer does not take its number",
        code.drop_statement("empty-takes-number"),
        by="claim, delayed / answer_empty, then the next claim",
    ),
    gone(
        "an empty answer does not check the session's state",
        code.drop_condition("empty-of-live-session"),
        by="answer_empty / mark_lost",
    ),
    gone(
        "answers do not count as heartbeats",
        sql.drop_setting("touch_sessions", "last_seen"),
        by="answer_empty / mark_lost",
    ),
    gone("mark_lost locks no session", sql.unlock("lock_silent_session"), by="answer_empty / mark_lost"),
    gone("mark_lost does not check the heartbeat", code.drop_condition("silent-since"), by="answer_empty / mark_lost"),
    gone("mark_lost ends ended sessions", code.drop_condition("lost-once"), by="mark_lost / mark_lost"),
    gone("rescue locks no session", code.unlocked("rescue-locks-session"), by="rescue / rescue"),
    gone(
        "rescue does not check the session's state",
        code.drop_condition("rescue-of-ended-session"),
        by="test_rescue.test_a_live_session_is_not_rescued",
    ),
    gone(
        "close does not check the session's state",
        code.drop_condition("close-once"),
        by="test_rescue.test_a_session_ends_once",
    ),
    gone("close locks no session", code.unlocked("close-locks-session"), by="mark_lost / close"),
    gone(
        "a drain request revives an ended session",
        sql.drop("ask_drain", "state"),
        by="test_sessions.test_a_closed_session_is_not_live",
    ),
    gone(
        "a new epoch ends ended sessions",
        sql.drop("end_old_epoch", "state"),
        by="test_rescue.test_a_lost_session_of_an_old_epoch_stays_lost",
    ),
    gone(
        "a new epoch locks sessions in no order",
        sql.unordered("lock_old_epoch"),
        sql.unlock("lock_old_epoch"),
        by="exchange / end_old_epochs",
    ),
    gone(
        "an ended session re-attaches",
        code.drop_condition("reattach-present"),
        by="test_reattach.test_an_ended_session_cannot_re_attach",
    ),
    gone(
        "a repeated re-attachment takes numbers back",
        code.never("reattach-once"),
        by="test_reattach.test_a_repeated_re_attachment_changes_nothing",
    ),
    gone("a session registers without a lock on the epoch", sql.unlock("hold_epoch"), by="register / a new epoch"),
    gone(
        "the sweep deletes sessions that hold slices",
        sql.drop_exists("forget_sessions", "running"),
        by="test_sweep.test_sessions_are_deleted_when_they_ended_long_ago_and_hold_nothing",
    ),
)
