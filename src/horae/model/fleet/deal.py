"""Distribution of queued slices to the sessions that request work."""

from collections.abc import Container, Mapping, Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.model.admission.placement.placement import PLAIN, Cost
from horae.model.admission.placement.prefetch import goes_before
from horae.model.executions.slice import QueuedSlice
from horae.model.fleet.protocol import MAX_EXCHANGE
from horae.model.fleet.suspects import SessionSuspects, is_suspect

GRANT_BYTES = 400  # most bytes of JSON around the items of a slice in an answer


class WorkRequest(Struct, frozen=True, kw_only=True):
    """The capacity of one waiting exchange: idle slots and resources, and prefetch for jobs with short executions."""

    session: UUID
    channel: int
    n: int
    free: int  # idle slots
    room: Mapping[str, int] = {}  # idle amounts of resources other than slots
    prefetch: Mapping[UUID, int] = {}  # by job, the number of executions that it takes beyond its idle slots
    load: float = 0.0  # share of its slots in use; the request with the least is served first
    # The suspects that its session holds; None: not read, because the claim has no suspects.
    company: SessionSuspects | None = None
    size: int = 0  # bytes that its answer has grown to
    full: bool = False  # nothing more fits into its answer


class Assignment(Struct, frozen=True):
    """Items `lo` to `hi - 1` of a queued slice, given to the work request with the index `want`."""

    want: int
    slice: QueuedSlice
    lo: int
    hi: int


class Deal(Struct, frozen=True):
    """The result of a distribution.

    `dealt` are the assignments. `whole` are the slices that were given away completely. `cut` has the slices that were
    given away in part, each with the index of the first item that is left. `wants` are the requests with their
    remaining capacity.
    """

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
        """Return how many of a slice's items the request can take."""
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
        """Return how many items fit into the answer; into an empty answer, at least one.

        When nothing fits, the answer is marked full, so that smaller items of a worse rank do not overtake.
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
    """Return how many items of this cost the requests can take in total, of `jobs` or, if that is None, of any job."""
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
    """Distribute slices, in order, over work requests in even shares; the least loaded request is first.

    No item goes to two requests. Items are taken from the front of a slice, so that what is left is one slice. A
    session gets no more suspects than it may hold. An answer grows to MAX_EXCHANGE bytes, or has one item that is
    larger. Each item uses up slots and resources of the request, as its cost says. If the job is spread over workers,
    `most` bounds the items of each session. Once an item has found no room, items that rank well behind it are not
    prefetched.
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
    """Distribute at most `most` items, as `deal` does; the other items stay in the queue.

    `each` bounds the items of each session. The last slice is not cut if it has at most `whole` items, because the
    remaining part would be cut by one claim after another.
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
    """Distribute one slice, and return the index of the first item that is left.

    In a first round, each request gets at most its even share; in a second round, requests are filled up.
    """
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
