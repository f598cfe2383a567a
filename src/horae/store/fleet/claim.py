"""Claims: queued slices are granted to the sessions that ask for work, lowest rank first.

The callers have locked the rows of these sessions. Otherwise a claim could commit after the rescue of a session, and
leave slices with the ended session for ever.
"""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.model.admission.claim_plan import LaneState, QueuePreferences, after_claim, is_plain, plan_claims
from horae.model.admission.keys import AFFINE
from horae.model.admission.placement.prefetch import goes_before
from horae.model.executions.slice import RunningSlice
from horae.model.fleet.deal import WorkRequest, capacity
from horae.store.admission import coarse
from horae.store.admission.coarse import Rooms
from horae.store.admission.placement.affinity import remember
from horae.store.base.deferred import Deferred
from horae.store.fleet.claim_lane import ALL, LaneClaimResult, claim_lane, pick_each, uncut_limit
from horae.store.script import Script

NO_PREFERENCES: Mapping[UUID, QueuePreferences | None] = {}


class ClaimResult(Struct, frozen=True):
    """The slices that a claim granted, and the state of the lanes after it."""

    running: list[RunningSlice]
    lanes: dict[int, int | None]  # the least rank that is left in each lane that was read; None: the lane is empty
    # Lanes from which only suspects were read, and none was granted: they wait until suspects that the asking sessions
    # hold have ended, so that a hint for these lanes would be useless.
    suspects: frozenset[int] = frozenset()
    full: dict[int, Instant | None] = {}  # lanes whose limits have no room, and when they get room, if that is known
    wake_at: Instant | None = None  # the earliest instant at which a slice that was held back by its rate may start
    freed: frozenset[UUID] = frozenset()  # parcels with items that went back to `waiting` and so released their keys
    means: dict[int, float] = {}  # mean number of executions per slice, by lane, of the slices that were read


def claim(
    wants: Sequence[WorkRequest],
    eligible: Mapping[UUID, frozenset[int]],
    lanes: Sequence[LaneState],
    paused: frozenset[UUID],
    moves: Deferred,
    now: Instant,
    preferences: Mapping[UUID, QueuePreferences | None] = NO_PREFERENCES,
) -> Script[ClaimResult]:
    """Claim for all requests, each from the lanes of its session; requests with the same lanes are served together.

    Some changes stay in `moves`: the caller writes them together with the consequences of the claim.
    """
    groups: dict[tuple[frozenset[int], QueuePreferences | None], list[WorkRequest]] = {}
    for want in wants:
        groups.setdefault((eligible[want.session], preferences.get(want.session)), []).append(want)
    done = ClaimResult([], {})
    rooms = yield from _rooms(groups, lanes, moves, now)
    for (may, preference), group in groups.items():
        views = [view for view in lanes if view.lane in may]
        take = _claim_lanes(group, views, paused, moves, now, rooms)
        if not is_plain(views, preference):
            take = _claim_by_plan(group, views, preference, paused, moves, now, rooms)
        more = yield from take
        done = ClaimResult(
            done.running + more.running, done.lanes | more.lanes, done.suspects | more.suspects, done.full | more.full,
            means=done.means | more.means,
        )  # fmt: skip
    affine = [running for running in done.running if running.flags & AFFINE]
    if affine:
        yield from remember(affine, now)
    moves.add(rooms.changes())
    return structs.replace(done, freed=frozenset(rooms.paces.freed), wake_at=rooms.paces.wake_at)


def _rooms(
    groups: Iterable[tuple[frozenset[int], QueuePreferences | None]],
    lanes: Sequence[LaneState],
    moves: Deferred,
    now: Instant,
) -> Script[Rooms]:
    """Return the room under the limits of these lanes; first write the deferred changes, which may free some of it."""
    reaches = [those for those, _ in groups]
    limited = (view for view in lanes if view.limits)
    names = {name for view in limited if any(view.lane in those for those in reaches) for name in view.limits}
    if not names:
        return Rooms({}, now)
    yield from moves.make()
    return (yield from coarse.lock_rooms(names, now))


class _Tally:
    """The slices that a claim has granted so far, and the state of the lanes that it has read."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self.running: list[RunningSlice] = []
        self._lows: dict[int, int | None] = {}
        self._suspects: set[int] = set()
        self._full: dict[int, Instant | None] = {}
        self._means: dict[int, float] = {}

    def room(self, view: LaneState) -> int:
        """Return the number of executions for which the limits of a lane have room; record the lane if it is 0."""
        most = (
            self._rooms.available(view.limits, view.lane) if view.limits else ALL
        )  # gate: queue-limit, namespace-limit
        if most <= 0:  # gate: queue-limit, namespace-limit
            self._full[view.lane] = self._rooms.opens_at(view.limits)
        return most

    def add(self, view: LaneState, took: LaneClaimResult) -> int:
        """Add the slices that were granted from a lane; return the number of executions in them."""
        count = sum(running.hi - running.lo for running in took.running)
        if view.limits:  # gate: queue-limit, namespace-limit
            self._rooms.take(view.limits, count)
            self.room(view)
        self.running += took.running
        self._lows[view.lane], self._means[view.lane] = took.low, took.mean
        if took.suspects:  # gate: suspect
            self._suspects.add(view.lane)
        return count

    @property
    def done(self) -> ClaimResult:
        return ClaimResult(self.running, self._lows, frozenset(self._suspects), self._full, means=self._means)


def _claim_lanes(
    wants: Sequence[WorkRequest],
    lanes: Sequence[LaneState],
    paused: frozenset[UUID],
    moves: Deferred,
    now: Instant,
    rooms: Rooms,
) -> Script[ClaimResult]:
    """Claim from these lanes, in their order; each of the requests may take from each of the lanes."""
    tally = _Tally(rooms)
    left = list(wants)
    passed: int | None = None  # the least rank of the first lane for which no request had a slot
    for view in lanes:
        if passed is not None and goes_before(passed, view.low):  # gate: none
            left = [structs.replace(want, prefetch={}) for want in left]
        if capacity(left) <= 0:  # gate: busy
            break
        if capacity(left, view.jobs, view.cost) <= 0:  # gate: room
            passed = view.low if passed is None and not view.cost else passed  # gate: none
            continue
        most = tally.room(view)
        if most <= 0:  # gate: queue-limit, namespace-limit
            continue
        took = yield from claim_lane(left, view, paused, moves, now, rooms.paces, most)
        tally.add(view, took)
        left = took.wants
    return tally.done


def _claim_by_plan(
    wants: Sequence[WorkRequest],
    lanes: Sequence[LaneState],
    preference: QueuePreferences | None,
    paused: frozenset[UUID],
    moves: Deferred,
    now: Instant,
    rooms: Rooms,
) -> Script[ClaimResult]:
    """Claim from these lanes in the order and the amounts of a plan; plan again while requests have room left."""
    tally = _Tally(rooms)
    left = list(wants)
    views = {view.lane: view for view in lanes if capacity(left, view.jobs, view.cost) > 0}
    stand: dict[int, tuple[int, int]] = {}  # lanes that have more: the number taken, and the least rank that is left
    while views and (room := capacity(left)) > 0:
        views |= {lane: after_claim(views[lane], count, low) for lane, (count, low) in stand.items()}
        stand.clear()
        turns = plan_claims(list(views.values()), room, preference)
        if not turns:  # all lanes are expected to be empty
            break
        picked = yield from pick_each(turns, moves, now)
        for turn in turns:
            view = turn.lane
            if capacity(left, view.jobs, view.cost) <= 0 or (most := min(turn.most, tally.room(view))) <= 0:
                del views[view.lane]
                continue
            first, whole = picked.get(view.lane), uncut_limit(turn)
            took = yield from claim_lane(left, view, paused, moves, now, rooms.paces, most, first, whole)
            count = tally.add(view, took)
            left = took.wants
            if count < turn.most or took.low is None:
                del views[view.lane]
            else:
                stand[view.lane] = count, took.low
    return tally.done
