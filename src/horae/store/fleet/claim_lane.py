"""One lane of a claim: what is picked from it, dealt to those who want it, and moved to them."""

from collections.abc import Iterable, Sequence
from math import ceil
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.model.admission.claim_plan import LaneClaim, LaneState
from horae.model.admission.keys import CIRCUIT, KEYED, LIMITED, RATED
from horae.model.admission.policy import QUANTUM
from horae.model.executions.slice import Queued, Running, Waiting
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

# The last slice is cut in place, by its key: after a cut by another claim, a ctid would silently match nothing.
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
# Several lanes by one statement; SQLite asks for them one by one, which costs it nothing more.
PICK_EACH = Statement(
    "pick_queued_each",
    f"SELECT q.* FROM given CROSS JOIN LATERAL (SELECT {shelves.names(shelves.QUEUED)} FROM queued"
    f" WHERE lane = given.lane AND rank >= given.low AND {open_condition('given.lane', 'given.at', 'given.limited')}"
    " ORDER BY lane, rank, parcel, lo LIMIT given.most FOR UPDATE SKIP LOCKED) q",
)
_EACH: shelves.Columns = (("lane", "int"), ("low", "bigint"), ("most", "int"), ("at", "bigint"), ("limited", "bool"))
ALL = 1 << 62  # executions: as many as are wanted
_GATED = CIRCUIT | RATED


class PickedSlices(Struct, frozen=True):
    """Slices that were picked of a lane, and how many were asked for."""

    slices: list[Queued]
    limit: int


class LaneClaimResult(Struct, frozen=True):
    """What a claim took from one lane, what begins there now, and what is wanted still."""

    running: list[Running]
    low: int | None
    wants: list[WorkRequest]
    suspects: bool = False  # nothing was taken, and only suspects were seen
    mean: float = 1.0  # how many executions a slice had, of those that were seen


def pick_each(turns: Sequence[LaneClaim], moves: Deferred, now: Instant) -> Script[dict[int, PickedSlices]]:
    """Pick for all turns at once; a single one is left to its lane."""
    if len(turns) < 2:
        return {}
    limits = {turn.view.lane: _limit(turn.most, turn.view.mean, uncut_limit(turn)) for turn in turns}
    yield from moves.make()
    views = [turn.view for turn in turns]
    given = [(view.lane, view.low, limits[view.lane], now, bool(view.limits)) for view in views]
    rows = yield ForEach(PICK_EACH, _EACH, given)
    found: dict[int, list[Queued]] = {lane: [] for lane in limits}
    for row in rows:
        queued = shelves.queued(row)
        found[queued.lane].append(queued)
    return {lane: PickedSlices(sorted(slices, key=_order), limits[lane]) for lane, slices in found.items()}


def _order(item_slice: Queued) -> tuple[int, UUID, int]:
    return item_slice.rank, item_slice.parcel, item_slice.lo


def uncut_limit(turn: LaneClaim) -> int:
    """Slices of no more executions than that are not cut where a share's turn ends."""
    return QUANTUM if turn.most >= QUANTUM and not turn.view.limits else 0


def _limit(room: int, mean: float, whole: int = 0) -> int:
    """How many slices to pick for so many executions.

    Where none is cut there is one more that begins late, and one that tells that there is something behind.
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
    """Pick, deal and move from one lane until the room is filled or no more is found than was picked.

    `first` was picked before. Slices of no more items than `whole` are not cut to take no more than `most`.

    Suspects that no session may take now are passed by, so that they do not keep others from what lies behind them:
    executions that were lost less often.
    """
    claimed: list[Running] = []
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
        usable, wants = yield from _usable(picked, wants, paused, paces, now)
        each = (yield from spread_bounds(view.among, usable, now)) if view.among is not None else None
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
        elif len(picked) < limit:  # what others hold now, they hint again if they leave something
            return LaneClaimResult(claimed, passed, wants, passed is not None and not claimed, mean)
    return LaneClaimResult(claimed, low if passed is None else passed, wants, mean=mean)


def _pick(asked: tuple[int, int, int, Instant, bool], milder: int, moves: Deferred) -> Script[list[Queued]]:
    """Pick from a lane what begins there; with `milder`, only what was lost less often."""
    yield from moves.make()
    rows = yield Fetch(PICK_MILDER, (*asked, milder)) if milder else Fetch(PICK, asked)
    return [shelves.queued(row) for row in rows]


def _usable(
    picked: list[Queued], wants: list[WorkRequest], paused: frozenset[UUID], paces: KeyRates, now: Instant
) -> Script[tuple[list[Queued], list[WorkRequest]]]:
    """What of it may be given now, to wants that know what suspects their sessions hold."""
    if not paused and not any(s.flags & _GATED or is_suspect(s.losses) for s in picked):
        return picked, wants
    usable = yield from paces.hold_back((yield from _set_aside(picked, paused, paces)))
    return usable, (yield from _look_up_companies(wants, usable))


def _without(slices: Sequence[Queued], gone: Iterable[Queued | Waiting]) -> list[Queued]:
    places = {(s.parcel, s.lo) for s in gone}
    return [s for s in slices if (s.parcel, s.lo) not in places]


def _moves(decided: Deal, running: Sequence[Running]) -> list[Change]:
    """What was dealt leaves the queue and runs."""
    columns: shelves.Columns = (*shelves.SPAN, ("cut", "int"))
    cut = ForEach(CUT, columns, [(s.parcel, s.lo, lo) for s, lo in decided.cut])
    return [shelves.take("queued", decided.whole), cut, start_running(running)]


def _look_up_companies(wants: list[WorkRequest], usable: Sequence[Queued]) -> Script[list[WorkRequest]]:
    """Suspects are in sight: learn which of them the sessions, all of them locked, hold already."""
    if not any(is_suspect(s.losses) for s in usable) or all(want.company is not None for want in wants):
        return wants
    ids = sorted({want.session for want in wants})
    rows = yield ForEach(SESSION_SUSPECTS, (("id", "uuid"),), [(session_id,) for session_id in ids])
    found = {
        session_id: SessionSuspects(slots=slots, held=int(held), losses=losses)  # guard: claim-sees-suspects
        for session_id, slots, held, losses in rows
    }
    return [structs.replace(want, company=found.get(want.session)) for want in wants]


def _set_aside(picked: list[Queued], paused: frozenset[UUID], paces: KeyRates) -> Script[list[Queued]]:
    """Slices of paused jobs leave the lane and wait for the job's gate; those before an open circuit, at its own.

    Others may have the keys that they held meanwhile.
    """
    held = [to_gate(s) for s in picked if s.job in paused] if paused else []  # guard: paused-aside; gate: paused
    held += yield from shut_out([s for s in picked if s.job not in paused] if held else picked)  # gate: paused
    if not held:  # gate: none
        return picked
    yield shelves.take("queued", held)
    yield shelves.put_waiting(held)
    paces.freed |= {s.parcel for s in held if s.flags & KEYED}  # gate: none
    return _without(picked, held)


def to_gate(queued: Queued) -> Waiting:
    """A queued slice of a paused job, waiting for the job to be resumed."""
    return Waiting(
        parcel=queued.parcel, lo=queued.lo, hi=queued.hi, job=queued.job, queue=queued.queue,
        namespace=queued.namespace, attempt=queued.attempt, failures=queued.failures, losses=queued.losses,
        alone=queued.alone, width=queued.width, flags=queued.flags, reason="paused", gate=job_gate(queued.job),
    )  # fmt: skip


def job_gate(job: UUID) -> str:
    return f"job:{job}"
