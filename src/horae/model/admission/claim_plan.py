"""The choice between lanes: how many executions a claim takes from each lane, and in which order.

A worker chooses between its queues by its own weights or order. A fair queue divides its executions into shares by a
key, such as the job. The share with the least virtual time is next: it has received the least service for its weight.
Within a share, the lane with the lowest rank is next. While other shares wait, a share gets only a quantum of
executions before the choice is made again. If a lane is chosen several times, the plan adds up the numbers, so that a
claim queries each lane once.
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
ASSUMED_AMOUNT = 1 << 20  # assumed number of executions in a lane that was not counted


class WorkerGroup(Struct, frozen=True):
    """The workers of a queue that meet given requirements."""

    queue: str
    requirements: Requirements


class LaneState(Struct, frozen=True, kw_only=True):
    """A server's knowledge of a non-empty lane.

    `jobs` are the jobs whose executions this server has granted from the lane; None stands for any job. A claim that
    only prefetches for certain jobs leaves out a lane if none of them is among its `jobs`.
    """

    lane: int
    low: int = NO_RANK  # lowest rank
    mean: float = 1.0  # mean number of executions in a slice
    jobs: frozenset[UUID] | None = None
    cost: Cost = PLAIN  # the cost of each execution
    spread_over: WorkerGroup | None = None  # workers over which its executions are spread; None: not spread
    limits: tuple[str, ...] = ()  # names of the limits of its queue and its namespace
    queue: int = 0
    share: str | None = None  # the key of its share of a fair queue; None: the queue is not fair
    amount: int = ASSUMED_AMOUNT  # number of its executions
    virtual: float = 0.0  # virtual time of its share
    last_grant: int = 0  # number of the last grant to its share; a later grant has a larger number
    price: float = 0.0  # virtual time that one execution adds
    expected: float = 50_000.0  # expected duration of an execution, in microseconds
    owed: int = 0  # slots reserved for its share and not in use


class QueuePreferences:
    """A worker's choice between its queues: by weights, where no queue starves, or strictly in order.

    Workers with the same preferences share one object, and so the virtual times of their queues.
    """

    def __init__(self, weights: Mapping[int, float], *, strict: bool = False) -> None:
        self.strict = strict
        self.virtual_times: VirtualTimes[int] = VirtualTimes()
        self.set_queues(weights)

    def set_queues(self, weights: Mapping[int, float]) -> None:
        """Replace the queues and their weights; they are given in the worker's order."""
        self.weights = weights
        self._places = {queue: place for place, queue in enumerate(weights)}

    def place(self, queue: int) -> int:
        return self._places.get(queue, len(self._places))

    def price(self, queue: int, expected: float) -> float:
        """Return the virtual time that an execution of this expected duration adds to a queue."""
        return expected / self.weights.get(queue, 1.0)


class LaneClaim(Struct):
    """The most executions that a claim takes from a lane."""

    lane: LaneState
    most: int


class _Share:
    """The lanes of one share, lowest rank first; `left` is the number of executions left in the current lane."""

    def __init__(self, lanes: list[LaneState]) -> None:
        first = lanes[0]
        self.lanes, self.at, self.left = lanes, 0, first.amount
        self.virtual, self.last_grant, self.owed = first.virtual, first.last_grant, first.owed

    @property
    def key(self) -> tuple[bool, float, int, int]:
        return self.owed <= 0, self.virtual, self.last_grant, self.lanes[self.at].low

    @property
    def quantum(self) -> int:
        """Return how many executions the share gets at a time."""
        return quantum(self.lanes[self.at].expected)

    def take(self, most: int) -> tuple[LaneState, int]:
        """Take at most `most` executions from the current lane, and return the lane and their number."""
        state = self.lanes[self.at]
        count = min(most, self.left)
        self.left -= count
        self.owed -= count * state.cost.slots
        self.virtual += count * state.price
        if self.left <= 0:
            self.at += 1
            self.left = self.lanes[self.at].amount if self.at < len(self.lanes) else 0
        return state, count

    @property
    def most_owed(self) -> int:
        """Return how many executions fill the slots that are reserved for the share and not in use."""
        return -(-self.owed // self.lanes[self.at].cost.slots)

    @property
    def has_more(self) -> bool:
        return self.left > 0


class _Queue:
    """The shares of one queue in the order in which they are served; without preferences, of all queues together."""

    def __init__(self, states: Iterable[LaneState]) -> None:
        shares: dict[str | None, list[LaneState]] = {}
        for state in states:
            shares.setdefault(state.share, []).append(state)
        made = (_Share(lanes if len(lanes) == 1 else sorted(lanes, key=_low)) for lanes in shares.values())
        self._line = [(share.key, i, share) for i, share in enumerate(made) if share.has_more]
        heapify(self._line)

    @property
    def has_more(self) -> bool:
        return bool(self._line)

    def take(self, most: int, *, alone: bool) -> tuple[LaneState, int]:
        """Take executions for the share that is next, and return the lane and their number.

        `alone` says that no other queue competes. If no other share waits either, the share gets up to `most`.
        Otherwise it gets at most a quantum. If slots are reserved for it, it also gets at most these slots.
        """
        _, i, share = heappop(self._line)
        if self._line or not alone:
            most = min(most, share.quantum)
            most = min(most, share.most_owed) if share.owed > 0 else most
        state, count = share.take(most)
        if share.has_more:
            heappush(self._line, (share.key, i, share))
        return state, count


def after_claim(state: LaneState, count: int, low: int) -> LaneState:
    """Return a lane after `count` executions were taken from it; `low` is its new lowest rank."""
    return structs.replace(
        state, low=low, amount=max(1, state.amount - count), virtual=state.virtual + count * state.price,
        owed=max(0, state.owed - count * state.cost.slots),
    )  # fmt: skip


def _low(state: LaneState) -> int:
    return state.low


def is_plain(states: Sequence[LaneState], preferences: QueuePreferences | None) -> bool:
    """Return whether ranks alone decide, so that the lanes need no plan."""
    return preferences is None and all(state.share is None for state in states)


def plan_claims(states: Sequence[LaneState], room: int, preferences: QueuePreferences | None = None) -> list[LaneClaim]:
    """Return the lanes to claim from, and how many executions to take from each, at most `room` in total.

    The lanes are in the order in which they were first chosen.
    """
    queues: dict[int, list[LaneState]] = {}
    for state in states:
        queues.setdefault(state.queue if preferences is not None else 0, []).append(state)
    lines = {queue: line for queue, own in queues.items() if (line := _Queue(own)).has_more}
    virtual_times = {
        queue: preferences.virtual_times.virtual(queue) if preferences is not None else 0.0 for queue in lines
    }
    front = sorted((state for state in states if is_in_front(state.low) and state.low != NO_RANK), key=_low)[:room]
    # Other executions were preempted for the items at the front, so these items go first.
    turns: dict[int, LaneClaim] = {state.lane: LaneClaim(state, 1) for state in front}
    room -= len(front)
    while room > 0 and lines:
        queue = _next(lines, virtual_times, preferences)
        state, count = lines[queue].take(
            room, alone=len(lines) == 1 or (preferences is not None and preferences.strict)
        )
        turn = turns.setdefault(state.lane, LaneClaim(state, 0))
        turn.most += count
        room -= count
        if preferences is not None:
            virtual_times[queue] += count * preferences.price(queue, state.expected)
        if not lines[queue].has_more:
            del lines[queue]
    return list(turns.values())


def _next(lines: Mapping[int, _Queue], virtual_times: Mapping[int, float], preferences: QueuePreferences | None) -> int:
    if len(lines) == 1 or preferences is None:  # gate: none
        return next(iter(lines))
    if preferences.strict:  # gate: other-queues
        return min(lines, key=preferences.place)
    return min(
        lines,
        key=lambda queue: (virtual_times[queue], preferences.virtual_times.last_grant(queue), preferences.place(queue)),
    )
