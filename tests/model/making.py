"""Generators of slices for tests of pure functions."""

from itertools import pairwise
from uuid import UUID

from hypothesis import strategies as st

from horae.model.executions.slice import QueuedSlice, RunningSlice, WaitingSlice

JOBS = [UUID(int=n << 16) for n in (71, 72)]
PARCELS = [UUID(int=n << 16) for n in (1, 2, 3)]
SESSION = UUID(int=500)
NOW = 1_800_000_000_000_000


def running(parcel=PARCELS[0], lo=0, hi=1, *, attempt=1, job=JOBS[0], **more):
    return RunningSlice(
        parcel=parcel, lo=lo, hi=hi, attempt=attempt, job=job, queue=1, namespace=1,
        session=SESSION, channel=0, n=1, lane=1, rank=7, queued_at=NOW - 30, granted_at=NOW - 20, **more,
    )  # fmt: skip


def queued(parcel=PARCELS[0], lo=0, hi=1, *, job=JOBS[0], **more):
    return QueuedSlice(
        parcel=parcel, lo=lo, hi=hi, job=job, queue=1, namespace=1, **{"lane": 1, "rank": 7, "queued_at": NOW} | more
    )


def waiting(parcel=PARCELS[0], lo=0, hi=1, *, job=JOBS[0], **more):
    return WaitingSlice(parcel=parcel, lo=lo, hi=hi, job=job, queue=1, namespace=1, **{"reason": "retry"} | more)


def items(slice):
    """Return the items of a slice as a set."""
    return {(slice.parcel, item) for item in range(slice.lo, slice.hi)}


@st.composite
def cuts(draw, most=24, gaps=True):
    """Generate ranges of 0..most-1 that do not overlap; with `gaps` some are left out."""
    marks = sorted({0, most} | draw(st.sets(st.integers(1, most - 1), max_size=6)))
    ranges = [(lo, hi) for lo, hi in pairwise(marks) if not gaps or draw(st.booleans())]
    return draw(st.permutations(ranges))
