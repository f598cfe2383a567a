"""The way into running: each row of it is a grant to a session, and begins another attempt.

A claim grants what stands in a lane. What nobody else can know of yet, a submission or a step that has just come to be,
is dealt to exchanges that wait without ever standing in a queue. docs/decisions/0019-doors.md compares the three.
"""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from uuid import UUID

from msgspec import structs

from horae.env import Instant
from horae.model.admission.claim_plan import LaneState, QueuePreferences
from horae.model.admission.keys import AFFINE, CIRCUIT, LIMITED
from horae.model.executions.slice import Queued, Running
from horae.model.fleet.deal import WorkRequest, deal
from horae.store.base import shelves
from horae.store.script import Insert


def granted(s: Queued, lo: int, hi: int, want: WorkRequest, now: Instant, mark: int = 0) -> Running:
    """Items of a queued slice that a want gets: another attempt begins. `mark` says whether limits are about it."""
    return Running(
        parcel=s.parcel, lo=lo, hi=hi, job=s.job, queue=s.queue, namespace=s.namespace,
        attempt=s.attempt + 1,  # guard: claim-counts-attempt
        failures=s.failures, losses=s.losses, alone=s.alone, width=s.width,
        flags=(s.flags & ~LIMITED) | mark, session=want.session,
        channel=want.channel, n=want.n, lane=s.lane, rank=s.rank, queued_at=s.queued_at, granted_at=now,
    )  # fmt: skip


def start_running(running: Iterable[Running]) -> Insert:
    """Put grants on the shelf of what runs; their sessions are locked and live."""
    return shelves.put_running(running)


def deal_unqueued(
    ready: Sequence[Queued],
    wants: Sequence[WorkRequest],
    eligible: Mapping[UUID, Container[int]],
    paused: Collection[UUID],
    now: Instant,
) -> tuple[list[Running], list[Queued]]:
    """What wants get of slices that stand nowhere yet, lane by lane, and what is left for the queue."""
    wants = list(wants)
    running: list[Running] = []
    left: list[Queued] = []
    lanes: dict[int, list[Queued]] = {}
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
    slices: Sequence[Queued],
    wants: Sequence[WorkRequest],
    eligible: Mapping[UUID, frozenset[int]],
    preferences: Mapping[UUID, QueuePreferences | None],
    lanes: Sequence[LaneState],
    arising: Sequence[LaneState],
    opened: Container[int],
    paused: Collection[UUID],
    now: Instant,
) -> tuple[list[Running], list[Queued]] | None:
    """Give steps that have just come to be to those who want work, as a claim would if they stood in their lanes.

    None when they have to stand there: because something else does that these wants may take, so that the ranks of both
    decide; or because a claim looks at more than ranks. `arising` are their lanes, `open` those that neither a hold nor
    a limit is about.
    """
    reach = frozenset[int]().union(*(eligible[want.session] for want in wants))
    if (
        not reach
        or any(view.lane in reach for view in lanes)  # guard: newborn-behind-line
        or any(preference is not None for preference in preferences.values())
    ):
        return None
    plain = {view.lane for view in arising if not view.cost and view.among is None and not view.limits}
    if not all(s.lane in plain and s.lane in opened and not s.flags & AFFINE for s in slices):
        return None
    ordered = sorted(slices, key=lambda s: (s.rank, s.parcel, s.lo))
    return deal_unqueued(ordered, wants, eligible, paused, now)


def with_steps(lanes: Sequence[LaneState], arising: Sequence[LaneState]) -> list[LaneState]:
    """Lanes with those in which steps have just come to stand, least rank first."""
    views = {view.lane: view for view in lanes}
    for view in arising:
        known = views.get(view.lane)
        views[view.lane] = view if known is None else structs.replace(known, low=min(known.low, view.low))
    return sorted(views.values(), key=lambda view: (view.low, view.lane))
