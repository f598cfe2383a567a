"""The table of notices: written together with their alerts, claimed by any server, settled by the latest claimer.

A claim is a lease: when it ends, other servers may claim the notice. `attempts` grows with each claim and is the fence,
so a late report about an old claim changes nothing. The notices of one alert reach a channel in order: a notice waits
until the earlier ones were delivered or given up. Only the first notice of a group is delivered, for the whole group.
"""

from collections.abc import Iterable, Sequence
from typing import Literal
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.features.alerts.model.rule import NoticeKind, NoticeState
from horae.store.base.shelves import Columns
from horae.store.script import Fetch, ForEach, Insert, Row, Script, Statement

_COLUMNS = "id, letter, namespace, alert, rule, channel, kind, content, state, attempts, created_at"
# A pending notice that must be delivered before: about an alert that this notice is about, too. The order is by kind
# (an alert begins, is reminded of, and ends) and needs no clock; only reminders are ordered by their time.
_BEFORE = (
    "SELECT 1 FROM alert_notices m JOIN alert_notices o ON o.alert = m.alert AND o.channel = n.channel"
    " JOIN alert_notices p ON p.id = o.letter WHERE m.letter = n.id AND n.kind <> 'firing' AND p.state = 'pending'"
    " AND (p.kind = 'firing' OR (p.kind = 'reminder' AND (n.kind <> 'reminder'"
    " OR (p.created_at, p.id) < (n.created_at, n.id))))"
)
CLAIM = Statement(
    "claim_alert_notices",
    "WITH due AS MATERIALIZED (SELECT n.id FROM alert_notices n WHERE n.state = 'pending' AND n.namespace = $4"
    f" AND n.channel = $5 AND n.next_at <= $1 AND NOT EXISTS ({_BEFORE})"
    " ORDER BY n.next_at, n.id LIMIT $3 FOR UPDATE SKIP LOCKED)"
    " UPDATE alert_notices SET attempts = attempts + 1, next_at = $2 WHERE id IN (SELECT id FROM due)"
    f" RETURNING {_COLUMNS}",
)
NEXT = Statement("next_alert_notice", "SELECT min(next_at) FROM alert_notices WHERE state = 'pending'")
# A step of a skip scan: one probe for each channel with pending notices, however many there are.
CHANNEL = Statement(
    "channel_with_notices",
    "SELECT namespace, channel, next_at FROM alert_notices WHERE state = 'pending' AND (namespace, channel) > ($1, $2)"
    " ORDER BY namespace, channel, next_at LIMIT 1",
)
SETTLE = Statement(
    "settle_alert_notice",
    "UPDATE alert_notices SET state = $3, next_at = $4, last_error = $5, done_at = $6"
    " WHERE id = $1 AND attempts = $2 AND state = 'pending' RETURNING id",
)
GIVE_UP = Statement(
    "give_up_notices_of_channel",
    "UPDATE alert_notices SET state = 'failed', last_error = $3, done_at = $4"
    " WHERE namespace = $1 AND channel = $2 AND state = 'pending'",
)
OF_ALERTS = Statement(
    "notices_of_alerts",
    "SELECT n.* FROM given CROSS JOIN LATERAL (SELECT n.alert, n.channel, n.kind, h.state, h.attempts, h.last_error,"
    " coalesce(h.done_at, h.created_at), n.id FROM alert_notices n JOIN alert_notices h ON h.id = n.letter"
    " WHERE n.alert = given.alert ORDER BY n.id DESC LIMIT 50) AS n",
)
HEARD = Statement(
    "channels_that_heard",
    "SELECT n.* FROM given CROSS JOIN LATERAL (SELECT DISTINCT alert, channel FROM alert_notices"
    " WHERE alert = given.alert AND kind IN ('firing', 'reminder')) AS n",
)
FORGET = Statement(
    "forget_alert_notices",
    "WITH old AS MATERIALIZED (SELECT id FROM alert_notices WHERE done_at < $1 LIMIT $2)"
    " DELETE FROM alert_notices WHERE id IN (SELECT id FROM old) RETURNING id",
)
ROW: Columns = (
    ("id", "uuid"), ("letter", "uuid"), ("namespace", "int"), ("alert", "uuid"), ("rule", "text"), ("channel", "text"),
    ("kind", "text"), ("content", "text"), ("state", "text"), ("attempts", "int"), ("next_at", "bigint"),
    ("created_at", "bigint"), ("done_at", "bigint"),
)  # fmt: skip
MOST_ERROR = 1000  # characters
_FIELDS = tuple(_COLUMNS.split(", "))


class Notice(Struct, frozen=True, kw_only=True):
    """A notice of an alert to one channel. `letter` is the id of the first notice of its group."""

    id: UUID
    letter: UUID
    namespace: int
    alert: UUID | None
    rule: str
    channel: str
    kind: NoticeKind
    content: str = ""  # JSON, as `features.alerts.model` makes it; empty if grouped
    state: NoticeState | Literal["grouped"] = "pending"  # grouped: the first of its group has the state
    attempts: int = 0
    created_at: Instant = 0


class PendingChannel(Struct, frozen=True):
    """A channel with pending notices; `next_at` is when the first of them is due."""

    namespace: int
    channel: str
    next_at: Instant


class Delivery(Struct, frozen=True):
    """The state of the delivery of a notice."""

    channel: str
    kind: NoticeKind
    state: NoticeState
    attempts: int
    error: str
    at: Instant


def _notice(row: Row) -> Notice:
    return Notice(**dict(zip(_FIELDS, row, strict=True)))


def put(notices: Iterable[Notice], next_at: Instant, now: Instant) -> Insert:
    """Write notices; `next_at` is now, or the end of the claim if the writer tries them itself."""
    rows = [
        (
            n.id, n.letter, n.namespace, n.alert, n.rule, n.channel, n.kind, n.content, n.state, n.attempts, next_at,
            now, None if n.state == "pending" else now,
        )
        for n in notices
    ]  # fmt: skip
    return Insert("alert_notices", ROW, rows)


def claim(namespace: int, channel: str, now: Instant, until: Instant, limit: int) -> Script[list[Notice]]:
    """Claim due notices of a channel, earliest first; no other server can claim them before `until`."""
    rows = yield Fetch(CLAIM, (now, until, limit, namespace, channel))
    return sorted((_notice(row) for row in rows), key=lambda notice: notice.id)


def channels(limit: int) -> Script[list[PendingChannel]]:
    """Return the channels with pending notices."""
    found: list[PendingChannel] = []
    after = (0, "")
    while len(found) < limit and (rows := (yield Fetch(CHANNEL, after))):
        found.append(PendingChannel(*rows[0]))
        after = (rows[0][0], rows[0][1])
    return found


def next_due() -> Script[Instant | None]:
    """Return when the earliest pending notice is due, or its claim ends."""
    rows = yield Fetch(NEXT)
    at: Instant | None = rows[0][0]
    return at


def settle(notice: Notice, state: NoticeState, next_at: Instant, error: str, done_at: Instant | None) -> Script[bool]:
    """Record the outcome of a try; return false, and change nothing, if the notice was claimed again since."""
    values = (notice.id, notice.attempts, state, next_at, error[:MOST_ERROR], done_at)
    return bool((yield Fetch(SETTLE, values)))


def give_up(namespace: int, channel: str, why: str, now: Instant) -> Script[None]:
    """Mark all pending notices of a channel as failed."""
    yield Fetch(GIVE_UP, (namespace, channel, why, now))


def notified_channels(alerts: Sequence[UUID]) -> Script[dict[UUID, set[str]]]:
    """Return the channels that got notices of each alert; alerts without any are left out."""
    found: dict[UUID, set[str]] = {}
    for alert, channel in (yield ForEach(HEARD, (("alert", "uuid"),), [(alert_id,) for alert_id in sorted(alerts)])):
        found.setdefault(alert, set()).add(channel)
    return found


def deliveries(ids: Sequence[UUID]) -> Script[dict[UUID, list[Delivery]]]:
    """Return the deliveries of the newest notices of alerts, oldest first."""
    found: dict[UUID, list[Delivery]] = {alert_id: [] for alert_id in ids}
    rows = yield ForEach(OF_ALERTS, (("alert", "uuid"),), [(alert_id,) for alert_id in ids])
    for alert, *rest, _ in sorted(rows, key=lambda row: row[-1]):
        found[alert].append(Delivery(*rest))
    return found


def forget(before: Instant, limit: int) -> Script[int]:
    """Delete notices that were settled before an instant; return how many."""
    return len((yield Fetch(FORGET, (before, limit))))
