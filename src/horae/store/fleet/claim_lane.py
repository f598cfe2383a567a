"""The claim from one lane: slices are picked from it, distributed among requests for work, and moved to `running`."""

from collections.abc import Iterable, Sequence
from math import ceil
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.model.admission.claim_plan import LaneClaim, LaneState
from horae.model.admission.keys import CIRCUIT, KEYED, LIMITED, RATED
from horae.model.admission.policy import QUANTUM
from horae.model.executions.slice import QueuedSlice, RunningSlice, WaitingSlice
from horae.model.fleet.deal import Deal, WorkRequest, capacity, deal_most
from horae.model.fleet.suspects import SUSPECT, SessionSuspects, is_suspect
from horae.store.admission.circuit_gates import shut_out
from horae.store.admission.coarse import open_condition
from horae.store.admission.key_rates import KeyRates
from horae.store.admission.placement.spread import spread_bounds
from horae.store.base import shelves
from horae.store.base.deferred import Change, Deferred
from horae.store.fleet.grants import granted, start_running
from horae.store.script import Fetch, ForEach, Script, Statement

# The last slice is cut in place. It is found by its key, because its ctid would match no row after another claim has
# cut it.
CUT = Statement(
    "cut_queued",
    "UPDATE queued SET lo = given.cut FROM given WHERE queued.parcel = given.parcel AND queued.lo = given.lo",
)
_PICK = (
    f"SELECT {shelves.names(shelves.QUEUED)} FROM queued WHERE lane = $1 AND rank >= $2"
    f" AND {open_condition('$1', '$4', '$5')}"
)
_IN_ORDER = "ORDER BY lane, rank, parcel, lo LIMIT $3 FOR UPDATE SKIP LOCKED"
PICK = Statement("pick_queued", f"{_PICK} {_IN_ORDER}")
PICK_MILDER = Statement("pick_queued_milder", f"{_PICK} AND losses < $6 {_IN_ORDER}")
SESSION_SUSPECTS = Statement(
    "suspects_of_sessions",
    "SELECT s.id, s.concurrency, coalesce(sum(r.hi - r.lo), 0), coalesce(max(r.losses), 0) FROM given"
    " JOIN sessions s ON s.id = given.id"
    f" LEFT JOIN running r ON r.session = s.id AND r.losses >= {SUSPECT} GROUP BY s.id, s.concurrency",
)
# Picks from several lanes by one statement. SQLite runs it once per lane, which costs no more.
PICK_EACH = Statement(
    "pick_queued_each",
    f"SELECT q.* FROM given CROSS JOIN LATERAL (SELECT {shelves.names(shelves.QUEUED)} FROM queued"
    f" WHERE lane = given.lane AND rank >= given.low AND {open_condition('given.lane', 'given.at', 'given.limited')}"
    " ORDER BY lane, rank, parcel, lo LIMIT given.most FOR UPDATE SKIP LOCKED) q",
)
_EACH: shelves.Columns = (("lane", "int"), ("low", "bigint"), ("most", "int"), ("at", "bigint"), ("limited", "bool"))
ALL = 1 << 62  # a number of executions that stands for no bound
_GATED = CIRCUIT | RATED


class PickedSlices(Struct, frozen=True):
    """Slices that a statement has picked from a lane, and the LIMIT of the statement."""

    slices: list[QueuedSlice]
    limit: int


class LaneClaimResult(Struct, frozen=True):
    """The slices that a claim granted from one lane, and the state of the lane after it."""

    running: list[RunningSlice]
    low: int | None  # the least rank that is left in the lane; None: nothing is left that this claim could lock
    wants: list[WorkRequest]  # the requests with the capacity that is left
    suspects: bool = False  # nothing was granted, and only suspects were read
    mean: float = 1.0  # executions per slice, of the slices that were read


def pick_each(turns: Sequence[LaneClaim], moves: Deferred, now: Instant) -> Script[dict[int, PickedSlices]]:
    """Pick slices for all turns, each a lane with an amount, by one statement.

    If there is only one turn, pick nothing, because `claim_lane` does it.
    """
    if len(turns) < 2:
        return {}
    limits = {turn.lane.lane: _limit(turn.most, turn.lane.mean, uncut_limit(turn)) for turn in turns}
    yield from moves.make()
    views = [turn.lane for turn in turns]
    given = [(view.lane, view.low, limits[view.lane], now, bool(view.limits)) for view in views]
    rows = yield ForEach(PICK_EACH, _EACH, given)
    found: dict[int, list[QueuedSlice]] = {lane: [] for lane in limits}
    for row in rows:
        queued = shelves.queued(row)
        found[queued.lane].append(queued)
    return {lane: PickedSlices(sorted(slices, key=_order), limits[lane]) for lane, slices in found.items()}


def _order(item_slice: QueuedSlice) -> tuple[int, UUID, int]:
    return item_slice.rank, item_slice.parcel, item_slice.lo


def uncut_limit(turn: LaneClaim) -> int:
    """Return the number of items up to which a slice is granted whole, even if this exceeds the amount of the turn."""
    return QUANTUM if turn.most >= QUANTUM and not turn.lane.limits else 0


def _limit(room: int, mean: float, whole: int = 0) -> int:
    """Return the number of slices to pick for `room` executions, with `mean` executions per slice.

    Slices of up to `whole` items are not cut. Then two more are picked: the last granted slice may begin just before
    the room is full, and one further slice shows that the lane has more.
    """
    count = ceil(room / mean) + 2 if mean <= whole else int(room / mean) + 1
    return max(1, min(512, count))


def claim_lane(
    wants: list[WorkRequest],
    view: LaneState,
    paused: frozenset[UUID],
    moves: Deferred,
    now: Instant,
    paces: KeyRates,
    most: int = ALL,
    picked_before: PickedSlices | None = None,
    uncut: int = 0,
) -> Script[LaneClaimResult]:
    """Pick slices of one lane and grant them, until the requests are filled, or `most` executions are, or none is left.

    `picked_before` are slices that `pick_each` has picked for a first round. Slices of up to `uncut` items are granted
    whole, even if this exceeds `most`.

    Suspects that no session may take now are skipped, so that they do not block executions behind them that were lost
    less often.
    """
    claimed: list[RunningSlice] = []
    low, mean, passed, milder = view.low, view.mean, None, 0
    while most > 0 and (room := min(most, capacity(wants, view.jobs, view.cost))) > 0:
        if picked_before is None:
            limit = _limit(room, mean, uncut)
            picked = yield from _pick((view.lane, low, limit, now, bool(view.limits)), milder, moves)
        else:
            picked, limit, picked_before = picked_before.slices, picked_before.limit, None
        if not picked:
            return LaneClaimResult(claimed, passed, wants, passed is not None and not claimed, mean)
        mean = sum(s.hi - s.lo for s in picked) / len(picked)
        usable, wants = yield from _usable(picked, wants, paused, paces)
        each = (yield from spread_bounds(view.spread_over, usable, now)) if view.spread_over is not None else None
        decided = deal_most(usable, wants, most, view.cost, each, uncut)
        mark = LIMITED if view.limits else 0
        running = [granted(d.slice, d.lo, d.hi, wants[d.want], now, mark) for d in decided.dealt]
        moves.add(_moves(decided, running))
        paces.take(running)
        claimed += running
        most -= sum(part.hi - part.lo for part in running)
        low, wants = picked[-1].rank, decided.wants
        if len(decided.whole) < len(usable):
            left = _without(usable, decided.whole)
            passed = left[0].rank if passed is None else passed
            if most <= 0 or not all(is_suspect(s.losses) for s in left):
                return LaneClaimResult(claimed, passed, wants, mean=mean)
            milder = min(s.losses for s in left)
        elif len(picked) < limit:  # other claims have locked any further slices, and send a hint if they leave some
            return LaneClaimResult(claimed, passed, wants, passed is not None and not claimed, mean)
    return LaneClaimResult(claimed, low if passed is None else passed, wants, mean=mean)


def _pick(asked: tuple[int, int, int, Instant, bool], milder: int, moves: Deferred) -> Script[list[QueuedSlice]]:
    """Pick the first slices of a lane; if `milder` is not 0, only slices with fewer losses than `milder`."""
    yield from moves.make()
    rows = yield Fetch(PICK_MILDER, (*asked, milder)) if milder else Fetch(PICK, asked)
    return [shelves.queued(row) for row in rows]


def _usable(
    picked: list[QueuedSlice], wants: list[WorkRequest], paused: frozenset[UUID], paces: KeyRates
) -> Script[tuple[list[QueuedSlice], list[WorkRequest]]]:
    """Return the slices that may be granted now, and the requests, completed with the suspects of their sessions."""
    if not paused and not any(s.flags & _GATED or is_suspect(s.losses) for s in picked):
        return picked, wants
    usable = yield from paces.hold_back((yield from _set_aside(picked, paused, paces)))
    return usable, (yield from _look_up_companies(wants, usable))


def _without(slices: Sequence[QueuedSlice], gone: Iterable[QueuedSlice | WaitingSlice]) -> list[QueuedSlice]:
    places = {(s.parcel, s.lo) for s in gone}
    return [s for s in slices if (s.parcel, s.lo) not in places]


def _moves(decided: Deal, running: Sequence[RunningSlice]) -> list[Change]:
    """Return the changes that move granted slices from `queued` to `running`."""
    columns: shelves.Columns = (*shelves.SPAN, ("cut", "int"))
    cut = ForEach(CUT, columns, [(s.parcel, s.lo, lo) for s, lo in decided.cut])
    return [shelves.take("queued", decided.whole), cut, start_running(running)]


def _look_up_companies(wants: list[WorkRequest], usable: Sequence[QueuedSlice]) -> Script[list[WorkRequest]]:
    """Complete requests with the suspects that their sessions, which are locked, hold, if any suspects were picked."""
    if not any(is_suspect(s.losses) for s in usable) or all(want.company is not None for want in wants):
        return wants
    ids = sorted({want.session for want in wants})
    rows = yield ForEach(SESSION_SUSPECTS, (("id", "uuid"),), [(session_id,) for session_id in ids])
    found = {
        session_id: SessionSuspects(slots=slots, held=int(held), losses=losses)  # guard: claim-sees-suspects
        for session_id, slots, held, losses in rows
    }
    return [structs.replace(want, company=found.get(want.session)) for want in wants]


def _set_aside(picked: list[QueuedSlice], paused: frozenset[UUID], paces: KeyRates) -> Script[list[QueuedSlice]]:
    """Move slices of paused jobs, and slices with an open circuit, to `waiting`, at the gate of the job or circuit.

    While they wait, other executions may have their keys. Return the slices that are left.
    """
    held = [to_gate(s) for s in picked if s.job in paused] if paused else []  # guard: paused-aside; gate: paused
    held += yield from shut_out([s for s in picked if s.job not in paused] if held else picked)  # gate: paused
    if not held:  # gate: none
        return picked
    yield shelves.take("queued", held)
    yield shelves.put_waiting(held)
    paces.freed |= {s.parcel for s in held if s.flags & KEYED}  # gate: none
    return _without(picked, held)


def to_gate(queued: QueuedSlice) -> WaitingSlice:
    """Return the waiting slice that replaces a queued slice until its paused job is resumed."""
    return WaitingSlice(
        parcel=queued.parcel, lo=queued.lo, hi=queued.hi, job=queued.job, queue=queued.queue,
        namespace=queued.namespace, attempt=queued.attempt, failures=queued.failures, losses=queued.losses,
        alone=queued.alone, width=queued.width, flags=queued.flags, reason="paused", gate=job_gate(queued.job),
    )  # fmt: skip


def job_gate(job: UUID) -> str:
    return f"job:{job}"
