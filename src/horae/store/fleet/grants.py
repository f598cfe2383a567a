"""The way into `running`: each of its rows is a grant to a session, and begins another attempt.

There are three ways. A claim grants slices from lanes. Executions that were just submitted, and steps that were just
created, are granted to waiting exchanges without entering a queue, because no other transaction can see them yet.
docs/decisions/0019-doors.md compares the three.
"""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from uuid import UUID

from msgspec import structs

from horae.env import Instant
from horae.model.admission.claim_plan import LaneState, QueuePreferences
from horae.model.admission.keys import AFFINE, CIRCUIT, LIMITED
from horae.model.executions.slice import QueuedSlice, RunningSlice
from horae.model.fleet.deal import WorkRequest, deal
from horae.store.base import shelves
from horae.store.script import Insert


def granted(s: QueuedSlice, lo: int, hi: int, want: WorkRequest, now: Instant, mark: int = 0) -> RunningSlice:
    """Return the grant of items lo..hi-1 of a queued slice to a session.

    `mark` is LIMITED if limits apply to the lane of the slice, otherwise 0.
    """
    return RunningSlice(
        parcel=s.parcel, lo=lo, hi=hi, job=s.job, queue=s.queue, namespace=s.namespace,
        attempt=s.attempt + 1,  # guard: claim-counts-attempt
        failures=s.failures, losses=s.losses, alone=s.alone, width=s.width,
        flags=(s.flags & ~LIMITED) | mark, session=want.session,
        channel=want.channel, n=want.n, lane=s.lane, rank=s.rank, queued_at=s.queued_at, granted_at=now,
    )  # fmt: skip


def start_running(running: Iterable[RunningSlice]) -> Insert:
    """Return the Insert of grants into `running`; the caller has locked their sessions, which are live."""
    return shelves.put_running(running)


def deal_unqueued(
    ready: Sequence[QueuedSlice],
    wants: Sequence[WorkRequest],
    eligible: Mapping[UUID, Container[int]],
    paused: Collection[UUID],
    now: Instant,
) -> tuple[list[RunningSlice], list[QueuedSlice]]:
    """Distribute slices that are on no shelf yet, lane by lane; return the grants, and the slices still to queue."""
    wants = list(wants)
    running: list[RunningSlice] = []
    left: list[QueuedSlice] = []
    lanes: dict[int, list[QueuedSlice]] = {}
    for queued in ready:
        lanes.setdefault(queued.lane, []).append(queued)
    for lane, slices in lanes.items():
        may = [i for i, want in enumerate(wants) if lane in eligible[want.session]]
        free = [s for s in slices if s.job not in paused and not s.flags & CIRCUIT]  # guard: dealt-without-circuit
        decided = deal(free, [wants[i] for i in may])
        running += [granted(d.slice, d.lo, d.hi, wants[may[d.want]], now) for d in decided.dealt]
        cut = {s.parcel: lo for s, lo in decided.cut}
        whole = {s.parcel for s in decided.whole}
        left += [structs.replace(s, lo=cut.get(s.parcel, s.lo)) for s in slices if s.parcel not in whole]
        for i, want in zip(may, decided.wants, strict=True):
            wants[i] = want
    return running, left


def grant_new_steps(
    slices: Sequence[QueuedSlice],
    wants: Sequence[WorkRequest],
    eligible: Mapping[UUID, frozenset[int]],
    preferences: Mapping[UUID, QueuePreferences | None],
    lanes: Sequence[LaneState],
    arising: Sequence[LaneState],
    opened: Container[int],
    paused: Collection[UUID],
    now: Instant,
) -> tuple[list[RunningSlice], list[QueuedSlice]] | None:
    """Grant steps that were just created, as a claim would do if they were in their lanes.

    Return None when the steps have to be queued first: when other work waits in lanes of these requests, because then
    the ranks decide which work is granted first, and when a claim would have to consider more than ranks. `arising` has
    the states of the steps' lanes; `opened` has the lanes that have no hold or limit.
    """
    reach = frozenset[int]().union(*(eligible[want.session] for want in wants))
    if (
        not reach
        or any(view.lane in reach for view in lanes)  # guard: newborn-behind-line
        or any(preference is not None for preference in preferences.values())
    ):
        return None
    plain = {view.lane for view in arising if not view.cost and view.spread_over is None and not view.limits}
    if not all(s.lane in plain and s.lane in opened and not s.flags & AFFINE for s in slices):
        return None
    ordered = sorted(slices, key=lambda s: (s.rank, s.parcel, s.lo))
    return deal_unqueued(ordered, wants, eligible, paused, now)


def with_steps(lanes: Sequence[LaneState], arising: Sequence[LaneState]) -> list[LaneState]:
    """Return the states of the lanes, including those that new steps have just entered, least rank first."""
    views = {view.lane: view for view in lanes}
    for view in arising:
        known = views.get(view.lane)
        views[view.lane] = view if known is None else structs.replace(known, low=min(known.low, view.low))
    return sorted(views.values(), key=lambda view: (view.low, view.lane))
