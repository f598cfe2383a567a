"""All items that a session holds, and their distribution to slots."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from uuid import UUID

import msgspec

from horae.env import Clock
from horae.errors import HoraeError
from horae.model.admission.placement.placement import Cost
from horae.model.definitions.job import Spec
from horae.model.executions.slice import gaps
from horae.model.fleet.protocol import Answer, Grant, Range
from horae.worker.holding import Chunk, HeldSlice, Item, JobBacklog, StartedItem, StartFence
from horae.worker.pace import DurationEstimates
from horae.worker.secrets import received_secrets

STALL = 0.02  # seconds that an item runs before it counts as blocking the other items of its chunk
OVERDUE = 1.0  # seconds that an unstarted item is held before the worker hands it back
KEEP = 2.0  # seconds that an empty backlog is remembered


class Stock:
    """Slices, backlogs and chunks. Collections iterate in insertion order, so that a simulation is repeatable."""

    def __init__(
        self, clock: Clock, pace: DurationEstimates, slots: int, resources: Mapping[str, int] | None = None
    ) -> None:
        self.slots = slots
        self.busy = 0  # slots used by chunks, and by threads of an ended session that cannot be killed
        self.room = dict(resources or {})  # free amounts of other resources
        self.pace = pace
        self.backlogs: dict[tuple[UUID, int], JobBacklog] = {}
        self.chunks: dict[Chunk, None] = {}
        self._clock = clock
        self._spread: dict[Chunk, None] = {}  # chunks of more than one item
        self._waiting: deque[JobBacklog] = deque()  # backlogs with ready items, in the order of their turns
        self._slices: dict[tuple[UUID, int], list[HeldSlice]] = {}
        self._pressed: dict[JobBacklog, None] = {}  # backlogs with a start timeout
        self._count = 0

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is held: the server has received every outcome, even if a thread still runs."""
        return not self._slices

    def hold(self, grant: Grant, answer: Answer) -> None:
        """Hold a granted slice; a slice that is held already is ignored."""
        backlog = self.backlogs.get((grant.job, grant.version))
        if backlog is None:
            backlog = self.backlogs[grant.job, grant.version] = _backlog_of(grant, answer)
        held_slices = self._slices.setdefault((grant.parcel, grant.attempt), [])
        if any(held_slice.grant.lo < grant.hi and grant.lo < held_slice.grant.hi for held_slice in held_slices):
            return
        self._count += 1
        held_slice = HeldSlice(grant, backlog, self._count, self._clock.monotonic())
        if backlog.references:
            held_slice.received = received_secrets(answer, backlog.references)
        if backlog.start_within is not None:
            self._pressed[backlog] = None
        held_slices.append(held_slice)
        self._offer(backlog)
        backlog.ready.extend([(held_slice, index) for index in range(grant.lo, grant.hi)])

    def slice_of(self, parcel: UUID, item: int, attempt: int) -> HeldSlice | None:
        """Return the slice that holds an item."""
        held_slices = self._slices.get((parcel, attempt), ())
        return next(
            (held_slice for held_slice in held_slices if held_slice.grant.lo <= item < held_slice.grant.hi), None
        )

    def unconfirmed(self) -> Iterator[Range]:
        """Yield the ranges of held items: the server has not received their outcomes."""
        for held_slices in self._slices.values():
            for grant, confirmed in ((held_slice.grant, held_slice.confirmed) for held_slice in held_slices):
                for lo, hi in gaps(grant.lo, grant.hi, confirmed):
                    yield Range(parcel=grant.parcel, lo=lo, hi=hi, attempt=grant.attempt)

    def confirm(self, parcel: UUID, lo: int, hi: int, attempt: int) -> None:
        """Release items whose outcome the server has received."""
        held_slice = self.slice_of(parcel, lo, attempt)
        if held_slice is None:
            return
        held_slice.unconfirmed -= hi - lo
        held_slice.confirmed.append((lo, hi))
        if held_slice.unconfirmed <= 0:
            held_slices = self._slices[parcel, attempt]
            held_slices.remove(held_slice)
            if not held_slices:
                del self._slices[parcel, attempt]

    def take(self, fence: StartFence) -> Chunk | None:
        """Return work for an idle slot: a chunk of the next backlog in turn.

        A backlog whose next chunk has no room yet keeps its turn.
        """
        if self.busy >= self.slots:
            return None
        for _ in range(len(self._waiting)):
            if not self._has_room(self._waiting[0]):
                return None
            backlog = self._waiting.popleft()
            if backlog.ready and self._is_saturated(backlog):
                self._waiting.append(backlog)
            elif backlog.ready:
                return self._chunk(fence, backlog)
        return None

    def finish(self, chunk: Chunk) -> None:
        """Take a chunk back from its slot: its unstarted items return to the backlog."""
        self.put_back(chunk)
        if chunk in self.chunks:
            del self.chunks[chunk]
            self.give_back(chunk.backlog.cost)
        self._spread.pop(chunk, None)
        chunk.backlog.chunks.pop(chunk, None)
        chunk.backlog.spread.pop(chunk, None)
        chunk.backlog.used_at = self._clock.monotonic()

    def put_back(self, chunk: Chunk) -> None:
        """Return the unstarted items of a chunk to the front of their backlog, in order."""
        items = list(chunk.take_back())
        if items:
            self._offer(chunk.backlog)
            chunk.backlog.ready.extendleft(items)

    def empty(self, backlog: JobBacklog) -> Iterator[Item]:
        """Take every unstarted item out of a backlog, including those in chunks."""
        for chunk in backlog.chunks:
            self.put_back(chunk)
        while backlog.ready:
            yield backlog.ready.popleft()

    def take_out(self, backlog: JobBacklog, wanted: Callable[[Item], bool]) -> list[Item]:
        """Take some of the unstarted items out of a backlog, including those in chunks."""
        unstarted = list(self.empty(backlog))
        taken = [item for item in unstarted if wanted(item)]
        left = [item for item in unstarted if not wanted(item)] if taken else unstarted
        if left:
            self._offer(backlog)
            backlog.ready.extend(left)
        return taken

    def withdraw(self, item: Item) -> bool:
        """Take one unstarted item out; return False if it has started or ended."""
        backlog = item[0].backlog
        for items in (backlog.ready, *(chunk.left for chunk in backlog.chunks)):
            try:
                items.remove(item)
            except ValueError:
                continue
            return True
        return False

    def too_late(self) -> list[Item]:
        """Take out unstarted items whose start timeout has passed."""
        late: list[Item] = []
        now = self._clock.monotonic()
        for backlog in list(self._pressed):
            patience = backlog.start_within or 0.0
            unstarted = [*backlog.ready, *(item for chunk in backlog.chunks for item in list(chunk.left))]
            late += [item for item in unstarted if now - item[0].held_at >= patience and self.withdraw(item)]
            if len(late) >= len(unstarted):
                del self._pressed[backlog]
        return late

    def late_from(self) -> float | None:
        """Return the monotonic time of the next start timeout."""
        firsts = (
            items[0][0].held_at + (backlog.start_within or 0.0)
            for backlog in self._pressed
            for items in (backlog.ready, *(list(chunk.left) for chunk in backlog.chunks))
            if items
        )
        return min(firsts, default=None) if self._pressed else None

    def running(self) -> Iterator[tuple[Chunk, StartedItem]]:
        """Yield every item that runs now."""
        for chunk in list(self.chunks):
            begun = chunk.running()
            if begun is not None:
                yield chunk, begun

    def stalled(self) -> list[Chunk]:
        """Return chunks whose running item delays other items, or the report of ended items."""
        now = self._clock.monotonic()
        return [c for c in self._spread if (c.left or c.done) and (b := c.running()) and now - b[2] >= STALL]

    def overdue(self) -> dict[JobBacklog, list[Item]]:
        """Take out items that have waited too long for a slot, because another worker may have an idle slot.

        Call `take` first, so that idle slots of this worker get items before they are taken out.
        """
        since = self._clock.monotonic() - OVERDUE
        for chunk in list(self._spread):
            if chunk.left and len(chunk.left) < chunk.size:
                self._put_back_late(chunk, since)
        waiting = [backlog for backlog in self._waiting if backlog.ready and backlog.ready[0][0].held_at <= since]
        return {backlog: _split(backlog.ready, since) for backlog in waiting}

    def _put_back_late(self, chunk: Chunk, since: float) -> None:
        """Return the unstarted items of a chunk to their backlog, if they have been held since the time `since`."""
        try:
            is_late = chunk.left[0][0].held_at <= since
        except IndexError:  # the slot has just taken the last item
            return
        if is_late:
            self.put_back(chunk)

    def oldest(self, backlog: JobBacklog) -> float:
        """Return the start of the backlog's longest running item; now, if none runs."""
        begun = (b[2] for chunk in backlog.chunks if (b := chunk.running()))
        return min(begun, default=self._clock.monotonic())

    def next_look(self) -> float | None:
        """Return the seconds until `stalled` or `overdue` may have a new result."""
        if any(chunk.left or chunk.done for chunk in self._spread):
            return STALL
        firsts = [backlog.ready[0][0].held_at for backlog in self._waiting if backlog.ready]
        if not firsts:
            return None
        left = min(firsts) + OVERDUE - self._clock.monotonic()
        return left if left > 0 else OVERDUE / 2

    def prune(self) -> None:
        """Forget backlogs that have not been used for a while."""
        since = self._clock.monotonic() - KEEP
        for key, backlog in list(self.backlogs.items()):
            if not backlog.ready and not backlog.chunks and backlog.used_at < since:
                del self.backlogs[key]

    def clear(self) -> None:
        """Forget everything, so that slots find no more items to start."""
        for chunk in self.chunks:
            chunk.left.clear()
        self.backlogs.clear()
        self._waiting.clear()
        self._pressed.clear()
        self._slices.clear()

    def _offer(self, backlog: JobBacklog) -> None:
        """Let a backlog wait for a slot, unless it does so already. Call this before items are added to it."""
        backlog.used_at = self._clock.monotonic()
        if not backlog.ready and backlog not in self._waiting:
            self._waiting.append(backlog)

    def take_up(self, cost: Cost) -> None:
        """Reserve these resources of the worker until they are given back."""
        self.busy += cost.slots
        if cost:
            self.room = cost.left_of(self.room, 1)

    def give_back(self, cost: Cost) -> None:
        """Release reserved resources of the worker."""
        self.busy -= cost.slots
        if cost:
            self.room = cost.left_of(self.room, -1)

    def _has_room(self, backlog: JobBacklog) -> bool:
        """Return whether the next chunk can run beside the running chunks; an idle worker tries it in any case."""
        if not backlog.cost or not backlog.ready or not self.chunks:
            return True
        return backlog.cost.times(self.slots - self.busy, self.room) > 0

    def _is_saturated(self, backlog: JobBacklog) -> bool:
        """Return whether a backlog needs no further slot.

        Tiny executions are run by one thread at a time, unless one of them blocks the others.
        """
        if not backlog.chunks or not self.pace.is_tiny(backlog.job):
            return False
        now = self._clock.monotonic()
        return not all((b := chunk.running()) and now - b[2] >= STALL for chunk in backlog.chunks)

    def _chunk(self, fence: StartFence, backlog: JobBacklog) -> Chunk:
        size = self.pace.chunk_size(backlog.job)
        if not self.pace.is_tiny(backlog.job):
            size = min(size, -(-len(backlog.ready) // (self.slots - self.busy)))
        items = deque([backlog.ready.popleft() for _ in range(min(size, len(backlog.ready)))])
        if backlog.ready:
            self._waiting.append(backlog)
        chunk = Chunk(fence, backlog, items)
        self.chunks[chunk] = backlog.chunks[chunk] = None
        self.take_up(backlog.cost)
        if len(items) > 1:
            self._spread[chunk] = backlog.spread[chunk] = None
        return chunk


def _split(ready: deque[Item], since: float) -> list[Item]:
    """Take out the items that were held already at the time `since`."""
    items = list(ready)
    ready.clear()
    ready.extend(item for item in items if item[0].held_at > since)
    return [item for item in items if item[0].held_at <= since]


def _backlog_of(grant: Grant, answer: Answer) -> JobBacklog:
    definition = answer.jobs.get(f"{grant.job}:{grant.version}")
    if definition is None:
        return JobBacklog(grant.job, grant.version, None, "the server sent no definition of the job")
    try:
        return JobBacklog(grant.job, grant.version, msgspec.json.decode(definition, type=Spec))
    except (msgspec.MsgspecError, HoraeError) as error:
        return JobBacklog(
            grant.job, grant.version, None, f"this worker does not understand the job's definition: {error}"
        )
