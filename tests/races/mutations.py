"""Every lock and guard of the moves, removed one at a time: something must notice.

A mutation rewrites the text of a statement or the source of a function while it is applied. `caught_by` names what is
expected to notice: a scene, a crossing, or a contract test (`test_module.test_name`, run on SQLite in memory). Those
that nothing can notice say why the guard is kept all the same.
"""

import inspect
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from horae.store.script import Statement


class Edit(Struct, frozen=True):
    """One change: in `module.name` of the moves, this text becomes that."""

    where: str
    old: str
    new: str


class Mutation(Struct, frozen=True, kw_only=True):
    """A guard that is gone, and who notices; without anybody, why it is kept."""

    name: str
    edits: tuple[Edit, ...]
    caught_by: str = ""
    kept_because: str = ""


@contextmanager
def applied(mutation: Mutation) -> Iterator[None]:
    """The code without the guard, until the end of the block."""
    with ExitStack() as stack:
        for where in dict.fromkeys(edit.where for edit in mutation.edits):
            stack.enter_context(_edited(where, [edit for edit in mutation.edits if edit.where == where]))
        yield


@contextmanager
def _edited(where: str, edits: Sequence[Edit]) -> Iterator[None]:
    target = _target(where)
    if isinstance(target, Statement):
        before = target.text
        force_setattr(target, "text", _changed(before, edits))
        try:
            yield
        finally:
            force_setattr(target, "text", before)
        return
    code = target.__code__
    target.__code__ = _rewritten(target, edits)
    try:
        yield
    finally:
        target.__code__ = code


def _changed(text: str, edits: Sequence[Edit]) -> str:
    for edit in edits:
        assert edit.old in text, f"{edit.where} does not say {edit.old!r}"
        text = text.replace(edit.old, edit.new)
    return text


def _target(where: str) -> Any:
    """What a path names: a module's statement or function, a class's method, an element of a collection."""
    parts = (where if where.startswith("horae.") else f"horae.store.moves.{where}").split(".")
    modules = 3 if parts[1] != "store" else 4
    found: Any = import_module(".".join(parts[:modules]))
    for part in parts[modules:]:
        if isinstance(found, dict):
            found = found[part]
        else:
            found = found[int(part)] if part.isdigit() else getattr(found, part)
    return found


def _rewritten(function: FunctionType, edits: Sequence[Edit]) -> CodeType:
    """The function's code as its changed source gives it; its own globals stay."""
    source = _changed(_source(function), edits)
    whole = compile(source, function.__code__.co_filename, "exec")
    return next(part for part in whole.co_consts if isinstance(part, CodeType) and part.co_name == function.__name__)


@cache
def _source(function: FunctionType) -> str:
    return textwrap.dedent(inspect.getsource(function))


def one(name: str, where: str, old: str, new: str = "", *, by: str = "", because: str = "") -> Mutation:
    return Mutation(name=name, edits=(Edit(where, old, new),), caught_by=by, kept_because=because)


SESSION_LOCK = " FOR NO KEY UPDATE OF s"
SKIP = " SKIP LOCKED"
FLOW_LOCK = " FOR NO KEY UPDATE OF r"
UNLOCKED = (
    'Statement("unlocked", "SELECT s.id, s.state, s.seen, s.worker, s.concurrency FROM sessions s'
    ' JOIN given ON s.id = given.id")'
)

LOOKED_AT = (
    'Statement("looked_at", "SELECT s.id, s.state, s.seen, s.worker, s.concurrency FROM sessions s'
    ' WHERE s.id = ANY($1)")'
)

SESSIONS = [
    one(
        "exchange, rescue and cancel lock no session", "exchange.LOCK_SESSIONS", SESSION_LOCK,
        by="claim / claim, one exchange at two servers",
    ),
    one(
        "sessions are locked in the order they were named", "exchange.lock_sessions",
        "rows = yield Among(statement, sorted(set(ids)))",
        "rows = []\n    for id in dict.fromkeys(ids):\n        rows += yield Among(statement, [id])",
        by="exchange / exchange, the same sessions named in two orders",
    ),
    one(
        "the claim for parked exchanges locks no session", "exchange.LOCK_PARKED", f"{SESSION_LOCK}{SKIP}",
        by="claim_for_parked / claim_for_parked, one exchange parked at two servers",
    ),
    one(
        "the claim for parked exchanges waits for sessions", "exchange.LOCK_PARKED", SKIP,
        by="claim / claim_for_parked, one exchange",
    ),
    one(
        "an exchange does not look at the session's state", "exchange._refuse", "row is None or not row.live",
        "row is None", by="claim / mark_lost, rescue",
    ),
    one(
        "an exchange that leaves numbers out is heard", "exchange._refuse", "head.exchange.n > seen + 1", "False",
        by="test_exchange.test_a_gap_is_refused_and_changes_nothing",
    ),
    one(
        "any number of a channel claims", "exchange._asks", "is_next and ", "",
        by="test_exchange.test_one_number_sent_to_many_servers_is_granted_once",
    ),
    one(
        "a draining session claims", "exchange._asks", 'row.state == "live" and ', "",
        by="test_exchange.test_a_draining_session_reports_but_gets_nothing",
    ),
    one(
        "an exchange does not take its number", "exchange._reply",
        "row.seen, row.dirty = see(row.seen, up.channel, up.n), True", "pass",
        by="claim / claim, one exchange at two servers",
    ),
    one(
        "a parked exchange's number is not looked at", "exchange._awaits",
        " and seen_on(row.seen, want.channel) == want.n - 1", "",
        by="claim_for_parked / claim_for_parked, one exchange parked at two servers",
    ),
    one(
        "what is parked beside an exchange is served whatever its number", "exchange.exchange",
        " and _awaits(sessions.get(p.want.session), p.want)", "",
        by="claim, with one parked beside it / claim_for_parked",
    ),
    one(
        "what is parked beside an exchange is asked for again by it", "exchange.exchange",
        "p.place not in heads_of and ", "",
        by="test_exchange.test_an_exchange_that_is_repeated_is_not_parked_beside_itself",
    ),
    one(
        "a parked exchange's session may have ended", "exchange._awaits", ' and row.state == "live"', "",
        by="claim_for_parked / mark_lost, rescue",
    ),
    one(
        "a claim for parked exchanges does not take their numbers", "exchange._number",
        "row.seen, row.dirty = see(row.seen, slice.channel, slice.n), True", "pass",
        by="claim_for_parked / claim_for_parked, one exchange parked at two servers",
    ),
    one(
        "an empty answer does not compare its number", "answering._empty", "seen_on(row.seen, channel) != n - 1",
        "False", by="claim_for_parked / answer_empty, one exchange",
    ),
    one(
        "an empty answer does not take its number", "answering._empty",
        "row.seen, row.dirty = see(row.seen, channel, n), True", "pass",
        by="claim, delayed / answer_empty, then the next claim",
    ),
    one(
        "an empty answer does not look at the session's state", "answering._empty", "row is None or not row.live",
        "row is None", by="answer_empty / mark_lost",
    ),
    one(
        "answers are no sign of life", "exchange.TOUCH_SESSIONS", ", last_seen = given.at", "",
        by="answer_empty / mark_lost",
    ),
    one("mark_lost locks no session", "rescue.LOCK_SILENT", SESSION_LOCK, by="answer_empty / mark_lost"),
    one(
        "mark_lost does not look at the heartbeat", "rescue.mark_lost", " or rows[0][2] != last_seen", "",
        by="answer_empty / mark_lost",
    ),
    one(
        "mark_lost ends what has ended", "rescue.mark_lost", " or rows[0][1] not in LIVE", "",
        by="mark_lost / mark_lost",
    ),
    one(
        "rescue locks no session", "rescue.rescue", "lock_sessions([session])",
        f"lock_sessions([session], {UNLOCKED})", by="rescue / rescue",
    ),
    one(
        "rescue does not look at the session's state", "rescue.rescue", "row is None or row.live", "row is None",
        by="test_rescue.test_a_live_session_is_not_rescued",
    ),
    one(
        "close does not look at the session's state", "rescue.close", "row is None or not row.live", "row is None",
        by="test_rescue.test_a_session_ends_once",
    ),
    one(
        "close locks no session", "rescue.close", "lock_sessions([session])",
        f"lock_sessions([session], {UNLOCKED})", by="mark_lost / close",
    ),
    one(
        "a wish to drain revives an ended session", "sessions.DRAIN", " AND state = 'live'", "",
        by="test_sessions.test_a_closed_session_is_not_live",
    ),
    one(
        "a new epoch ends what has ended", "sessions.OLD_EPOCH", " AND state IN ('live', 'draining')", "",
        by="test_rescue.test_a_lost_session_of_an_old_epoch_stays_lost",
    ),
    one(
        "a new epoch locks sessions as it finds them", "sessions.LOCK_OLD_EPOCH", " ORDER BY id FOR NO KEY UPDATE", "",
        by="exchange / end_old_epochs",
    ),
    one(
        "a session registers without holding the epoch", "sessions.HOLD_EPOCH", " FOR SHARE", "",
        by="register / a new epoch",
    ),
    one(
        "the sweep forgets sessions that own something", "sweep.OLD_SESSIONS",
        " AND NOT EXISTS (SELECT 1 FROM running r WHERE r.session = s.id)", "",
        by="test_sweep.test_sessions_are_forgotten_when_they_ended_long_ago_and_own_nothing",
    ),
]  # fmt: skip

CLAIMS = [
    one("a claim locks no slice", "claim_lane.PICK", f" FOR UPDATE{SKIP}", by="claim / claim, two sessions"),
    one("a claim waits for slices", "claim_lane.PICK", SKIP, by="claim / claim, two sessions"),
    one(
        "a claim does not follow the rank", "claim_lane.PICK", "ORDER BY lane, rank,", "ORDER BY lane, rank DESC,",
        by="test_claim.test_lower_ranks_are_claimed_first",
    ),
    one(
        "a cut does not name the slice", "claim_lane.CUT", " AND queued.lo = given.lo", "",
        by="test_claim.test_slices_of_one_parcel_are_taken_and_cut_apart",
    ),
    one(
        "taking a queued slice does not name it", "shelves._TAKE.queued", "(parcel, lo) IN (SELECT parcel, lo",
        "parcel IN (SELECT parcel", by="claim / claim, two sessions and pieces of one parcel",
    ),
    one(
        "the answer is not bound to its number", "answering.STAMPED", " AND n = $3", " AND $3 > 0",
        by="test_exchange.test_an_old_number_is_answered_with_what_is_left_of_it",
    ),
    one(
        "the answer is not bound to its channel", "answering.STAMPED", " AND channel = $2", " AND $2 >= 0",
        by="test_exchange.test_the_answer_to_a_channel_is_its_own",
    ),
    one(
        "a claim starts no new attempt", "claim_lane.granted", "attempt=s.attempt + 1", "attempt=s.attempt",
        by="test_claim.test_every_claim_starts_a_new_attempt",
    ),
    one(
        "a claim does not see what suspects a session holds", "claim_lane._look_up_companies",
        "held=int(held)", "held=0",
        by="claim / claim, one session, two channels and suspects",
    ),
    one(
        "paused jobs are not set aside", "claim_lane._set_aside", "s.job in paused", "False",
        by="test_claim.test_paused_jobs_are_set_aside_and_the_rest_goes_on",
    ),
]  # fmt: skip

REPORTS = [
    Mutation(
        name="a report is matched with any session's slices",
        edits=(
            Edit("report.HELD", "r.session = given.session AND ", ""),
            Edit("report._held", "held.setdefault(slice.session, {})", "held.setdefault(heads[0].session, {})"),
        ),
        caught_by="test_report.test_another_sessions_items_are_not_touched",
    ),
    one(
        "the statement that finds what is held does not ask for the session", "report.HELD",
        "r.session = given.session AND ", "",
        because="what it finds is grouped by the session that holds it: it would only read more than it needs",
    ),
    Mutation(
        name="a report is matched with any attempt",
        edits=(
            Edit("report.HELD", " AND r.attempt = given.attempt", ""),
            Edit("horae.model.slice.match", "slice.parcel, slice.attempt", "slice.parcel, 0"),
            Edit("horae.model.slice.match", "span.parcel, span.attempt", "span.parcel, 0"),
        ),
        caught_by="test_report.test_a_late_report_of_an_older_attempt_changes_nothing",
    ),
    one(
        "the statement that finds what is held does not ask for the attempt", "report.HELD",
        " AND r.attempt = given.attempt", "",
        because="`match` and the check of notes compare attempts too: it would only read more than it needs",
    ),
    one(
        "a report is matched by equal bounds", "report.HELD", "r.lo < given.hi AND r.hi > given.lo",
        "r.lo = given.lo AND r.hi = given.hi",
        by="report / report, overlapping parts of one slice",
    ),
    one(
        "a finished attempt leaves its requests", "report._settle_one", ", ForEach(FORGET_REQUESTS, RANGE, gone)",
        by="test_cancel.test_a_request_goes_with_the_attempt",
    ),
    one(
        "a rescue leaves the requests", "rescue.rescue", "*fates, gone]", "*fates]",
        by="test_rescue.test_what_a_rescued_worker_was_asked_to_stop_has_stopped",
    ),
    one(
        "a cancelled item that fails is retried", "stops.cancel_asked", "if cancels else []", "if False else []",
        by="test_cancel.test_an_item_that_fails_after_being_asked_is_not_retried",
    ),
    one(
        "known log lines are not ignored", "log_lines.KEEP", " AND given.seq >=", " AND given.seq + 99 >=",
        by="test_report.test_lines_that_come_again_by_other_pieces_have_one_number_each",
    ),
    Mutation(
        name="notes are not fenced",
        edits=(
            Edit("report.HELD", " AND r.attempt = given.attempt", ""),
            Edit("report._Holds.__call__", "s.attempt == attempt", "True"),
        ),
        caught_by="test_report.test_progress_and_logs_of_an_older_attempt_are_refused",
    ),
    one(
        "a large result may be stored once", "shelves.put_blobs", "list(blobs), conflict=newest", "list(blobs)",
        because="an item succeeds once, so its result is stored once; after a repair it must not stand in the way",
    ),
    one(
        "what may run once is handed back after it began", "report._go_on", "has_begun(slice, outcome)", "False",
        by="test_report.test_a_started_item_that_may_run_once_cannot_be_handed_back",
    ),
    one(
        "what may run once is taken back uncharged", "rescue._give_up", "charge or delivery == AT_MOST_ONCE", "charge",
        by="test_rescue.test_what_may_run_once_is_final_also_when_nothing_is_charged",
    ),
]  # fmt: skip

CANCELS = [
    one("cancel locks no queued slice", "cancel.ON_QUEUED", f" FOR UPDATE{SKIP}", by="cancel / claim"),
    one("cancel waits for a queued slice", "cancel.ON_QUEUED", SKIP, by="cancel / cancel, neighbours"),
    one("cancel locks no waiting slice", "cancel.ON_WAITING", f" FOR UPDATE{SKIP}", by="cancel / promote"),
    one("cancel waits for a waiting slice", "cancel.ON_WAITING", SKIP, by="cancel / promote"),
    one(
        "cancel asks without the session's lock", "cancel.ask", "yield from lock_sessions([session])",
        "yield from ()", by="cancel / report of a failure with retries",
    ),
    one(
        "cancel looks before it has the lock", "cancel.ask",
        "yield from lock_sessions([session])\n    rows = yield Fetch(ON_RUNNING, (parcel, item))",
        "rows = yield Fetch(ON_RUNNING, (parcel, item))\n    yield from lock_sessions([session])",
        by="cancel / report of a success",
    ),
    one(
        "a request is left twice", "cancel.ask", ', conflict="ON CONFLICT DO NOTHING"', "",
        by="test_cancel.test_asking_twice_is_asking_once",
    ),
    one(
        "cancelling a job's queue locks no slice", "cancel_job.OF_JOB.queued", f" FOR UPDATE{SKIP}",
        by="cancel a job's pending / claim",
    ),
    one(
        "cancelling a job's queue waits for slices", "cancel_job.OF_JOB.queued", SKIP,
        by="cancel a job's pending / claim",
    ),
    one(
        "a submission does not hold its job", "submit.CURRENT", " FOR KEY SHARE OF j", by="submit / delete",
    ),
    one(
        "a deletion that goes on does not hold its job", "cancel_job.STILL_ENDING", " FOR KEY SHARE",
        by="deletion that goes on / restore, submit",
    ),
    one(
        "a deletion goes on after a restoration", "cancel_job.STILL_ENDING", " AND ending IN ('pending', 'all')",
        by="deletion that goes on / restore, submit",
    ),
    one(
        "what a claim held of a deleted job is forgotten", "horae.engine.job_changes.delete",
        "not (yield from cancel_job.is_pending(job.id))", "True", by="delete / claim of a part",
    ),
    one(
        "asking a job's sessions locks none", "cancel_job.ask_session", "yield from lock_sessions([session])",
        "yield from ()", by="ask a job's sessions / report",
    ),
    one(
        "cancel takes the whole slice", "cancel._around", "if lo < hi", "if False",
        by="test_cancel.test_a_queued_item_ends_and_its_neighbours_stay",
    ),
]  # fmt: skip

PROMOTES = [
    one("promote locks no slice", "promote.DUE", f" FOR UPDATE OF w{SKIP}", by="promote / promote"),
    one("promote waits for slices", "promote.DUE", SKIP, by="promote / promote"),
    one(
        "promote does not wait for the time", "promote.DUE", " AND w.wake_at <= $2", " AND $2 > 0",
        by="test_promote.test_what_is_due_is_queued_and_what_is_not_waits",
    ),
    one("relax locks no slice", "relax.WAITED", f" FOR UPDATE{SKIP}", by="relax / claim"),
    one(
        "directing locks no slice", "affinity.UNDIRECTED", f" FOR UPDATE OF q{SKIP}",
        by="direct / direct, two servers",
    ),
    one("directing waits for slices", "affinity.UNDIRECTED", SKIP, by="direct / direct, two servers"),
    one("a lane's use is not noted", "relax.sibling", "0 < used_at < now - FRESH", "False", by="direct / forget lanes"),
    one(
        "a lane is not kept while something is sent there", "relax.SIBLING", " FOR KEY SHARE OF s",
        by="direct / forget lanes",
    ),
    one("relax waits for slices", "relax.WAITED", SKIP, by="relax / claim"),
    one(
        "relax does not wait for the time", "relax.WAITED", " AND queued_at <= $2", " AND $2 > 0",
        by="test_relax.test_what_waited_so_long_goes_to_the_wider_lane_with_its_rank_and_arrival",
    ),
    one(
        "what is over its time is looked at by two", "timeouts.DUE", f" FOR UPDATE{SKIP}",
        by="end overdue / end overdue, two servers",
    ),
    one("what is over its time waits for others", "timeouts.DUE", SKIP, by="end overdue / end overdue, two servers"),
    one("ending locks nothing queued", "timeouts.QUEUED", f" FOR UPDATE OF s{SKIP}", by="end overdue / claim"),
    one("ending waits for what is queued", "timeouts.QUEUED", SKIP, by="end overdue / claim"),
    one("ending locks nothing that waits", "timeouts.WAITING", f" FOR UPDATE OF s{SKIP}", by="end overdue / promote"),
    one("ending waits for what waits", "timeouts.WAITING", SKIP, by="end overdue / promote"),
    one(
        "what somebody else holds is forgotten", "timeouts._look",
        "sum(slice.hi - slice.lo for slice in held) < waited", "False", by="end overdue / claim",
    ),
    one("opening a gate locks no slice", "promote.AT_GATE", f" FOR UPDATE OF w{SKIP}", by="open_gate / open_gate"),
    one("opening a gate waits for slices", "promote.AT_GATE", SKIP, by="open_gate / open_gate"),
    one(
        "promote locks the parcels too", "promote.DUE", " OF w", "",
        because="parcels never change and nobody else locks them: it would only write to rows it need not touch",
    ),
]  # fmt: skip

FIRES = [
    one("fire locks no timer", "due.DUE", f" FOR UPDATE OF t{SKIP}", by="fire / fire"),
    one("fire waits for timers", "due.DUE", SKIP, by="fire / fire"),
    one(
        "what was decided is not remembered", "fire.ADVANCE", " decided_through = given.decided_through,", "",
        by="test_fire.test_a_due_timer_fires_once_and_moves_on",
    ),
    one(
        "the next fire is not advanced", "fire.ADVANCE", "next_fire_at = given.next_fire_at,", "",
        by="test_fire.test_a_due_timer_fires_once_and_moves_on",
    ),
    one("a pause does not lock the timers", "triggers.OF_JOB", " FOR UPDATE OF t", by="fire / pause"),
    one(
        "overlap does not look at the last execution", "fire_decisions.decide_all", "t.last_execution in live", "False",
        by="test_fire.test_overlap_skip_does_not_start_beside_the_last",
    ),
    one(
        "a fire does not hold whose turn it is", "turns.LOCK", " FOR UPDATE OF h",
        by="a look at turns / passing the turn",
    ),
    one(
        "passing a turn holds nothing", "turns.HOLDER", f" FOR UPDATE{SKIP}",
        by="passing the turn / passing the turn",
    ),
    one("passing a turn waits", "turns.HOLDER", SKIP, by="passing the turn / passing the turn"),
    one(
        "a turn is passed on while it is somebody's", "turns.pass_on",
        "if (yield ForEach(BUSY, _KEY, [(key,)])):", "if False:",
        by="test_turns.test_queue_one_keeps_the_newest_and_runs_it_when_the_last_has_ended",
    ),
    one(
        "what waits at a gate is not held", "turns.AT_GATE", f" FOR UPDATE OF w{SKIP}",
        because="the holder's row is: whoever takes from the gate has it, and a cancellation finds the row gone",
    ),
    one(
        "what is forgotten is not held", "turns.AFTER", f" FOR UPDATE{SKIP}", by="forgetting turns / fire",
    ),
]  # fmt: skip

ONE_JOB = 'yield Lock((f"backfills:{backfill.job}",))'
BACKFILLS = [
    one(
        "a backfill is worked without its row", "backfill_work.TAKE", f" FOR UPDATE{SKIP}",
        by="backfill / backfill, one at two servers",
    ),
    one(
        "a backfill waits for who works it", "backfill_work.TAKE", SKIP, by="backfill / backfill, one at two servers"
    ),
    Mutation(
        name="two backfills rewrite the same rows of the ledger",
        edits=(
            Edit("backfill_work.work", ONE_JOB, "yield from ()"),
            Edit("ledger.exchange_rows", "raise Again", "pass"),
        ),
        caught_by="backfill / backfill, the same fires",
    ),
    one(
        "backfills of one job do not wait for each other", "backfill_work.work", ONE_JOB, "yield from ()",
        because="one that finds its rows gone begins again; under the lock none has to",
    ),
    one(
        "rows that have gone are cut all the same", "ledger.exchange_rows", "raise Again", "pass",
        because="retention may take a row between its read and its exchange, which no scene plays",
    ),
    one(
        "a fire that ran may be cut out of the ledger", "ledger.TAKE_OUT", " AND fires.execution IS NULL",
        because="what is cut was chosen because it has no execution: a second line",
    ),
    one(
        "a backfill forgets what it has started", "backfill_work._start", "backfill.max_concurrent - live",
        "backfill.max_concurrent", by="test_backfills.test_never_more_live_executions_than_allowed",
    ),
]  # fmt: skip

SUBMITS = [
    one(
        "a key that is taken is an error", "unique.take_keys", 'conflict="ON CONFLICT DO NOTHING"', 'conflict=""',
        by="submit / submit, one key",
    ),
    one(
        "a request that is known is an error", "repeats._reserve", 'conflict="ON CONFLICT DO NOTHING"',
        'conflict=""', by="submit / submit, one request at two servers",
    ),
    one(
        "keys are taken in the order they were named", "unique.take_keys", "sorted(wanted)", "list(wanted)",
        by="submit / submit, the same keys named in two orders",
    ),
    one(
        "requests are reserved in the order they came", "repeats._reserve", "sorted(keyed)", "list(keyed)",
        by="submit / submit, the same requests in two orders",
    ),
    one(
        "an expired key is honoured", "unique.READ_KEYS", " WHERE k.until > $4", " WHERE $4::bigint > 0",
        by="submit that is refused / submit, a key that has expired",
    ),
    one(
        "a loser that finds nothing goes on", "unique.take_keys", "if len(held) < len(losers):", "if False:",
        by="submit that is refused / submit, a key that has expired",
    ),
    one(
        "keys are freed before their time", "unique.FREE_EXPIRED", "k.until <= $4", "$4 > 0",
        by="test_submit.test_a_key_stands_for_the_first_submission_until_it_expires",
    ),
    one(
        "freeing expired keys waits for others", "unique.FREE_EXPIRED", SKIP,
        because="keys are named in one order, so waiting here instead of at the insert leads to the same end",
    ),
    one(
        "jobs that changed are not noticed", "submit._check_jobs", "if moved:", "if False:",
        by="test_submit.test_every_version_in_a_batch_is_checked",
    ),
    one(
        "the sweep of keys waits for others", "sweep.EXPIRED.0", SKIP,
        by="sweep of expired keys / submit that replaces some of them",
    ),
    one(
        "the sweep forgets keys before their time", "sweep.EXPIRED.0", "until <= $1", "$1 > 0",
        by="test_sweep.test_only_expired_keys_are_forgotten",
    ),
]  # fmt: skip

OTHERS = [
    one(
        "a queue that exists is an error", "lanes.ADD_QUEUE", " ON CONFLICT (namespace, name) DO NOTHING", "",
        by="ensure_lane / ensure_lane",
    ),
    one(
        "a lane that exists is an error", "lanes.ADD_LANE", " ON CONFLICT (queue, needs, share) DO NOTHING", "",
        by="ensure_lane / ensure_lane",
    ),
    one(
        "a job's name that is taken is an error", "jobs.ADD", " ON CONFLICT DO NOTHING", "",
        by="test_jobs.test_a_name_is_taken_once",
    ),
    one(
        "edits of dependencies do not lock each other", "horae.engine.job_changes.edit",
        ", _together_lock(job.namespace)", "", by="edit / edit, dependencies on each other",
    ),
    one(
        "an edit of a workflow does not look whether its jobs have changed", "horae.engine.job_changes.edit",
        "not (yield from owned_changes.is_true(draft.keeping, job.id))", "False",
        by="edit of a job / edit of a workflow that runs it with changes",
    ),
    one(
        "a deletion does not look for workflows while they are made", "horae.engine.job_changes.delete",
        "yield Lock((_together_lock(job.namespace),))", "yield from ()",
        by="delete / create of a workflow that runs it",
    ),
    one(
        "a workflow is made without the lock of what it runs", "horae.engine.job_changes.create",
        "(_together_lock(namespace),)", "()", by="delete / create of a workflow that runs it",
    ),
    one(
        "a workflow is made of what was deleted meanwhile", "horae.engine.job_changes.create",
        "if not (yield from owned_changes.is_true(draft.keeping, None)):", "if False:",
        by="delete / create of a workflow that runs it",
    ),
    one(
        "who names a job does not lock the name", "horae.engine.job_changes.edit",
        "_name_lock(job.namespace, draft.spec.name)", '"nothing"', by="create / rename, one name",
    ),
    one("a change of a job does not lock it", "jobs.LOCK", " FOR UPDATE", by="edit of the schedule / pause"),
    one(
        "a step is remembered without the session's lock", "steps.remember",
        "lock_sessions([session for session, _ in told])",
        f"lock_sessions([session for session, _ in told], {LOOKED_AT})",
        by="remember a step / mark_lost, rescue, a new attempt",
    ),
    one(
        "a step is remembered by whoever says so", "steps.HELD_STEPS",
        " AND r.session = given.session AND r.attempt = given.attempt", "",
        by="test_sweep.test_a_step_is_remembered_once_and_only_for_who_holds_it",
    ),
    one(
        "a lost session has steps remembered", "steps.remember", " and sessions[session].live", "",
        by="test_sweep.test_a_step_is_remembered_once_and_only_for_who_holds_it",
    ),
    one(
        "dead letters are marked in the order they were named", "dead_letters.mark",
        "sorted(letters, key=lambda letter: letter[0])", "letters",
        by="mark / mark, the same dead letters in two orders",
    ),
    one("repairs do not lock each other", "audit.repair", 'yield Lock(("repair",))', "yield from ()",
        by="repair / repair, items on no shelf"),
    one(
        "a duty is taken from its holder", "sweep.DUTY",
        " WHERE duties.holder = excluded.holder OR duties.until < $3", " WHERE $3 > 0",
        by="test_sweep.test_a_duty_is_held_by_one_until_its_time_is_over",
    ),
]  # fmt: skip

DEPENDENCIES = [
    one(
        "who brings an upstream's end does not lock the dependent", "dependents.LOCK", " FOR NO KEY UPDATE",
        by="report / report, two upstreams of one interval",
    ),
    one(
        "dependents are locked in no order", "dependents.LOCK", " ORDER BY job",
        because="the ids come sorted, and PostgreSQL mostly finds them so; without it a crossing could deadlock",
    ),
    one(
        "what waits for an upstream is not locked", "starts.WAITS", f" FOR UPDATE OF w{SKIP}",
        by="report / cancel of what waits for it",
    ),
    one("what waits for an upstream is waited for", "starts.WAITS", SKIP, by="report / cancel of what waits for it"),
    one(
        "a deleted dependent is started", "starts.start", ' and found[one.dependent].state != "deleted"', "",
        by="report / delete of the dependent",
    ),
    one(
        "a deletion does not lock the dependent", "horae.engine.job_changes.delete",
        "yield from dependents.lock_around({job.id})", "yield from ()", by="report / delete of the dependent",
    ),
    one(
        "what was met is forgotten", "joins.bring", " WHERE NOT join_parts.met", "",
        by="test_dependencies.test_what_was_met_stays_met",
    ),
    one(
        "an edit does not look at what waits", "horae.engine.job_changes._depend",
        "yield from waits.reconsider(job.id, new_id, now, done, edited=True)", "yield from ()",
        by="report / edit of dependencies, the other upstream is taken away",
    ),
    one(
        "a fire begins to wait without looking", "waits.begin",
        "yield from settle(found, [key for key in taken if key[0] in found], new_id, now, done)", "yield from ()",
        by="fire / report, a fire of its own and the upstream of its interval",
    ),
    one(
        "joins that were looked at are looked at again", "join_looks.look", " if join.wake_at is not None", "",
        because="what was looked at is judged to wait: the same would be written once more",
    ),
]  # fmt: skip

EVENTS = [
    one(
        "events do not hold the jobs that hear them", "listeners.HOLD_JOBS", " FOR KEY SHARE OF j", "",
        by="event / delete",
    ),
    one(
        "what an event trigger fired is counted without a lock", "listeners.HOLD_TIMERS", " FOR UPDATE OF t", "",
        by="event / event, at most one fire",
    ),
    one(
        "events are kept in the order they came", "events._keep", "rows.sort(key=lambda row: (row[2], row[3]))", "pass",
        by="event / event, the same ids in two orders",
    ),
    one(
        "who looks too long goes on writing", "watches._hold", "rows[0][0] != poll.began_at", "False",
        by="test_watches.test_a_look_that_was_overtaken_writes_nothing",
    ),
    one("watches that somebody takes are waited for", "watches.DUE", " SKIP LOCKED", "", by="due / due, one place"),
    one(
        "a look's place is read without a lock", "watches.HOLD", " FOR UPDATE OF w", "",
        because="An object version fires once by its key, whoever finds it; held, only one of two looks goes on.",
    ),
]  # fmt: skip

HOLDS = [
    one(
        "a hold does not wait for claims under way", "holds.open_hold", 'yield Lock(table="holds")', "yield from ()",
        by="hold / claim",
    ),
    one(
        "a calendar's change does not wait for claims under way", "holds.follow", 'yield Lock(table="holds")',
        "yield from ()", by="a window's calendar changes / claim",
    ),
    one(
        "a claim locks nothing against holds", "claim_lane.PICK", " FOR KEY SHARE OF h", "",
        by="hold / claim for parked exchanges",
    ),
    one("a hand-over locks nothing against holds", "hand_over.UNHELD", " FOR KEY SHARE OF h", by="hold / hand over"),
    one(
        "a claim does not look for holds", "claim_lane.PICK", "WHERE l.id = $1", "WHERE l.id = -$1",
        by="test_holds.test_a_hold_lasts_until_it_was_ended_once",
    ),
    one(
        "a hand-over does not look for holds", "hand_over.UNHELD", "l.id = given.lane", "l.id = -given.lane",
        by="hold / hand over",
    ),
    one(
        "a hold is about every queue", "claim_lane.PICK", "h.queue = l.queue", "h.queue > 0",
        by="test_holds.test_another_queue_goes_on",
    ),
    one(
        "a hand-over is held by every queue's hold", "hand_over.UNHELD", "h.queue = l.queue", "h.queue > 0",
        by="test_holds.test_another_queue_goes_on",
    ),
    one(
        "a hold is about every namespace", "claim_lane.PICK", "h.namespace = l.namespace AND ", "",
        by="test_holds.test_another_namespace_goes_on",
    ),
    one(
        "what has ended holds still", "claim_lane.PICK", "h.ended_at IS NULL", "h.ended_at IS NOT NULL OR h.id = h.id",
        by="test_holds.test_a_hold_lasts_until_it_was_ended_once",
    ),
    one(
        "a planned hold holds at once", "claim_lane.PICK", "h.from_at <= $4", "$4 > 0",
        by="test_holds.test_a_planned_hold_holds_from_its_time_on",
    ),
    one("holds are ended without a lock", "holds.DUE", f" FOR UPDATE{SKIP}", "", by="turn / turn"),
    one("holds that somebody ends are waited for", "holds.DUE", SKIP, "", by="turn / turn"),
]  # fmt: skip

TEMPLATES = [
    one(
        "an edit does not look whether its template changed", "horae.engine.job_changes._is_current", "== version",
        "!= 0", by="a template changes / a job that was made from it is edited",
    ),
    one(
        "a template changes without a lock", "horae.engine.template_changes.change", "yield from _check(before, seen)",
        "yield from ()", by="a template changes / a job is made from it",
    ),
]  # fmt: skip

NAMESPACES = [
    one(
        "a job is made without the lock of its namespace", "horae.engine.job_changes.create",
        ", shared=namespaces.lock_name(namespace)", "", by="a namespace is deleted / a job is made in it",
    ),
    one(
        "a job is made whether or not its namespace is there", "horae.engine.job_changes._refuse_closed",
        "if not (yield from namespaces.is_open(namespace))", "if (yield from namespaces.is_open(namespace)) is None",
        by="a namespace is deleted / a job is made in it",
    ),
]  # fmt: skip

ROLLOUTS = [
    one(
        "a rollout ends without waiting for fires under way", "rollouts.hold", "triggers.of_job(job, lock=True)",
        "triggers.of_job(job)", by="a rollout ends / fire",
    ),
    one(
        "submissions do not look for rollouts", "submit._stands", "current[1] != rolling", "False",
        by="a rollout ends / submit of what it chose",
    ),
    one(
        "an edit does not look for rollouts", "horae.engine.job_changes._numbered", "is not None", "is False",
        by="a rollout begins / edit",
    ),
]  # fmt: skip

CIRCUITS = [
    one(
        "a circuit is opened by hand without waiting for claims under way", "circuits.force",
        'yield Lock(table="circuits")', "yield from ()", by="a circuit is opened / claim",
    ),
    one(
        "a claim locks nothing against circuits", "circuit_gates.SHUT", " FOR KEY SHARE OF c", "",
        by="a circuit is opened / claim for parked exchanges",
    ),
    one(
        "failures are counted without a lock", "circuits.feed", "yield locked(which)", "yield from ()",
        by="two servers count failures of one circuit",
    ),
    one(
        "a circuit is changed by hand without a lock", "circuits.force", "yield locked([which])", "yield from ()",
        because="its row is written whole by whoever comes last, and the table is locked when it opens",
    ),
    one(
        "circuits are tried without a lock", "circuits.turn", "yield locked(due)", "yield from ()",
        because="two servers would try it at once, which changes nothing but how often its row is written",
    ),
    one(
        "probes are let go without a lock", "circuit_gates.let_go", "yield locked([which])", "yield from ()",
        by="two servers let probes go",
    ),
    one(
        "those who wait before a circuit are not locked", "circuit_gates.WAITERS", f" FOR UPDATE{SKIP}", "",
        because="the circuit's lock is: whoever takes from its gate has it, and a cancellation finds the row gone",
    ),
    one(
        "a claim does not ask circuits", "circuit_gates.SHUT", "c.state <> 'closed'", "c.state = 'none'",
        by="test_circuits.test_nothing_starts_before_an_open_circuit_and_all_goes_on_when_it_is_reset",
    ),
    one(
        "what is handed over passes circuits by", "dealing.dealt", " and not s.flags & CIRCUIT", "",
        by="test_circuits.test_nothing_is_handed_over_past_a_circuit",
    ),
    one(
        "everything is a probe", "circuit_gates._probes", "slice.hi - slice.lo <= len(probes) and all",
        "len(probes) > 0 or all",
        by="test_circuits.test_probes_alone_run_while_it_is_half_open_and_close_it",
    ),
]  # fmt: skip

CALENDARS = [
    one(
        "a job is made to go by calendars without their lock", "horae.engine.job_changes._calendar_lock",
        "(calendars.lock_name(namespace),) if any(when.rules.calendars for when in whens) else ()", "()",
        by="calendar deletion / creation of a job that goes by it",
    ),
    one(
        "calendars change without a lock", "horae.engine.calendar_changes.put", "yield moves.lock(namespace)",
        "yield from ()", by="calendar change / calendar change, one version",
    ),
    one(
        "a change of calendars wakes nothing", "calendars.WAKE", "SET next_fire_at = $2", "SET trouble = NULL",
        by="test_fire_calendars.test_a_change_wakes_what_it_advances",
    ),
    one(
        "timers are woken without a lock", "calendars.TIMERS", " FOR UPDATE OF t", "",
        because="the change of a row locks it; locked in one order before, two changes do not wait for each other",
    ),
]  # fmt: skip

PREEMPTS = [
    one(
        "servers decide without a lock who gives way", "preempt.preempt",
        'yield Lock(names=(f"preempt:{namespace}",))', "yield from ()", by="preempt / a step, and preempt",
    ),
    one(
        "who is asked to give way is not looked at again", "preempt._ask",
        "still = yield ForEach(STILL, columns, named)", "still = [(p, i, a, s) for s, p, i, a in named]",
        by="preempt / report of a success",
    ),
    one(
        "who is asked to give way has its session unlocked", "preempt._ask",
        "lock_sessions([victim.session for victim in decided.victims])",
        "lock_sessions([victim.session for victim in decided.victims], Statement('unlocked', 'SELECT s.id, s.state,"
        " s.seen, s.worker, s.concurrency FROM sessions s WHERE s.id = ANY($1)'))",
        by="preempt / report of a success",
    ),
    one(
        "a session that is lost is asked to give way", "preempt._ask", "if row.live", "",
        because="the rescue of what it holds takes the requests along; nobody would hear them",
    ),
    one(
        "what was asked for is asked for again", "preempt._workers", "created_at > now - PATIENCE", "False",
        by="test_preempt.test_what_is_asked_already_counts_as_coming",
    ),
    one(
        "preempting waits for a queued slice", "preempt.FRONT", SKIP,
        because="whoever holds the slice claims it: the wait would end, and find nothing to put in front",
    ),
]  # fmt: skip

LIMITS = [
    one(
        "keys are not locked", "holders.Gate.lock", "yield Lock(self.keys, shared=ALL)", "yield from ()",
        by="submit / submit under a key",
    ),
    one(
        "keys are looked at before they are locked", "holders.enter",
        "yield from gate.lock()\n    yield from gate.look()", "yield from gate.look()\n    yield from gate.lock()",
        by="submit / submit under a key",
    ),
    one(
        "who frees a key does not lock it", "holders.free", "yield from gate.lock()", "yield from ()",
        by="report that frees a key / submit under it",
    ),
    one(
        "who frees a place in a sequence looks before the lock", "holders.free",
        "yield from gate.lock()", "yield from gate.look(); yield from gate.lock()",
        because="what is seen under the lock is what counts; it only costs a statement",
    ),
    one(
        "letting in waits for whoever holds a slice", "holders.AT_GATE", SKIP,
        by="report that frees a key / cancel of who waits for it",
    ),
    one(
        "letting in waits for whoever holds the next of a sequence", "holders.AT_HEAD", SKIP,
        by="report / cancel of the next in a sequence",
    ),
    one(
        "what ends tells nobody who waits for its keys", "report.settle", "yield from free_keys(effects, now)",
        "yield from ()", by="test_holders.test_what_ends_lets_the_next_in_with_the_same_report",
    ),
    one(
        "a retry keeps its keys", "effects.put_fates",
        "effects.freed |= {w.parcel for w in fates.waiting if w.flags & KEYED}", "pass",
        by="test_holders.test_a_retry_gives_its_key_back_and_asks_for_it_again",
    ),
    one(
        "limits of queues are counted without a lock", "coarse.look", "yield Lock(tuple(sorted(names)))",
        "yield from ()", by="claim / claim under a queue's limit",
    ),
    one(
        "a limit is set beside claims under way", "coarse.put", 'yield Lock(table="limits")', "yield from ()",
        by="limit of a queue / claim that does not know of it",
    ),
    one(
        "claims do not keep limits from being set", "claim_lane.PICK", " FOR KEY SHARE OF m", "",
        by="limit of a queue / claim that does not know of it",
    ),
    one(
        "who does not know of a limit claims all the same", "claim_lane.PICK", "$5 OR", "true OR",
        by="test_coarse.test_who_does_not_know_of_a_limit_takes_nothing",
    ),
    one(
        "a hand over bypasses limits", "hand_over.UNHELD", "false OR", "true OR",
        by="test_coarse.test_a_hand_over_does_not_bypass_a_limit",
    ),
    one(
        "rates of keys are not locked", "key_rates.LOCK", " FOR UPDATE OF r", "", by="claim / claim under a key's rate",
    ),
    one(
        "a claim waits for rates beyond those it has", "key_rates.LOCK_FREE", SKIP,
        because="it would wait while it holds others: two claims could wait for each other",
    ),
]  # fmt: skip

FLOWS = [
    one(
        "a step that ended does not lock its workflow", "flow_locks.OF_CHILD", FLOW_LOCK,
        by="report / report, two steps before one",
    ),
    one(
        "several workflows are not locked", "flow_locks.ROOTS", FLOW_LOCK,
        by="report of steps of two workflows / the same in the other order",
    ),
    one(
        "a workflow that is cancelled, paused or looked at is not locked", "flow_locks.OF_FLOW", FLOW_LOCK,
        by="report of a step / cancel of its workflow",
    ),
    one(
        "workflows are locked in no order", "flow_locks.ROOTS", " ORDER BY r.execution",
        because="the ids come sorted, and PostgreSQL mostly finds them so; without it a crossing could deadlock",
    ),
    one(
        "steps that are given out at once lock nothing against holds", "flow_rows.WITH_STEPS", " FOR KEY SHARE OF h",
        by="hold / report of a step that another follows at once",
    ),
    one(
        "steps are given out at once of a queue that is held", "flow_rows.WITH_STEPS", "WHERE l.id = v.lane AND h",
        "WHERE l.id = -v.lane AND h", by="test_flow_newborn.test_a_step_of_a_queue_that_is_held_stays_in_it",
    ),
    one(
        "steps are given out at once whatever their queue's limit", "flow_rows.WITH_STEPS", "false OR", "true OR",
        by="test_flow_newborn.test_a_limit_that_the_server_has_not_heard_of_is_kept",
    ),
    one(
        "steps go past what stands in line", "dealing.newborn", "any(view.lane in reach for view in lanes)", "False",
        by="test_flow_newborn.test_what_stands_in_line_already_has_its_turn",
    ),
    one(
        "a workflow that has ended goes on", "advance.Board.settle", "if not course.is_over:", "if True:",
        because="a child that is heard of after its workflow's end has no row that is not final",
    ),
    one(
        "cancel locks a workflow's own row", "cancel.ON_WAITING", " AND reason <> 'children'", "",
        by="test_flows.test_cancelling_a_workflow_cancels_its_steps_below_too",
    ),
    one(
        "a workflow counts under the limit of its queue", "flow_begin._waits", "flags=s.flags & ~LIMITED",
        "flags=s.flags", by="test_flows.test_a_workflow_does_not_keep_its_own_steps_from_a_queue_that_is_a_sequence",
    ),
    one(
        "a workflow gives its keys away while its steps run", "holders.USE", " AND s.reason = 'children'",
        " AND s.reason = ''", by="test_flows.test_a_workflow_keeps_its_keys_until_it_ends",
    ),
    one(
        "a pause leaves what is queued", "flow_pause.QUEUED", "s.attempt = 0", "s.attempt < 0",
        by="report of a step / pause of its workflow",
    ),
    one(
        "a pause waits for what a claim holds", "flow_pause.QUEUED", SKIP,
        because="a claim holds it for a moment, and then the lock of its workflow is asked for by nobody in between",
    ),
]  # fmt: skip

MEETINGS = [
    one(
        "a key of a job that is taken is an error", "meetings.meet", 'conflict="ON CONFLICT DO NOTHING"', 'conflict=""',
        by="submit / submit, one key of a job while live",
    ),
    one(
        "keys of a job are not locked", "meetings.LOCK", " FOR UPDATE OF m", "",
        by="submit / submit, a key of a job whose execution has ended",
    ),
    one(
        "a window is changed without its row on the shelf", "windows.OPEN", f" FOR UPDATE OF w{SKIP}", "",
        by="debounce / promote",
    ),
    one(
        "keys are forgotten without a lock", "meeting_sweep.AFTER", f" FOR UPDATE{SKIP}", "",
        by="submit / sweep, a key of a job whose execution has ended",
    ),
    one(
        "what has just begun is replaced", "meetings.settle", 'verdict != "cancelled"', 'verdict == "unknown"',
        by="submit, the latest of a key / claim",
    ),
    one(
        "room in a queue is counted without a lock", "quotas.room", "yield Lock(tuple(sorted(names)))",
        "yield from ()", by="submit / submit, room for one",
    ),
]  # fmt: skip

SIGNALS = [
    one(
        "a signal does not lock the session that runs its execution", "signals._hold",
        "yield from lock_sessions([session])", "yield from ()", by="signal / report of who waits for it",
    ),
    one(
        "a signal does not look again where its execution is", "signals._hold",
        '"running" if rows and rows[0][0] == session else "moving"', '"running"',
        by="signal / report of who waits for it",
    ),
    one(
        "a signal does not hold what is queued", "signals._hold", '("queued", ON_QUEUED)',
        '("queued", Statement("q", "SELECT 1 FROM queued WHERE parcel = $1 AND lo <= $2 AND hi > $2"))',
        by="signal / claim, wait for it, and report",
    ),
    one(
        "a signal does not hold what waits", "signals._hold", '("waiting", ON_WAITING)',
        '("waiting", Statement("w", "SELECT 1 FROM waiting WHERE parcel = $1 AND lo <= $2 AND hi > $2"))',
        by="signal / signal, one wait",
    ),
    one(
        "a wait for a signal does not lock its session", "signals.wait", "lock_sessions([session])",
        f"lock_sessions([session], {LOOKED_AT})", by="signal / wait for it, and report",
    ),
    one(
        "a report does not look whether a signal has come", "report._settle_one",
        "(yield from awaits.open_of(waiting)) if waiting else NOTHING",
        '{(parcel, item, "@wait:go") for parcel, item in waiting}', by="signal / report of who waits for it",
    ),
]  # fmt: skip

ARCHIVES = [
    one(
        "who archives does not lock what goes", "archives.LOCK", " FOR UPDATE OF p",
        by="archive / archive, the same executions",
    ),
    one(
        "a file is named although something in it was erased", "archives.IS_SOUND", "archive = $2", "$2 > 0",
        by="archive / erasure of what is in the file",
    ),
    one(
        "a file is put where another lies by now", "archives.LIES_THERE", "location = $2", "$2 <> ''",
        by="erasure / erasure, from one file",
    ),
    one(
        "a file is not locked by who puts it elsewhere", "archives.LIES_THERE", " FOR UPDATE",
        by="erasure / erasure, from one file",
    ),
]  # fmt: skip

MUTATIONS: dict[str, Mutation] = {
    mutation.name: mutation
    for group in (
        *(SESSIONS, CLAIMS, REPORTS, CANCELS, PROMOTES, FIRES, BACKFILLS, SUBMITS, DEPENDENCIES, EVENTS, HOLDS),
        *(CIRCUITS, ROLLOUTS, TEMPLATES, NAMESPACES),
        *(CALENDARS, PREEMPTS, LIMITS, FLOWS, MEETINGS, OTHERS, SIGNALS, ARCHIVES),
    )
    for mutation in group
}

# Read while it is what runs: the file may be edited during a long proof.
for _edit in (edit for mutation in MUTATIONS.values() for edit in mutation.edits):
    if isinstance(_found := _target(_edit.where), FunctionType):
        _source(_found)
