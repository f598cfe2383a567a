"""Reports: outcomes, progress and log lines that workers send are matched with the running slices that they overlap.

Only a report or the rescue of the session that holds a running slice moves the slice. Both hold the lock of the
session's row, so rows in `running` need no locks.
"""

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec
from msgspec import structs

from horae.env import Instant
from horae.model.admission.keys import KEYED, LIMITED
from horae.model.definitions.job import Spec
from horae.model.definitions.retry import RetryPolicy
from horae.model.executions.parcel import AT_MOST_ONCE
from horae.model.executions.settle import AwaitedStep, CountedFailures, FailurePolicy, Settler, has_begun
from horae.model.executions.slice import ItemRange, RunningSlice, match_ranges, part
from horae.model.fleet.protocol import MAX_PROGRESS, Failure, Outcome, Range
from horae.model.fleet.suspects import is_suspect
from horae.store.base import shelves
from horae.store.base.deferred import Change, Deferred
from horae.store.executions.durable import awaits
from horae.store.executions.leaving.effects import Effects, put_settled
from horae.store.executions.leaving.leave import follow_attempts
from horae.store.executions.leaving.stop_requests import NO_STOPS, Cancels, settle_cancelled, stops_of
from horae.store.executions.log_lines import keep_lines
from horae.store.executions.state_changes import MovedItems, QueueWait
from horae.store.script import ForEach, Insert, Script, Statement, Together
from horae.store.triggers.dependencies.starts import NewId
from horae.store.workflows.locks import ChildCache

if TYPE_CHECKING:
    from horae.store.fleet.exchange import IncomingExchange, SessionRow

# Whether other jobs depend on the job of the slice. It is read with the slice, if there are dependencies at all, so
# that the end of a job without dependents needs no further statement.
FEEDS = "EXISTS (SELECT 1 FROM dependencies d WHERE d.upstream = r.job) AS feeds"
FEEDS_AT = len(shelves.RUNNING)
# The keys of a slice with the flag KEYED are read with the slice, too. They are complete, because `adoption` adds keys
# only to slices without this flag, and sets the flag under the lock of the session.
KEYS = f"CASE WHEN (r.flags & {KEYED}) <> 0 THEN (SELECT p.keys FROM parcels p WHERE p.id = r.parcel) END AS keys"
# Slices are found by overlap instead of equality, because another report of this session may have cut the slice. A
# session whose slices were taken back finds none here, so that its late report changes nothing.
HELD = Statement(
    "held",
    f"SELECT {shelves.names(shelves.RUNNING, 'r.')}, {KEYS} FROM given"
    " JOIN running r ON r.parcel = given.parcel"
    " WHERE r.session = given.session AND r.attempt = given.attempt AND r.lo < given.hi AND r.hi > given.lo",
    at_once=True,
)
HELD_FEEDING = Statement(
    "held_feeding",
    f"SELECT {shelves.names(shelves.RUNNING, 'r.')}, {FEEDS}, {KEYS} FROM given"
    " JOIN running r ON r.parcel = given.parcel"
    " WHERE r.session = given.session AND r.attempt = given.attempt AND r.lo < given.hi AND r.hi > given.lo",
    at_once=True,
)
HELD_BY: shelves.Columns = (
    ("session", "uuid"), ("parcel", "uuid"), ("lo", "int"), ("hi", "int"), ("attempt", "int"),
)  # fmt: skip
RULES = Statement(
    "parcel_rules",
    "SELECT p.id, p.job, p.version, p.delivery, p.due_at, v.spec FROM given JOIN parcels p ON p.id = given.parcel"
    " JOIN job_versions v ON v.job = p.job AND v.version = p.version",
)
# Slices do not store the number of failures of each class. For jobs with a budget for a class, their failed attempts
# are counted.
SPENT = Statement(
    "spent_budgets",
    "SELECT a.parcel, a.lo, a.hi, a.kind, count(*) FROM given JOIN attempts a ON a.parcel = given.parcel"
    " WHERE a.outcome = 'failed' GROUP BY a.parcel, a.lo, a.hi, a.kind",
)
FORGET_REQUESTS = Statement(
    "forget_requests",
    "DELETE FROM requests WHERE EXISTS (SELECT 1 FROM given WHERE requests.parcel = given.parcel"
    " AND requests.item >= given.lo AND requests.item < given.hi)",
)
RANGE: shelves.Columns = (("parcel", "uuid"), ("lo", "int"), ("hi", "int"))
PROGRESS: shelves.Columns = (
    ("parcel", "uuid"), ("item", "int"), ("attempt", "int"), ("percent", "float"), ("message", "text"),
    ("at", "bigint"),
)  # fmt: skip
# The condition for a heartbeat without progress. It keeps the progress that the attempt reported before.
_IS_HEARTBEAT = "excluded.percent IS NULL AND excluded.attempt = progress.attempt"
_PROGRESS = (
    "ON CONFLICT (parcel, item) DO UPDATE SET attempt = excluded.attempt,"
    f" percent = CASE WHEN {_IS_HEARTBEAT} THEN progress.percent ELSE excluded.percent END,"
    f" message = CASE WHEN {_IS_HEARTBEAT} THEN progress.message ELSE excluded.message END, at = excluded.at"
)

NO_AWAITED_STEPS: frozenset[AwaitedStep] = frozenset()
HANDED_BACK = Failure(
    type="HandedBack", message="The worker handed back an execution that had begun and may run at most once."
)

NOT_DURABLE = Failure(
    type="NotDurable", message="The worker suspended an execution of a job that is not durable.", permanent=True
)


def settle(
    incoming: Sequence["IncomingExchange"],
    sessions: Mapping[UUID, "SessionRow"],
    policies: Mapping[tuple[UUID, int], RetryPolicy],
    moves: Deferred,
    now: Instant,
    rng: Random,
    new_id: NewId,
    child_cache: ChildCache | None = None,
) -> Script[Effects]:
    """Settle the outcomes of these exchanges, and store their progress and log lines.

    The caller has locked their sessions, which are live. Some changes stay in `moves`, and the next steps of workflows
    in `newborn` of the effects: the caller writes both together with the claim.
    """
    effects = Effects()
    reports = [entry for entry in incoming if has_content(entry)]
    if not reports:
        return effects
    held = yield from _held(reports, effects, depended=any(row.depended for row in sessions.values()))
    for entry in reports:
        mine = held.get(entry.session, {})  # guard: mine-by-session
        if entry.exchange.started:
            yield from _start(entry, mine, effects, moves, now)
        yield from _note(entry, mine, effects, now)
        if entry.exchange.logs:
            yield from keep_lines(entry, _Holds(mine), effects)
        if entry.exchange.outcomes:
            row = sessions[entry.session]
            row.dirty = True
            yield from _settle_one(entry, row, mine, policies, effects, moves, now, rng)
    yield from follow_attempts(effects, moves, new_id, now, child_cache, keeps_newborn=True)
    return effects


def has_content(entry: "IncomingExchange") -> bool:
    """Tell whether an exchange reports anything that has to be written."""
    up = entry.exchange
    return bool(up.outcomes or up.started or up.progress or up.logs)


def _spans(entry: "IncomingExchange") -> Iterable[ItemRange]:
    up = entry.exchange
    yield from (ItemRange(o.parcel, o.lo, o.hi, o.attempt) for o in up.outcomes)
    yield from (ItemRange(s.parcel, s.lo, s.hi, s.attempt) for s in up.started)
    yield from (ItemRange(p.parcel, p.item, p.item + 1, p.attempt) for p in up.progress)
    yield from (ItemRange(log.parcel, log.item, log.item + 1, log.attempt) for log in up.logs)


Held = dict[tuple[UUID, int], RunningSlice]


def _held(incoming: Sequence["IncomingExchange"], effects: Effects, *, depended: bool) -> Script[dict[UUID, Held]]:
    """Return the running slices that these exchanges report on, by session and by (parcel, lo).

    Record in `effects` the jobs with dependents, and the keys of the slices.
    """
    named = {(entry.session, s.parcel, s.lo, s.hi, s.attempt) for entry in incoming for s in _spans(entry)}
    rows = yield ForEach(HELD_FEEDING if depended else HELD, HELD_BY, sorted(named))
    held: dict[UUID, Held] = {}
    for row in rows:
        running = shelves.running(row)
        held.setdefault(running.session, {})[running.parcel, running.lo] = running  # guard: held-by-session
        if depended and row[FEEDS_AT]:
            effects.jobs_with_dependents.add(running.job)
        if running.flags & KEYED:
            effects.keys[running.parcel] = row[-1]
    return held


def _start(entry: "IncomingExchange", held: Held, effects: Effects, moves: Deferred, now: Instant) -> Script[None]:
    """Store the start of items that began to run; they become slices of their own."""
    started = entry.exchange.started
    fresh = [s for s in held.values() if s.started_at is None]
    matched = match_ranges(fresh, [ItemRange(s.parcel, s.lo, s.hi, s.attempt) for s in started])
    if not matched.touched:
        return
    begun = [
        structs.replace(part(running, lo, hi), started_at=max(running.granted_at, min(started[i].at, now)))
        for running, i, lo, hi in matched.hits
    ]
    effects.waited += [
        QueueWait(s.job, s.namespace, max(0, (s.started_at or now) - s.queued_at), s.hi - s.lo) for s in begun
    ]
    yield from _replace(held, matched.touched, [*begun, *matched.remaining], moves)


def _replace(
    held: Held,
    touched: Sequence[RunningSlice],
    by: Sequence[RunningSlice],
    moves: Deferred,
    rest: Iterable[Change] = (),
) -> Script[None]:
    """Replace the slices `touched` by smaller ones, together with the changes `rest`.

    The old slices are deleted by an earlier statement, because a smaller one may have the same (parcel, lo).
    """
    moves.add([shelves.take("running", touched)])
    if by:
        yield from moves.make()
        yield Together([shelves.put_running(by), *rest])
    else:
        moves.add(rest)
    for running in touched:
        del held[running.parcel, running.lo]
    held.update({(s.parcel, s.lo): s for s in by})


def _note(entry: "IncomingExchange", held: Held, effects: Effects, now: Instant) -> Script[None]:
    """Store the progress of items that this session holds."""
    up = entry.exchange
    holds = _Holds(held)
    progress = {
        (p.parcel, p.item): (p.parcel, p.item, p.attempt, p.percent, p.message.replace("\0", "")[:MAX_PROGRESS], now)
        for p in up.progress
        if holds(p.parcel, p.item, p.attempt)
    }
    if progress:
        yield Insert("progress", PROGRESS, list(progress.values()), conflict=_PROGRESS)
        effects.moved += [holds.change_of(parcel, item) for parcel, item in progress]


class _Holds:
    """The items that a session holds, each at its attempt."""

    def __init__(self, held: Held) -> None:
        self._slices: dict[UUID, list[RunningSlice]] = {}
        for running in held.values():
            self._slices.setdefault(running.parcel, []).append(running)

    def __call__(self, parcel: UUID, item: int, attempt: int) -> bool:
        held = self._slices.get(parcel, ())
        return any(s.lo <= item < s.hi and s.attempt == attempt for s in held)  # guard: notes-of-attempt

    def change_of(self, parcel: UUID, item: int) -> MovedItems:
        running = self._slices[parcel][0]
        return MovedItems(parcel, item, item + 1, running.job, running.namespace, "running")


def _settle_one(
    entry: "IncomingExchange",
    row: "SessionRow",
    held: Held,
    policies: Mapping[tuple[UUID, int], RetryPolicy],
    effects: Effects,
    moves: Deferred,
    now: Instant,
    rng: Random,
) -> Script[None]:
    """Settle the outcomes of one exchange, for the items that its session holds."""
    outcomes = entry.exchange.outcomes
    matched = match_ranges(list(held.values()), [ItemRange(o.parcel, o.lo, o.hi, o.attempt) for o in outcomes])
    ignored = [Range(parcel=m.parcel, lo=m.lo, hi=m.hi, attempt=m.attempt) for m in matched.missed]
    effects.ignored[entry.session, entry.exchange.channel] = ignored
    if not matched.hits:
        return
    ruled = {running.parcel for running, i, _, _ in matched.hits if _needs_rules(running, outcomes[i])}
    suspended = {running.parcel for running, i, _, _ in matched.hits if outcomes[i].outcome == "suspended"}
    rules = (yield from _rules(ruled, suspended, policies)) if ruled else {}
    stopped = any(outcomes[i].outcome != "success" for _, i, _, _ in matched.hits)
    stops = (yield from stops_of(entry.session)) if stopped else NO_STOPS
    waiting = [
        (running.parcel, item) for running, i, lo, hi in matched.hits if outcomes[i].waits for item in range(lo, hi)
    ]
    awaited = (yield from awaits.open_of(waiting)) if waiting else NO_AWAITED_STEPS
    settler = Settler(row.worker, now, rng, stops.preempted, awaited)
    for running, i, lo, hi in matched.hits:
        if is_suspect(running.losses) or running.flags & LIMITED:  # there may be room for another execution now
            effects.may_claim(running)
        _decide(settler, running, lo, hi, outcomes[i], rules.get(running.parcel), stops.cancels)
    gone = [(running.parcel, lo, hi) for running, _, lo, hi in matched.hits]
    yield from _replace(
        held, matched.touched, matched.remaining, moves,
        [
            *put_settled(settler.fates, row.worker, entry.session, effects),
            ForEach(FORGET_REQUESTS, RANGE, gone),  # guard: report-forgets-requests
        ],
    )  # fmt: skip


def _needs_rules(running: RunningSlice, outcome: Outcome) -> bool:
    return outcome.outcome in ("failed", "suspended") or (outcome.outcome == "released" and has_begun(running, outcome))


def _rules(
    parcels: set[UUID], suspended: set[UUID], policies: Mapping[tuple[UUID, int], RetryPolicy]
) -> Script[dict[UUID, FailurePolicy]]:
    """Return the failure policies of these parcels; `suspended` are the parcels with suspended items."""
    rows = yield ForEach(RULES, (("parcel", "uuid"),), [(parcel,) for parcel in sorted(parcels)])
    rules = {
        parcel: FailurePolicy(
            retry=policies.get((job, version)) or policy_of(spec),
            delivery=delivery,
            due_at=due_at,
            durable=parcel in suspended and is_durable(spec),
        )
        for parcel, job, version, delivery, due_at, spec in rows
    }
    counted = sorted(parcel for parcel, rule in rules.items() if rule.retry.budgets.own)
    tried: dict[UUID, list[CountedFailures]] = {}
    for parcel, *failed in (
        (yield ForEach(SPENT, (("parcel", "uuid"),), [(parcel_id,) for parcel_id in counted])) if counted else []
    ):
        tried.setdefault(parcel, []).append(tuple(failed))
    return rules | {
        parcel_id: structs.replace(rules[parcel_id], failure_counts=tuple(failed))
        for parcel_id, failed in tried.items()
    }


def is_durable(spec: str) -> bool:
    """Tell whether executions of a job version may be suspended (wait without a worker), from its stored spec."""
    return msgspec.json.decode(spec, type=Spec).durable


def policy_of(spec: str) -> RetryPolicy:
    """Return the retry policy of a job version, from its stored spec."""
    return msgspec.json.decode(spec, type=Spec).retry


def _decide(
    settler: Settler,
    running: RunningSlice,
    lo: int,
    hi: int,
    outcome: Outcome,
    rules: FailurePolicy | None,
    cancels: Cancels,
) -> None:
    """Settle one reported range by the kind of its outcome.

    Items that the session was asked to cancel end as cancelled, unless they succeeded.
    """
    if outcome.outcome == "success":
        settler.succeed(running, lo, hi, outcome)
        return
    for a, b in settle_cancelled(settler, running, lo, hi, outcome, cancels):
        if outcome.outcome == "cancelled":
            settler.cancel(running, a, b, outcome)
        else:
            _go_on(settler, running, a, b, outcome, rules or FailurePolicy(retry=RetryPolicy(), delivery=0))


def _go_on(settler: Settler, running: RunningSlice, lo: int, hi: int, outcome: Outcome, rules: FailurePolicy) -> None:
    """Settle items whose attempt failed, was suspended or was handed back.

    An item that may run at most once and has begun is neither queued again nor resumed.
    """
    once = rules.delivery == AT_MOST_ONCE
    if outcome.outcome == "failed":
        settler.fail(running, lo, hi, outcome, rules)
    elif outcome.outcome == "suspended" and not once and not rules.durable:
        settler.give_up(running, lo, hi, outcome, NOT_DURABLE, "permanent")
    elif outcome.outcome == "suspended" and not once:
        settler.suspend(running, lo, hi, outcome)
    elif once and (outcome.outcome == "suspended" or has_begun(running, outcome)):  # guard: begun-runs-once
        settler.give_up(running, lo, hi, outcome, outcome.error or HANDED_BACK, "delivery")
    else:
        settler.release(running, lo, hi, outcome)


REQUESTS_OF = Statement(
    "requests_of",
    "SELECT r.session, r.parcel, r.item, r.attempt, r.kind FROM given JOIN requests r ON r.session = given.id",
)
StopRequest = tuple[UUID, int, int, str]  # parcel, item, attempt, kind


def requests_of(sessions: Iterable[UUID]) -> Script[dict[UUID, list[StopRequest]]]:
    """Return the stored requests to stop items, by session."""
    found: dict[UUID, list[StopRequest]] = {session_id: [] for session_id in sessions}
    rows = yield ForEach(REQUESTS_OF, (("id", "uuid"),), [(session_id,) for session_id in found])
    for session, *asked in rows:
        found[session].append(tuple(asked))
    return {session_id: sorted(asked) for session_id, asked in found.items()}
