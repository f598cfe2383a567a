"""Charges of the shares of fair queues: sums of the executions, or of their durations, that each share was granted.

Each server writes the charges of its own claims and reads those of the other servers.
"""

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
# The sums of a server that runs stay: it adds to them, and a new server reads them to know what was charged before.
FORGET = Statement(
    "forget_charges",
    "DELETE FROM share_charges WHERE at < $1"
    " AND NOT EXISTS (SELECT 1 FROM servers v WHERE v.id = share_charges.server)",
)
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
KEPT = 600 * SECOND  # older charges of servers that have gone are deleted

Share = tuple[int, str]  # queue and share


class QueueUse(Struct, frozen=True):
    """The load of queues, and the workers' capacity for them."""

    running: dict[int, int]  # running executions by lane
    slots: dict[int, int]  # queue -> the slots of the live sessions that serve it


def exchange_charges(
    server: UUID, own: Sequence[tuple[int, str, int]], since: Instant, now: Instant
) -> Script[list[Row]]:
    """Write the charges of this server (queue, share, charge), and return the rows of other servers after `since`."""
    if own:
        rows = [(queue, share, server, charged, now) for queue, share, charged in own]
        update = "ON CONFLICT (queue, share, server) DO UPDATE SET charged = excluded.charged, at = excluded.at"
        yield Insert("share_charges", CHARGES, rows, conflict=update)
    return (yield Fetch(OTHERS, (since, server)))


def forget_charges(before: Instant) -> Script[None]:
    """Delete the charges of servers that have gone, if they were last changed before an instant."""
    yield Fetch(FORGET, (before,))


def queue_use(queues: Mapping[int, tuple[int, str]]) -> Script[QueueUse]:
    """Count the running executions of queues, and the slots of the live sessions that serve them.

    `queues` has the namespace and name of each queue.
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
    """Record that these lanes of shares are in use; each is written at most once an hour."""
    yield ForEach(TOUCH, (("id", "int"), ("at", "bigint")), [(lane, now) for lane in sorted(lanes)])
