"""Spreading: the number of a job's executions that each worker may get now, so that all workers have equally many."""

from collections.abc import Sequence
from functools import lru_cache
from uuid import UUID

import msgspec

from horae.env import Instant
from horae.model.admission.claim_plan import WorkerGroup
from horae.model.admission.placement.placement import fits
from horae.model.admission.placement.spread import PATIENCE, SpreadWorker, bounds
from horae.model.executions.slice import QueuedSlice
from horae.store.script import Fetch, Row, Script, Statement

HOLDERS = Statement(
    "spread_over",
    "SELECT s.id, s.concurrency, s.queues, s.capabilities,"
    " (SELECT coalesce(sum(r.hi - r.lo), 0) FROM running r WHERE r.session = s.id),"
    " (SELECT coalesce(sum(r.hi - r.lo), 0) FROM running r WHERE r.session = s.id AND r.job = $2)"
    " FROM sessions s WHERE s.state = 'live' AND s.namespace = $1",
)


def spread_bounds(among: WorkerGroup, usable: Sequence[QueuedSlice], now: Instant) -> Script[dict[UUID, int] | None]:
    """Return how many of these slices' executions each live session in the group may get.

    Return None if the first slice has waited so long that any worker may take it. This takes no lock, so two servers
    that claim at the same time may each miss the grants of the other.
    """
    if not usable or usable[0].queued_at <= now - PATIENCE:
        return None
    rows = yield Fetch(HOLDERS, (usable[0].namespace, usable[0].job))
    holders = [SpreadWorker(row[0], int(row[5]), int(row[4]), row[1]) for row in rows if _is_among(among, row)]
    return bounds(sum(queued.hi - queued.lo for queued in usable), holders)


def _is_among(among: WorkerGroup, row: Row) -> bool:
    return among.queue in _read(row[2]) and fits(among.requirements, _read(row[3]))


@lru_cache(maxsize=4096)
def _read(text: str) -> frozenset[str]:
    """Decode the queues or capabilities of a session; the results are cached."""
    return frozenset(msgspec.json.decode(text))
