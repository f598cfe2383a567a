"""Claim: queued slices go to the sessions that want work, lowest rank first.

Both callers hold the wanting sessions' row locks: a claim that commits after a rescue would leave slices with a
dead session for ever.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.model.deal import Deal, Want, capacity, deal
from horae.model.slice import Queued, Running, Waiting
from horae.store.moves import shelves
from horae.store.script import Fetch, ForEach, Script, Statement

# The last slice is cut in place, by its key: after a cut by another claim, a ctid would silently match nothing.
CUT = Statement(
    "cut_queued",
    "UPDATE queued SET lo = given.cut FROM given WHERE queued.parcel = given.parcel AND queued.lo = given.lo",
)
PICK = Statement(
    "pick_queued",
    f"SELECT {shelves.names(shelves.QUEUED)} FROM queued WHERE lane = $1 AND rank >= $2"
    " ORDER BY lane, rank, parcel, lo LIMIT $3 FOR UPDATE SKIP LOCKED",
)
NO_RANK = -(1 << 62)


class LaneView(Struct, frozen=True, kw_only=True):
    """What a server believes about a non-empty lane: where its least rank lies and how large its slices are."""

    lane: int
    low: int = NO_RANK
    mean: float = 1.0


class Claimed(Struct, frozen=True):
    """What a claim did: the slices now running, and for each lane probed its next least rank (None: seen empty)."""

    running: list[Running]
    lanes: dict[int, int | None]


def claim_lanes(
    wants: Sequence[Want], lanes: Sequence[LaneView], paused: frozenset[UUID], now: Instant
) -> Script[Claimed]:
    """Take from these lanes, in their order, for wants that may all take from each of them."""
    claimed: list[Running] = []
    marks: dict[int, int | None] = {}
    left = list(wants)
    for view in lanes:
        room = capacity(left)
        if room <= 0:
            break
        taken, marks[view.lane] = yield from _claim_lane(left, view, room, paused, now)
        claimed += taken
        left = _reduce(left, taken)
    return Claimed(claimed, marks)


def _claim_lane(
    wants: Sequence[Want], view: LaneView, room: int, paused: frozenset[UUID], now: Instant
) -> Script[tuple[list[Running], int | None]]:
    """Pick, deal and move from one lane until the room is filled or nothing is found."""
    claimed: list[Running] = []
    low = view.low
    while True:
        limit = max(1, min(512, int(room / view.mean) + 1))
        rows = yield Fetch(PICK, (view.lane, low, limit))
        picked = [shelves.queued(row) for row in rows]
        if not picked:
            return claimed, None
        usable = yield from _set_paused_aside(picked, paused)
        decided = deal(usable, wants)
        running = [_granted(d.slice, d.lo, d.hi, wants[d.want], now) for d in decided.dealt]
        yield from _move(decided, running)
        claimed += running
        low = picked[-1].rank
        moved = len(decided.whole) + len(picked) - len(usable)
        if moved < len(picked):
            touched = {(s.parcel, s.lo) for s in decided.whole}
            return claimed, next(s.rank for s in usable if (s.parcel, s.lo) not in touched)
        wants = _reduce(wants, running)
        room = capacity(wants)
        if room <= 0:
            return claimed, low


def _set_paused_aside(picked: list[Queued], paused: frozenset[UUID]) -> Script[list[Queued]]:
    """Slices of paused jobs leave the lane and wait for the job's gate."""
    held = [s for s in picked if s.job in paused] if paused else []
    if not held:
        return picked
    yield shelves.take("queued", held)
    yield shelves.put_waiting(to_gate(s) for s in held)
    return [s for s in picked if s.job not in paused]


def to_gate(slice: Queued) -> Waiting:
    """A queued slice of a paused job, waiting for the job to be resumed."""
    return Waiting(
        parcel=slice.parcel, lo=slice.lo, hi=slice.hi, job=slice.job, queue=slice.queue, namespace=slice.namespace,
        attempt=slice.attempt, failures=slice.failures, losses=slice.losses, solo=slice.solo,
        reason="paused", gate=job_gate(slice.job),
    )  # fmt: skip


def job_gate(job: UUID) -> str:
    return f"job:{job}"


def _granted(s: Queued, lo: int, hi: int, want: Want, now: Instant) -> Running:
    return Running(
        parcel=s.parcel, lo=lo, hi=hi, job=s.job, queue=s.queue, namespace=s.namespace, attempt=s.attempt + 1,
        failures=s.failures, losses=s.losses, solo=s.solo, session=want.session, channel=want.channel, n=want.n,
        lane=s.lane, rank=s.rank, queued_at=s.queued_at, granted_at=now,
    )  # fmt: skip


def _move(decided: Deal, running: Sequence[Running]) -> Script[None]:
    if decided.whole:
        yield shelves.take("queued", decided.whole)
    if decided.cut:
        columns: shelves.Columns = (*shelves.SPAN, ("cut", "int"))
        yield ForEach(CUT, columns, [(s.parcel, s.lo, lo) for s, lo in decided.cut])
    if running:
        yield shelves.put_running(running)


def _reduce(wants: Sequence[Want], taken: Sequence[Running]) -> list[Want]:
    """What the wants can still take, after what they got."""
    got: dict[tuple[UUID, int], list[Running]] = {}
    for slice in taken:
        got.setdefault((slice.session, slice.channel), []).append(slice)
    alone = {slice.session for slice in taken if slice.solo}
    reduced = []
    for want in wants:
        free, prefetch = want.free, dict(want.prefetch)
        for slice in got.get((want.session, want.channel), ()):
            from_free = min(free, slice.hi - slice.lo)
            free -= from_free
            if slice.hi - slice.lo > from_free:
                prefetch[slice.job] -= slice.hi - slice.lo - from_free
        solo = want.solo or want.session in alone
        reduced.append(structs.replace(want, free=free, prefetch=prefetch, solo=solo))
    return reduced


def group_by_lanes(
    wants: Sequence[Want], eligible: Mapping[UUID, frozenset[int]], lanes: Sequence[LaneView]
) -> list[tuple[list[Want], list[LaneView]]]:
    """Wants that may take from the same lanes claim together."""
    groups: dict[frozenset[int], list[Want]] = {}
    for want in wants:
        groups.setdefault(eligible[want.session], []).append(want)
    return [(group, [view for view in lanes if view.lane in may]) for may, group in groups.items()]
