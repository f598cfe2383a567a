"""Distribution of queued slices to the sessions that request work."""

from collections.abc import Container, Mapping, Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.model.admission.placement.placement import PLAIN, Cost
from horae.model.admission.placement.prefetch import goes_before
from horae.model.executions.slice import QueuedSlice
from horae.model.fleet.protocol import MAX_EXCHANGE
from horae.model.fleet.suspects import SessionSuspects, is_suspect

GRANT_BYTES = 400  # of JSON around a slice in an answer, at most


class WorkRequest(Struct, frozen=True, kw_only=True):
    """The capacity of one waiting exchange: idle slots and resources, and prefetch for jobs with short executions."""

    session: UUID
    channel: int
    n: int
    free: int
    room: Mapping[str, int] = {}  # idle amounts of resources other than slots
    prefetch: Mapping[UUID, int] = {}
    load: float = 0.0  # share of its slots in use; the least loaded is served first
    company: SessionSuspects | None = (
        None  # the suspects of its session; None: not looked up, because none was in sight
    )
    size: int = 0  # bytes that its answer has grown to
    full: bool = False  # its answer takes nothing more


class Assignment(Struct, frozen=True):
    """Items lo..hi-1 of a queued slice, given to the work request with this index."""

    want: int
    slice: QueuedSlice
    lo: int
    hi: int


class Deal(Struct, frozen=True):
    """The assignments, the slices used up, the new starts of slices used in part, and the remaining capacity."""

    dealt: list[Assignment]
    whole: list[QueuedSlice]
    cut: list[tuple[QueuedSlice, int]]
    wants: list[WorkRequest]


class _Room:
    """The remaining capacity of a work request; `companies` holds the suspects of each session."""

    def __init__(
        self,
        want: WorkRequest,
        companies: dict[UUID, SessionSuspects],
        cost: Cost = PLAIN,
        most: dict[UUID, int] | None = None,
    ) -> None:
        self.want = want
        self.cost = cost
        self.most = most  # bound on the items of each session, or None
        self.room = want.room
        self.session = want.session
        self.free = want.free
        self.prefetch = dict(want.prefetch)
        self.size = want.size
        self.full = want.full
        self.companies = companies

    def capacity_for(self, queued: QueuedSlice) -> int:
        """Return how many of a slice's items it can take."""
        if self.full:  # gate: none
            return 0
        fits = self.cost.times(self.free, self.room) if self.cost else self.free  # gate: none
        if self.most is not None:  # gate: spread
            fits = min(fits, self.most.get(self.session, 0))
        if is_suspect(queued.losses):  # gate: suspect
            slots = min(fits, self._room_for_suspects(queued.losses))
        elif self.cost or self.most is not None:  # gate: none; slices with a cost or spread are never prefetched
            slots = fits
        else:
            slots = fits + self.prefetch.get(queued.job, 0)
        return min(slots, self._fitting(queued)) if slots else 0  # gate: suspect, spread

    def _room_for_suspects(self, losses: int) -> int:
        company = self.companies.get(self.session)
        return 0 if company is None else company.room(losses)

    def _fitting(self, queued: QueuedSlice) -> int:
        """Return how many items fit into the answer: at least one of its first slice.

        When nothing fits, the answer is closed, so that smaller items of a worse rank do not overtake.
        """
        fitting = (MAX_EXCHANGE - self.size - GRANT_BYTES) // (queued.width + 1)
        if fitting > 0:
            return fitting
        self.full = self.size > 0
        return 0 if self.full else 1

    def take(self, queued: QueuedSlice, k: int) -> None:
        if is_suspect(queued.losses):
            self.companies[self.session] = self.companies[self.session].joined(queued.losses, k)
        self.size += GRANT_BYTES + k * (queued.width + 1)
        if self.most is not None:
            self.most[self.session] -= k
        if self.cost:
            self.free -= k * self.cost.slots
            self.room = self.cost.left_of(self.room, k)
            return
        from_free = min(k, self.free)
        self.free -= from_free
        if k > from_free:
            self.prefetch[queued.job] -= k - from_free

    def left(self) -> WorkRequest:
        """Return the work request with its remaining capacity."""
        company = self.companies.get(self.session)
        return structs.replace(
            self.want, free=self.free, room=self.room, prefetch=self.prefetch, company=company, size=self.size,
            full=self.full,
        )  # fmt: skip


def capacity(wants: Sequence[WorkRequest], jobs: Container[UUID] | None = None, cost: Cost = PLAIN) -> int:
    """Return how many items of this cost the requests can take together, of these jobs or of any job."""
    room = 0
    for want in wants:
        room += _room_of(want, jobs, cost)
    return room


def _room_of(want: WorkRequest, jobs: Container[UUID] | None, cost: Cost) -> int:
    if want.full:
        return 0
    if cost:
        return cost.times(want.free, want.room)
    if not want.prefetch:
        return want.free
    return want.free + sum(k for job, k in want.prefetch.items() if jobs is None or job in jobs)


def deal(
    slices: Sequence[QueuedSlice],
    wants: Sequence[WorkRequest],
    cost: Cost = PLAIN,
    most: Mapping[UUID, int] | None = None,
) -> Deal:
    """Deal slices in order, least loaded request first, in even shares; no item goes to two requests.

    A slice is taken from its front, so its rest is one slice that begins later. A session gets no more suspects than it
    may hold. An answer grows to MAX_EXCHANGE bytes, or by one item if that is larger. Each item takes its cost of the
    request's room; `most` bounds the items of each session when they are spread. Nothing is prefetched past an item
    that found no room and goes before it.
    """
    companies = {want.session: want.company for want in wants if want.company is not None}
    bounds = None if most is None else dict(most)
    rooms = [_Room(want, companies, cost, bounds) for want in wants]
    order = sorted(range(len(wants)), key=lambda i: (wants[i].load, -wants[i].free))
    fair = max(1, -(-sum(s.hi - s.lo for s in slices) // max(1, len(wants))))
    dealt: list[Assignment] = []
    whole: list[QueuedSlice] = []
    cut: list[tuple[QueuedSlice, int]] = []
    shares = [fair] * len(wants)
    passed: int | None = None  # the first rank that found no room
    for queued in slices:
        if passed is not None and goes_before(passed, queued.rank):
            for room in rooms:
                room.prefetch = {}
        lo = _deal_one(queued, order, rooms, shares, dealt)
        if lo == queued.hi:
            whole.append(queued)
        elif lo > queued.lo:
            cut.append((queued, lo))
        if lo < queued.hi and passed is None and not is_suspect(queued.losses):
            passed = queued.rank
    return Deal(dealt, whole, cut, [room.left() for room in rooms])


def deal_most(
    slices: Sequence[QueuedSlice],
    wants: Sequence[WorkRequest],
    most: int,
    cost: Cost = PLAIN,
    each: Mapping[UUID, int] | None = None,
    whole: int = 0,
) -> Deal:
    """Deal at most `most` items, as `deal` does; the others stay in the queue.

    The last slice is not cut if it has at most `whole` items: its rest would be cut again and again.
    """
    if sum(s.hi - s.lo for s in slices) <= most:
        return deal(slices, wants, cost, each)
    offered: list[QueuedSlice] = []
    for queued in slices:
        is_whole = queued.hi - queued.lo <= max(most, whole)
        offered.append(queued if is_whole else structs.replace(queued, hi=queued.lo + most))
        most -= queued.hi - queued.lo
        if most <= 0:
            break
    decided, last = deal(offered, wants, cost, each), slices[len(offered) - 1]
    if offered[-1] is last or decided.whole[-1:] != offered[-1:]:
        return decided
    return structs.replace(decided, whole=decided.whole[:-1], cut=[*decided.cut, (last, offered[-1].hi)])


def _deal_one(
    queued: QueuedSlice, order: Sequence[int], rooms: Sequence[_Room], shares: list[int], dealt: list[Assignment]
) -> int:
    """Deal one slice; a first round keeps even shares, a second fills up. Return where its rest begins."""
    lo = queued.lo
    for even in (True, False):
        for i in order:
            if lo == queued.hi:
                return lo
            room = rooms[i].capacity_for(queued)
            k = min(queued.hi - lo, min(room, shares[i]) if even else room)
            if k > 0:
                rooms[i].take(queued, k)
                shares[i] -= k
                dealt.append(Assignment(i, queued, lo, lo + k))
                lo += k
    if lo < queued.hi:
        for i in order:  # mark answers that have no room left as full
            rooms[i].capacity_for(queued)
    return lo
