"""Scripts for the table of notices. A notice is written together with its alert, and any server may claim and send it.

A claim is a lease: when it ends, other servers may claim the notice. `attempts` grows with each claim and identifies
it, so that a late report about an old claim changes nothing. The notices about one alert reach a channel in order: a
notice waits until the earlier ones were delivered or given up. If several alerts share a notice (a group), each has a
row, but only the first row is delivered, for all of them.
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
# Finds a pending notice that must be delivered before the notice `n`, because both are about the same alert. The order
# is by kind (first "firing", then reminders, then the end of the alert) and needs no clock. Only several reminders are
# ordered by time.
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
# A step of a skip scan: it jumps to the next channel by an index, so its cost does not depend on the number of notices.
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
RELEASE = Statement(
    "release_alert_notice",
    "UPDATE alert_notices SET next_at = $3 WHERE id = $1 AND attempts = $2 AND state = 'pending'",
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
NOTIFIED_CHANNELS = Statement(
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
START = (0, "")
_FIELDS = tuple(_COLUMNS.split(", "))


class Notice(Struct, frozen=True, kw_only=True):
    """A notice about an alert for one channel."""

    id: UUID
    letter: UUID  # the notice that is delivered: its own id, or the id of the first notice of its group
    namespace: int
    alert: UUID | None
    rule: str
    channel: str
    kind: NoticeKind
    content: str = ""  # JSON of a `NotificationContent`; empty if grouped
    state: NoticeState | Literal["grouped"] = "pending"  # grouped: the first notice of its group has the state
    attempts: int = 0
    created_at: Instant = 0


class PendingChannel(Struct, frozen=True):
    """A channel with pending notices; `next_at` is the earliest time at which one of them may be claimed."""

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
    """Return the Insert of notices.

    `next_at` is when they may be claimed: now, or if the caller sends them itself, the end of its claim.
    """
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


def channels(after: tuple[int, str], limit: int) -> Script[list[PendingChannel]]:
    """Return at most `limit` channels with pending notices, in the order of their namespaces and names."""
    found: list[PendingChannel] = []
    while len(found) < limit and (rows := (yield Fetch(CHANNEL, after))):
        found.append(PendingChannel(*rows[0]))
        after = (rows[0][0], rows[0][1])
    return found


def next_due() -> Script[Instant | None]:
    """Return the earliest time at which a pending notice may be claimed; None if no notice is pending."""
    rows = yield Fetch(NEXT)
    at: Instant | None = rows[0][0]
    return at


def settle(notice: Notice, state: NoticeState, next_at: Instant, error: str, done_at: Instant | None) -> Script[bool]:
    """Record the outcome of a try. If the notice was claimed again meanwhile, change nothing and return False."""
    values = (notice.id, notice.attempts, state, next_at, error[:MOST_ERROR], done_at)
    return bool((yield Fetch(SETTLE, values)))


def release(notice: Notice, now: Instant) -> Script[None]:
    """End the claim of a notice, so that any server may claim it now."""
    yield Fetch(RELEASE, (notice.id, notice.attempts, now))


def give_up(namespace: int, channel: str, why: str, now: Instant) -> Script[None]:
    """Mark all pending notices of a channel as failed, with the error `why`."""
    yield Fetch(GIVE_UP, (namespace, channel, why, now))


def notified_channels(alerts: Sequence[UUID]) -> Script[dict[UUID, set[str]]]:
    """Return, for each alert, the channels with notices about its beginning; alerts without notices are left out."""
    found: dict[UUID, set[str]] = {}
    for alert, channel in (
        yield ForEach(NOTIFIED_CHANNELS, (("alert", "uuid"),), [(alert_id,) for alert_id in sorted(alerts)])
    ):
        found.setdefault(alert, set()).add(channel)
    return found


def deliveries(ids: Sequence[UUID]) -> Script[dict[UUID, list[Delivery]]]:
    """Return the deliveries of the newest 50 notices of each alert, oldest first."""
    found: dict[UUID, list[Delivery]] = {alert_id: [] for alert_id in ids}
    rows = yield ForEach(OF_ALERTS, (("alert", "uuid"),), [(alert_id,) for alert_id in ids])
    for alert, *rest, _ in sorted(rows, key=lambda row: row[-1]):
        found[alert].append(Delivery(*rest))
    return found


def forget(before: Instant, limit: int) -> Script[int]:
    """Delete at most `limit` notices that were delivered or given up before an instant; return how many."""
    return len((yield Fetch(FORGET, (before, limit))))
