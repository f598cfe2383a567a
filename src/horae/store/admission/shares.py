"""Charges of the shares of fair queues: each server writes its own rows and reads those of the others."""

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import SECOND, Instant
from horae.store.base.shelves import Columns
from horae.store.script import Fetch, ForEach, Insert, Row, Script, Statement

CHARGES: Columns = (
    ("queue", "int"), ("share", "text"), ("server", "uuid"), ("charged", "bigint"), ("at", "bigint"),
)  # fmt: skip
OTHERS = Statement(
    "charges_of_others",
    "SELECT queue, share, server, charged, at FROM share_charges WHERE at > $1 AND server <> $2 ORDER BY at",
)
FORGET = Statement("forget_charges", "DELETE FROM share_charges WHERE at < $1")
RUNNING = Statement(
    "running_by_lane",
    "SELECT r.lane, sum(r.hi - r.lo) FROM given JOIN running r ON r.queue = given.queue GROUP BY r.lane",
)
SLOTS = Statement(
    "slots_by_queues", "SELECT namespace, queues, sum(concurrency) FROM sessions WHERE state = 'live'"
    " GROUP BY namespace, queues",
)  # fmt: skip
TOUCH = Statement(
    "touch_lanes",
    "UPDATE lanes SET used_at = given.at FROM given WHERE lanes.id = given.id AND lanes.share <> ''"
    " AND lanes.used_at < given.at - 3600000000",
)
LATE = 5 * SECOND  # a row may become visible this much later than its `at`
KEPT = 600 * SECOND

Share = tuple[int, str]  # queue and share


class QueueUse(Struct, frozen=True):
    """Running executions by lane, and the number of slots by queue."""

    running: dict[int, int]
    slots: dict[int, int]


def exchange_charges(
    server: UUID, own: Sequence[tuple[int, str, int]], since: Instant, now: Instant
) -> Script[list[Row]]:
    """Write the charges of this server, and return the rows that others wrote since."""
    if own:
        rows = [(queue, share, server, charged, now) for queue, share, charged in own]
        update = "ON CONFLICT (queue, share, server) DO UPDATE SET charged = excluded.charged, at = excluded.at"
        yield Insert("share_charges", CHARGES, rows, conflict=update)
        yield Fetch(FORGET, (now - KEPT,))
    return (yield Fetch(OTHERS, (since, server)))


def queue_use(queues: Mapping[int, tuple[int, str]]) -> Script[QueueUse]:
    """Count the running executions of these queues, given with namespace and name, and the slots of live sessions that
    serve them.
    """
    rows = yield ForEach(RUNNING, (("queue", "int"),), [(queue,) for queue in sorted(queues)])
    running = {lane: int(count) for lane, count in rows}
    slots = dict.fromkeys(queues, 0)
    for namespace, names, count in (yield Fetch(SLOTS)):
        served = set(msgspec.json.decode(names))
        for queue, (own, name) in queues.items():
            slots[queue] += int(count) if namespace == own and name in served else 0
    return QueueUse(running, slots)


def touch(lanes: Collection[int], now: Instant) -> Script[None]:
    """Record that these lanes are in use, at most once an hour each."""
    yield ForEach(TOUCH, (("id", "int"), ("at", "bigint")), [(lane, now) for lane in sorted(lanes)])
