"""Lanes of the shares of fair queues. A lane is created when the first execution of a share arrives."""

from collections.abc import Collection, Sequence

from msgspec import structs

from horae.env import Instant
from horae.model.executions.submission import NewExecution
from horae.store.base.shelves import Columns
from horae.store.script import ForEach, Script, Statement

FIND = Statement(
    "lanes_of_shares",
    "SELECT given.base, given.share, l.id FROM given JOIN lanes b ON b.id = given.base"
    " JOIN lanes l ON l.queue = b.queue AND l.needs = b.needs AND l.share = given.share",
)
ADD = Statement(
    "add_lanes_of_shares",
    "INSERT INTO lanes (namespace, queue, needs, share, used_at)"
    " SELECT b.namespace, b.queue, b.needs, given.share, given.at FROM given JOIN lanes b ON b.id = given.base"
    " ON CONFLICT (queue, needs, share) DO NOTHING",
)
_SHARE: Columns = (("base", "int"), ("share", "text"), ("at", "bigint"))

Place = tuple[int, str]  # a lane with the same needs, and the share


def lanes_of(places: Collection[Place], now: Instant) -> Script[dict[Place, int]]:
    """Return the lanes of shares, and create those that are missing.

    Concurrent transactions that create the same lane get the same row.
    """
    rows = yield ForEach(FIND, _SHARE, [(*place, now) for place in sorted(places)])
    found = {(base, share): lane for base, share, lane in rows}
    missing = [(*place, now) for place in sorted(places) if place not in found]
    if missing:
        yield ForEach(ADD, _SHARE, missing)
        rows = yield ForEach(FIND, _SHARE, missing)
        found |= {(base, share): lane for base, share, lane in rows}
    return found


def assign_share_lanes(asked: Sequence[NewExecution], now: Instant) -> Script[Sequence[NewExecution]]:
    """Return the same executions, but those of fair queues with the lanes of their shares."""
    places = {(one.envelope.lane, one.share) for one in asked if one.share}
    if not places:
        return asked
    lanes = yield from lanes_of(places, now)
    return [
        structs.replace(one, envelope=structs.replace(one.envelope, lane=lanes[one.envelope.lane, one.share]))
        if one.share
        else one
        for one in asked
    ]
