"""Notices on their way: written with what they tell of, claimed by any server, and settled by who claimed last.

A claim is a lease: a server that dies leaves the notice to others when it ends. `attempts` grows with each claim and is
the fence, so what a slow server says of an old claim changes nothing.
"""

from collections.abc import Iterable, Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.alert import NoticeKind, NoticeState
from horae.store.moves.shelves import Columns
from horae.store.script import Fetch, ForEach, Insert, Row, Script, Statement

_COLUMNS = "id, namespace, alert, rule, channel, kind, content, state, attempts, created_at"
CLAIM = Statement(
    "claim_alert_notices",
    "WITH due AS MATERIALIZED (SELECT id FROM alert_notices WHERE state = 'pending' AND next_at <= $1"
    " ORDER BY next_at, id LIMIT $3 FOR UPDATE SKIP LOCKED)"
    " UPDATE alert_notices SET attempts = attempts + 1, next_at = $2 WHERE id IN (SELECT id FROM due)"
    f" RETURNING {_COLUMNS}",
)
NEXT = Statement("next_alert_notice", "SELECT min(next_at) FROM alert_notices WHERE state = 'pending'")
SETTLE = Statement(
    "settle_alert_notice",
    "UPDATE alert_notices SET state = $3, next_at = $4, last_error = $5, done_at = $6"
    " WHERE id = $1 AND attempts = $2 AND state = 'pending' RETURNING id",
)
OF_ALERTS = Statement(
    "notices_of_alerts",
    "SELECT n.* FROM given CROSS JOIN LATERAL (SELECT alert, channel, kind, state, attempts, last_error,"
    " coalesce(done_at, created_at), id FROM alert_notices WHERE alert = given.alert ORDER BY id DESC LIMIT 50) AS n",
)
FORGET = Statement(
    "forget_alert_notices",
    "WITH old AS MATERIALIZED (SELECT id FROM alert_notices WHERE done_at < $1 LIMIT $2)"
    " DELETE FROM alert_notices WHERE id IN (SELECT id FROM old) RETURNING id",
)
ROW: Columns = (
    ("id", "uuid"), ("namespace", "int"), ("alert", "uuid"), ("rule", "text"), ("channel", "text"), ("kind", "text"),
    ("content", "text"), ("state", "text"), ("attempts", "int"), ("next_at", "bigint"), ("created_at", "bigint"),
)  # fmt: skip
MOST_ERROR = 1000  # characters


class Notice(Struct, frozen=True, kw_only=True):
    """Something that one channel is to be told."""

    id: UUID
    namespace: int
    alert: UUID | None
    rule: str
    channel: str
    kind: NoticeKind
    content: str  # JSON, as `model.alert_notice` makes it
    state: NoticeState = "pending"
    attempts: int = 0
    created_at: Instant = 0


class Delivery(Struct, frozen=True):
    """How a notice fares."""

    channel: str
    kind: NoticeKind
    state: NoticeState
    attempts: int
    error: str
    at: Instant


def _notice(row: Row) -> Notice:
    id, namespace, alert, rule, channel, kind, content, state, attempts, created_at = row
    return Notice(
        id=id, namespace=namespace, alert=alert, rule=rule, channel=channel, kind=kind, content=content, state=state,
        attempts=attempts, created_at=created_at,
    )  # fmt: skip


def put(notices: Iterable[Notice], next_at: Instant, now: Instant) -> Insert:
    """Write notices; `next_at` is now, or the end of the claim of who tries them itself."""
    rows = [
        (n.id, n.namespace, n.alert, n.rule, n.channel, n.kind, n.content, n.state, n.attempts, next_at, now)
        for n in notices
    ]
    return Insert("alert_notices", ROW, rows)


def claim(now: Instant, until: Instant, limit: int) -> Script[list[Notice]]:
    """Take notices that are due, earliest first; nobody else is given them before `until`."""
    return sorted((_notice(row) for row in (yield Fetch(CLAIM, (now, until, limit)))), key=lambda notice: notice.id)


def next_due() -> Script[Instant | None]:
    """When the earliest notice is due, or its claim ends."""
    rows = yield Fetch(NEXT)
    at: Instant | None = rows[0][0]
    return at


def settle(notice: Notice, state: NoticeState, next_at: Instant, error: str, done_at: Instant | None) -> Script[bool]:
    """Say what a try came to; false when somebody else has claimed it since, and then it changes nothing."""
    told = (notice.id, notice.attempts, state, next_at, error[:MOST_ERROR], done_at)
    return bool((yield Fetch(SETTLE, told)))


def of_alerts(ids: Sequence[UUID]) -> Script[dict[UUID, list[Delivery]]]:
    """How the newest notices of alerts fare, oldest first."""
    found: dict[UUID, list[Delivery]] = {id: [] for id in ids}
    rows = yield ForEach(OF_ALERTS, (("alert", "uuid"),), [(id,) for id in ids])
    for alert, *rest, _ in sorted(rows, key=lambda row: row[-1]):
        found[alert].append(Delivery(*rest))
    return found


def forget(before: Instant, limit: int) -> Script[int]:
    """Forget notices that were settled before an instant; how many."""
    return len((yield Fetch(FORGET, (before, limit))))
