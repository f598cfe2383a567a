"""Exchanges: the outcomes that workers report are settled, work is claimed for the workers, and answers are numbered.

The row of a session is the fence: it is locked first, in a statement of its own, and its state is checked under the
lock. The exchanges of several sessions share one transaction, which locks their rows in the order of their ids.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from random import Random
from typing import Literal
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.admission.claim_plan import LaneState, QueuePreferences
from horae.model.definitions.retry import RetryPolicy
from horae.model.executions.slice import RunningSlice
from horae.model.fleet.deal import WorkRequest
from horae.model.fleet.protocol import Exchange, Range
from horae.model.fleet.session import DETACHED, LIVE, PRESENT, see, seen_on
from horae.store.base import shelves
from horae.store.base.deferred import Deferred
from horae.store.executions import log_lines
from horae.store.executions.leaving import report
from horae.store.executions.leaving.effects import Effects
from horae.store.executions.parcels import least_ranks as lowest
from horae.store.fleet import grants
from horae.store.fleet.claim import ClaimResult, claim
from horae.store.script import Among, Fetch, ForEach, Rows, Script, Statement
from horae.store.triggers.dependencies.starts import NewId
from horae.store.workflows.locks import ChildCache

LOCK_SESSIONS = Statement(
    "lock_sessions",
    "SELECT s.id, s.state, s.seen, s.worker, s.concurrency, EXISTS (SELECT 1 FROM dependencies) AS depended"
    " FROM sessions s WHERE s.id = ANY($1) ORDER BY s.id FOR NO KEY UPDATE OF s",
)
LOCK_PARKED = Statement("lock_parked", f"{LOCK_SESSIONS.text} SKIP LOCKED")
LOOK_AT_SESSIONS = Statement(
    "look_at_sessions",
    "SELECT s.id, s.state, s.seen, s.worker, s.concurrency FROM sessions s WHERE s.id = ANY($1)",
)
TOUCH: shelves.Columns = (("id", "uuid"), ("seen", "bytea"), ("state", "text"), ("at", "bigint"))
TOUCH_SESSIONS = Statement(
    "touch_sessions",
    "UPDATE sessions SET seen = given.seen, state = given.state, last_seen = given.at"
    " FROM given WHERE sessions.id = given.id",
)


Decision = Literal["ended", "detached", "gap", "answer", "park"]
Arising = Callable[[Mapping[int, int]], Sequence[LaneState]]  # returns the states of lanes, given by their least ranks


class IncomingExchange(Struct, frozen=True, kw_only=True):
    """One exchange that has reached the server, with the lanes from which its session may take work."""

    session: UUID
    exchange: Exchange
    lanes: frozenset[int]
    preferences: QueuePreferences | None = None  # its worker's preferences between its queues
    patient: bool  # whether it may wait for work; otherwise it is answered at once, even without work
    packed_logs: Sequence[bytes] = ()  # its log lines in their stored form, if already packed
    log_limit: int = log_lines.MAX_LOG_BYTES  # size limit of the log of an execution, in bytes


class Reply(Struct, frozen=True, kw_only=True):
    """The decision of the first transaction about an exchange.

    `answer`: the number of the exchange is taken, and the running slices with this number are the answer. `park`: there
    was nothing to claim, and the number is still free. `ended`: the session has ended. `detached`: it must be
    re-attached first. `gap`: numbers before this one are missing.
    """

    decision: Decision
    granted: list[RunningSlice] = []  # empty also if the number was taken before
    known: bool = False  # the number was taken before: the slices with this number have to be read
    ignored: list[Range] = []  # reported ranges that the session did not hold
    seen: int = 0  # the last number that was taken, if numbers were left out
    draining: bool = False


class WaitingExchange(Struct, frozen=True, kw_only=True):
    """An exchange that waits for work."""

    want: WorkRequest
    lanes: frozenset[int]
    preferences: QueuePreferences | None = None

    @property
    def place(self) -> tuple[UUID, int]:
        """Return its session and channel."""
        return self.want.session, self.want.channel


class ExchangeResult(Struct, frozen=True):
    """The replies, in the order of the exchanges, the claim for them and for parked exchanges, and other effects."""

    replies: list[Reply]
    claimed: ClaimResult
    effects: Effects


class SessionRow(Struct):
    """A locked session inside one transaction."""

    id: UUID
    state: str
    seen: bytes
    worker: str
    concurrency: int
    depended: bool = False  # whether any job of the store depends on another
    dirty: bool = False  # whether the row has to be written

    @property
    def live(self) -> bool:
        return self.state in LIVE

    @property
    def is_present(self) -> bool:
        """Return whether the session has not ended: it is live, or detached by a failover."""
        return self.state in PRESENT


def lock_sessions(ids: Sequence[UUID], statement: Statement = LOCK_SESSIONS) -> Script[dict[UUID, SessionRow]]:
    """Lock sessions in the order of their ids."""
    rows = yield Among(statement, sorted(set(ids)))  # guard: sessions-in-order
    return {row[0]: SessionRow(*row) for row in rows}


def exchange(
    incoming: Sequence[IncomingExchange],
    lanes: Sequence[LaneState],
    paused: frozenset[UUID],
    policies: Mapping[tuple[UUID, int], RetryPolicy],
    now: Instant,
    rng: Random,
    new_id: NewId,
    arising: Arising | None = None,
    parked: Sequence[WaitingExchange] = (),
    child_cache: ChildCache | None = None,
) -> Script[ExchangeResult]:
    """Settle the outcomes of these exchanges, and claim for exchanges whose number is next.

    `arising` returns the states of lanes that get the steps which follow the ended steps.

    `parked` exchanges of these sessions take part in the claim. Otherwise `claim_for_parked`, which skips locked
    sessions, could skip a session for ever that reports all the time.
    """
    sessions = yield from lock_sessions([entry.session for entry in incoming])
    refused = {i: reply for i, entry in enumerate(incoming) if (reply := _refuse(entry, sessions.get(entry.session)))}
    heard = [entry for i, entry in enumerate(incoming) if i not in refused]
    for entry in heard:
        _drain(entry, sessions[entry.session])
    moves = Deferred()
    effects = yield from report.settle(heard, sessions, policies, moves, now, rng, new_id, child_cache)
    asking = [entry for entry in heard if _asks(entry, sessions[entry.session])]
    heads_of = {(entry.session, entry.exchange.channel) for entry in incoming}
    waiting = [
        p
        for p in parked
        if p.place not in heads_of  # guard: parked-elsewhere
        and _awaits(sessions.get(p.want.session), p.want)  # guard: parked-awaits
    ]
    claimed = yield from _claim(asking, waiting, sessions, lanes, arising, paused, effects, moves, now)
    replies = [
        refused.get(i) or _reply(entry, sessions[entry.session], claimed, effects) for i, entry in enumerate(incoming)
    ]
    yield from moves.make(*touched(sessions, now))
    return ExchangeResult(replies, claimed, effects)


def look(incoming: Sequence[IncomingExchange]) -> Script[list[Reply]]:
    """Reply to exchanges that report nothing, may wait, and find empty lanes; change nothing.

    No lock is needed. Earlier answers to the worker are committed, so its next number is recognized as the next. When
    the exchange has waited, the session is read again under its lock.
    """
    rows = yield Among(LOOK_AT_SESSIONS, sorted({entry.session for entry in incoming}))
    sessions = {row[0]: SessionRow(*row) for row in rows}
    return [
        _refuse(entry, sessions.get(entry.session)) or _glance(entry, sessions[entry.session]) for entry in incoming
    ]


def is_quiet(entry: IncomingExchange) -> bool:
    """Tell whether an exchange reports nothing, does not drain its session, and may wait for work."""
    return entry.patient and not entry.exchange.draining and not report.has_content(entry)


def _glance(entry: IncomingExchange, row: SessionRow) -> Reply:
    known = entry.exchange.n <= seen_on(row.seen, entry.exchange.channel)
    return Reply(decision="answer" if known else "park", known=known, draining=row.state == "draining")


def _refuse(entry: IncomingExchange, row: SessionRow | None) -> Reply | None:
    """Return the reply to an exchange that must change nothing: its session is not live, or numbers are missing.

    Return None for all other exchanges. Called before any change.
    """
    if row is not None and row.state in DETACHED:
        return Reply(decision="detached")
    if row is None or not row.live:  # guard: exchange-of-live-session
        return Reply(decision="ended")
    seen = seen_on(row.seen, entry.exchange.channel)
    return Reply(decision="gap", seen=seen) if entry.exchange.n > seen + 1 else None  # guard: exchange-without-gap


def _drain(entry: IncomingExchange, row: SessionRow) -> None:
    if entry.exchange.draining and row.state == "live":
        row.state, row.dirty = "draining", True


def _asks(entry: IncomingExchange, row: SessionRow) -> bool:
    """Tell whether an exchange may claim.

    It may if it has the next number of its channel, asks for work, and its session is live and does not drain.
    """
    up = entry.exchange
    is_next = up.n == seen_on(row.seen, up.channel) + 1
    return (
        is_next  # guard: claim-in-turn
        and row.state == "live"  # guard: claim-while-live
        and (up.free > 0 or bool(up.prefetch))
        and bool(entry.lanes)
    )


def want_of(entry: IncomingExchange, concurrency: int) -> WorkRequest:
    """Return the request for work that an exchange makes; `concurrency` is the number of slots of its session."""
    up = entry.exchange
    load = 1 - min(1.0, up.free / max(1, concurrency))
    return WorkRequest(
        session=entry.session, channel=up.channel, n=up.n, free=up.free, room=up.room, prefetch=up.prefetch, load=load
    )


def _claim(
    incoming: Sequence[IncomingExchange],
    parked: Sequence[WaitingExchange],
    sessions: Mapping[UUID, SessionRow],
    lanes: Sequence[LaneState],
    arising: Arising | None,
    paused: frozenset[UUID],
    effects: Effects,
    moves: Deferred,
    now: Instant,
) -> Script[ClaimResult]:
    """Claim for these exchanges and for parked ones; each channel of a session is served once.

    The numbers of parked exchanges that are granted something become taken. Steps that were created by these reports
    are granted at once if no other work waits in the lanes. Otherwise they are queued before the claim.
    """
    first = {(entry.session, entry.exchange.channel): entry for entry in reversed(incoming)}
    wants = [want_of(entry, sessions[entry.session].concurrency) for entry in first.values()]
    wants += [p.want for p in parked]
    eligible = {p.want.session: p.lanes for p in parked} | {entry.session: entry.lanes for entry in incoming}
    preferences = {p.want.session: p.preferences for p in parked} | {
        entry.session: entry.preferences for entry in incoming
    }
    steps = effects.newborn
    arisen = arising(lowest(steps)) if steps and arising is not None else []
    given = (
        grants.grant_new_steps(steps, wants, eligible, preferences, lanes, arisen, effects.open_lanes, paused, now)
        if steps
        else None
    )
    if given is not None:
        running, left = given
        moves.add([grants.start_running(running), effects.queue(left)])
        claimed = ClaimResult(running, {})
    else:
        if steps:
            moves.add([effects.queue(steps)])
            lanes = grants.with_steps(lanes, arisen)
        claimed = yield from claim(wants, eligible, lanes, paused, moves, now, preferences)
        for lane in lowest(steps):
            if claimed.lanes.get(lane, 0) is None:  # the lane is empty again: no exchange has to be woken
                effects.requeued.pop(lane, None)
    if parked:
        _number(claimed.running, sessions, {p.place for p in parked})
    return claimed


def _number(
    running: Sequence[RunningSlice], sessions: Mapping[UUID, SessionRow], places: Container[tuple[UUID, int]]
) -> None:
    """Record the numbers of parked exchanges that were granted something as taken."""
    for granted in running:
        if (granted.session, granted.channel) in places:
            row = sessions[granted.session]
            row.seen, row.dirty = see(row.seen, granted.channel, granted.n), True  # guard: parked-takes-number


def _reply(entry: IncomingExchange, row: SessionRow, claimed: ClaimResult, effects: Effects) -> Reply:
    up = entry.exchange
    ignored = effects.ignored.get((entry.session, up.channel), [])
    if up.n <= seen_on(row.seen, up.channel):
        return Reply(decision="answer", known=True, ignored=ignored, draining=row.state == "draining")
    granted = [s for s in claimed.running if s.session == entry.session and s.channel == up.channel]
    if not granted and entry.patient:
        return Reply(decision="park", ignored=ignored, draining=row.state == "draining")
    row.seen, row.dirty = see(row.seen, up.channel, up.n), True  # guard: exchange-takes-number
    return Reply(decision="answer", granted=granted, ignored=ignored, draining=row.state == "draining")


def touched(sessions: Mapping[UUID, SessionRow], now: Instant) -> Iterator[ForEach]:
    """Yield the update of the sessions that changed; it also sets their `last_seen`, as a heartbeat does."""
    rows = [(s.id, s.seen, s.state, now) for s in sessions.values() if s.dirty]
    if rows:
        yield ForEach(TOUCH_SESSIONS, TOUCH, rows)


def claim_for_parked(
    parked: Sequence[WaitingExchange], lanes: Sequence[LaneState], paused: frozenset[UUID], now: Instant
) -> Script[ClaimResult]:
    """Claim once for all parked exchanges; the numbers of those that are granted something become taken.

    SKIP LOCKED: a session that another transaction has locked has another exchange in progress.
    """
    sessions = yield from lock_sessions([p.want.session for p in parked], LOCK_PARKED)
    able = {(p.want.session, p.want.channel): p for p in parked if _awaits(sessions.get(p.want.session), p.want)}
    eligible = {p.want.session: p.lanes for p in able.values()}
    preferences = {p.want.session: p.preferences for p in able.values()}
    moves = Deferred()
    claimed = yield from claim([p.want for p in able.values()], eligible, lanes, paused, moves, now, preferences)
    _number(claimed.running, sessions, able.keys())
    yield from moves.make(*touched(sessions, now))
    return claimed


def _awaits(row: SessionRow | None, want: WorkRequest) -> bool:
    return (
        row is not None
        and row.state == "live"  # guard: parked-while-live
        and seen_on(row.seen, want.channel) == want.n - 1  # guard: parked-in-turn
    )


STAMPED = Statement(
    "stamped",
    f"SELECT {shelves.names(shelves.RUNNING)} FROM running WHERE session = $1 AND channel = $2 AND n = $3"
    " ORDER BY parcel, lo",
)

EmptyVerdict = Literal["empty", "taken", "ended", "detached"]


def answer_empty(
    numbers: Sequence[tuple[UUID, int, int]], now: Instant
) -> Script[dict[tuple[UUID, int], tuple[EmptyVerdict, bool]]]:
    """Take the numbers (session, channel, n) of exchanges that end without work, unless a claim took them first.

    The verdict `taken` means that a claim took the number, so that running slices may have it. The flag beside the
    verdict is true if the session is draining.
    """
    sessions = yield from lock_sessions([session for session, _, _ in numbers])
    emptied: dict[tuple[UUID, int], tuple[EmptyVerdict, bool]] = {}
    for session, channel, n in numbers:
        emptied[session, channel] = _empty(sessions.get(session), channel, n)
    yield from touched(sessions, now)
    return emptied


def _empty(row: SessionRow | None, channel: int, n: int) -> tuple[EmptyVerdict, bool]:
    if row is not None and row.state in DETACHED:
        return "detached", False
    if row is None or not row.live:  # guard: empty-of-live-session
        return "ended", False
    draining = row.state == "draining"
    if seen_on(row.seen, channel) != n - 1:  # guard: empty-in-turn
        return "taken", draining
    row.seen, row.dirty = see(row.seen, channel, n), True  # guard: empty-takes-number
    return "empty", draining


def stamped_slices(session: UUID, channel: int, n: int) -> Script[list[RunningSlice]]:
    """Return the running slices with the number of an exchange: they are its answer, even if it is repeated."""
    rows: Rows = yield Fetch(STAMPED, (session, channel, n))
    return [shelves.running(row) for row in rows]
