"""The choice between lanes: how many executions a claim takes from each, and in which order.

Between a worker's queues its own weights or order decide, between the shares of a fair queue their virtual times,
between the lanes of a share their ranks. A share gets a quantum at a time while others wait. The plan merges the
visits of a lane, so that a claim asks once for each lane that it takes from.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from uuid import UUID

from msgspec import Struct, structs

from horae.model.admission.placement.placement import PLAIN, Cost, Requirements
from horae.model.admission.placement.preempt import is_in_front
from horae.model.admission.policy import quantum
from horae.model.admission.virtual_times import VirtualTimes

NO_RANK = -(1 << 62)
UNKNOWN = 1 << 20  # executions: as many as nobody has counted


class WorkerGroup(Struct, frozen=True):
    """The workers of a queue that offer what is asked for."""

    queue: str
    terms: Requirements


class LaneState(Struct, frozen=True, kw_only=True):
    """What a server believes about a non-empty lane: where its least rank lies and how large its slices are.

    `jobs` are those it has granted from there, the only ones worth a look for what would be fetched ahead; None
    stands for any.
    """

    lane: int
    low: int = NO_RANK
    mean: float = 1.0
    jobs: frozenset[UUID] | None = None
    cost: Cost = PLAIN  # of each execution
    among: WorkerGroup | None = None  # workers that its executions are spread over; None: they are not
    limits: tuple[str, ...] = ()  # names of those that its queue and its namespace have
    queue: int = 0
    share: str | None = None  # of a fair queue
    amount: int = UNKNOWN
    virtual: float = 0.0  # what its share has had
    served: int = 0  # when its share was served last, in order
    price: float = 0.0  # what an execution adds to that
    expected: float = 50_000.0  # microseconds that an execution takes
    owed: int = 0  # slots that are reserved for its share and not in use


class QueuePreferences:
    """How a worker chooses between its queues: by weights, no queue starves; strictly, the first that has something.

    Workers that choose alike have one together, and so have the virtual times of their queues in common.
    """

    def __init__(self, weights: Mapping[int, float], *, strict: bool = False) -> None:
        self.strict = strict
        self.shares: VirtualTimes[int] = VirtualTimes()
        self.choose(weights)

    def choose(self, weights: Mapping[int, float]) -> None:
        """Choose between these queues from now on, given in the worker's order."""
        self.weights = weights
        self._places = {queue: place for place, queue in enumerate(weights)}

    def place(self, queue: int) -> int:
        return self._places.get(queue, len(self._places))

    def price(self, queue: int, cost: float) -> float:
        """What an execution of this cost adds to a queue's virtual time."""
        return cost / self.weights.get(queue, 1.0)


class LaneClaim(Struct):
    """So many executions, at most, are to be taken from a lane."""

    view: LaneState
    most: int


class _Share:
    """The lanes of one share, least rank first, and what may still be taken of the first of them."""

    def __init__(self, lanes: list[LaneState]) -> None:
        first = lanes[0]
        self.lanes, self.at, self.left = lanes, 0, first.amount
        self.virtual, self.served, self.owed = first.virtual, first.served, first.owed

    @property
    def key(self) -> tuple[bool, float, int, int]:
        return self.owed <= 0, self.virtual, self.served, self.lanes[self.at].low

    @property
    def quantum(self) -> int:
        """How many it gets at a time."""
        return quantum(self.lanes[self.at].expected)

    def take(self, most: int) -> tuple[LaneState, int]:
        """Take from the lane whose turn it is."""
        view = self.lanes[self.at]
        count = min(most, self.left)
        self.left -= count
        self.owed -= count
        self.virtual += count * view.price
        if self.left <= 0:
            self.at += 1
            self.left = self.lanes[self.at].amount if self.at < len(self.lanes) else 0
        return view, count

    @property
    def has_more(self) -> bool:
        return self.left > 0


class _Queue:
    """The shares of one queue, whose turn it is first."""

    def __init__(self, views: Iterable[LaneState]) -> None:
        shares: dict[str | None, list[LaneState]] = {}
        for view in views:
            shares.setdefault(view.share, []).append(view)
        made = (_Share(lanes if len(lanes) == 1 else sorted(lanes, key=_low)) for lanes in shares.values())
        self._line = [(share.key, i, share) for i, share in enumerate(made) if share.has_more]
        heapify(self._line)

    @property
    def has_more(self) -> bool:
        return bool(self._line)

    def take(self, most: int, *, alone: bool) -> tuple[LaneState, int]:
        """Take a quantum for the share whose turn it is, or all that is wanted when nobody else waits."""
        _, i, share = heappop(self._line)
        if self._line or not alone:
            most = min(most, share.quantum)
            most = min(most, share.owed) if share.owed > 0 else most
        view, count = share.take(most)
        if share.has_more:
            heappush(self._line, (share.key, i, share))
        return view, count


def after(view: LaneState, count: int, low: int) -> LaneState:
    """A lane of which so many were taken; its least rank lies there now."""
    return structs.replace(
        view, low=low, amount=max(1, view.amount - count), virtual=view.virtual + count * view.price,
        owed=max(0, view.owed - count),
    )  # fmt: skip


def _low(view: LaneState) -> int:
    return view.low


def is_plain(views: Sequence[LaneState], taste: QueuePreferences | None) -> bool:
    """Whether rank alone decides, so that lanes are taken as they stand."""
    return taste is None and all(view.share is None for view in views)


def plan(views: Sequence[LaneState], room: int, taste: QueuePreferences | None = None) -> list[LaneClaim]:
    """What to take of which lane for so many executions, in the order in which their turns come first."""
    queues: dict[int, list[LaneState]] = {}
    for view in views:
        queues.setdefault(view.queue if taste is not None else 0, []).append(view)
    lines = {queue: line for queue, own in queues.items() if (line := _Queue(own)).has_more}
    had = {queue: taste.shares.virtual(queue) if taste is not None else 0.0 for queue in lines}
    front = sorted((view for view in views if is_in_front(view.low) and view.low != NO_RANK), key=_low)[:room]
    turns: dict[int, LaneClaim] = {
        view.lane: LaneClaim(view, 1) for view in front
    }  # others gave way to what stands there
    room -= len(front)
    while room > 0 and lines:
        queue = _next(lines, had, taste)
        view, count = lines[queue].take(room, alone=len(lines) == 1 or (taste is not None and taste.strict))
        turn = turns.setdefault(view.lane, LaneClaim(view, 0))
        turn.most += count
        room -= count
        if taste is not None:
            had[queue] += count * taste.price(queue, view.expected)
        if not lines[queue].has_more:
            del lines[queue]
    return list(turns.values())


def _next(lines: Mapping[int, _Queue], had: Mapping[int, float], taste: QueuePreferences | None) -> int:
    if len(lines) == 1 or taste is None:  # gate: none
        return next(iter(lines))
    if taste.strict:  # gate: other-queues
        return min(lines, key=taste.place)
    return min(lines, key=lambda queue: (had[queue], taste.shares.served(queue), taste.place(queue)))
