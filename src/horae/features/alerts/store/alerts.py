"""Scripts for the table of alerts. Changes of alerts are written in one transaction with the notices about them."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.features.alerts.model.changes import AlertChanges, OpenAlert, decide_changes
from horae.features.alerts.model.findings import RuleFinding
from horae.features.alerts.store import notices as alert_notices
from horae.features.alerts.store.notice_writer import Alert, NewId, NoticeWriter
from horae.features.alerts.store.rules import LOCK_RULE, SET_PACE, StoredRule, read_rule
from horae.store.base.shelves import Columns
from horae.store.script import Fetch, ForEach, Insert, Row, Script, Statement
from horae.store.tenancy.holdings import Holdings, drops, records

_COLUMNS = (
    "id, namespace, rule, kind, severity, subject, job, execution, state, message, since, last_at, recovered_at, count,"
    " notified_at, acknowledged_at, acknowledged_by"
)
OPEN = Statement(
    "open_alerts_of_rule",
    f"SELECT {_COLUMNS} FROM alerts WHERE namespace = $1 AND rule = $2 AND state = 'firing' ORDER BY subject",
)
FIRING = Statement(
    "firing_alerts",
    "SELECT namespace, severity, count(*) FROM alerts WHERE state = 'firing' GROUP BY namespace, severity",
)
RULES_WITH_OPEN = Statement(
    "rules_with_open_alerts",
    "SELECT given.namespace, given.rule FROM given WHERE EXISTS (SELECT 1 FROM alerts a"
    " WHERE a.namespace = given.namespace AND a.rule = given.rule AND a.state = 'firing')",
    at_once=True,
)
ONE = Statement("alert", f"SELECT {_COLUMNS} FROM alerts WHERE id = $1 AND namespace = $2")
PAGE = Statement(
    "alert_page", f"SELECT {_COLUMNS} FROM alerts WHERE namespace = $1 AND id < $2 ORDER BY id DESC LIMIT $3"
)
FIRING_PAGE = Statement(
    "firing_alert_page",
    f"SELECT {_COLUMNS} FROM alerts WHERE namespace = $1 AND id < $2 AND state = 'firing' ORDER BY id DESC LIMIT $3",
)
JOB_PAGE = Statement(
    "alert_page_of_job",
    f"SELECT {_COLUMNS} FROM alerts WHERE namespace = $1 AND id < $2 AND job = $4 ORDER BY id DESC LIMIT $3",
)
FIRING_BY_RULE = Statement(
    "firing_by_rule", "SELECT rule, count(*) FROM alerts WHERE namespace = $1 AND state = 'firing' GROUP BY rule"
)
REFRESH = Statement(
    "refresh_alerts",
    "UPDATE alerts SET last_at = $5, count = count + 1, message = given.message, execution = given.execution,"
    " notified_at = CASE WHEN given.told THEN $5 ELSE notified_at END"
    " FROM given WHERE alerts.id = given.id AND alerts.state = 'firing'",
)
RECOVER = Statement(
    "recover_alerts",
    "UPDATE alerts SET state = 'recovered', recovered_at = $3, last_at = $3, message = given.message FROM given"
    " WHERE alerts.id = given.id AND alerts.state = 'firing'",
)
END = Statement(
    "end_alerts",
    "UPDATE alerts SET state = 'recovered', recovered_at = $2, last_at = $2 FROM given"
    " WHERE alerts.id = given.id AND alerts.state = 'firing'",
)
ACKNOWLEDGE = Statement(
    "acknowledge_alert",
    "UPDATE alerts SET acknowledged_at = $3, acknowledged_by = $4"
    " WHERE id = $1 AND namespace = $2 AND acknowledged_at IS NULL AND state = 'firing'",
)
ACKNOWLEDGE_ALL = Statement(
    "acknowledge_alerts_of_rule",
    "UPDATE alerts SET acknowledged_at = $3, acknowledged_by = $4"
    " WHERE namespace = $1 AND rule = $2 AND acknowledged_at IS NULL AND state = 'firing' RETURNING id, job",
)
FORGET = Statement(
    "forget_alerts",
    "WITH old AS MATERIALIZED (SELECT id FROM alerts WHERE recovered_at < $1 LIMIT $2)"
    " DELETE FROM alerts WHERE id IN (SELECT id FROM old) RETURNING id",
)
_ROW: Columns = (
    ("id", "uuid"), ("namespace", "int"), ("rule", "text"), ("kind", "text"), ("severity", "text"),
    ("subject", "text"), ("job", "uuid"), ("execution", "uuid"), ("state", "text"), ("message", "text"),
    ("since", "bigint"), ("last_at", "bigint"), ("count", "int"), ("notified_at", "bigint"),
)  # fmt: skip
_REFRESHED: Columns = (("id", "uuid"), ("message", "text"), ("execution", "uuid"), ("told", "bool"))
LAST = UUID(int=(1 << 128) - 1)
HOLDINGS = Holdings(
    drops=drops("alert_rules", "alert_channels", "alerts", "alert_notices"),
    records=(
        records("alert_notices", "id", "namespace = $1 AND created_at < $2 AND state <> 'pending'"),
        records("alerts", "id", "namespace = $1 AND since < $2 AND state <> 'firing'"),
    ),
)


class SettleResult(Struct, frozen=True):
    """The changes that one evaluation of a rule has written."""

    opened: tuple[Alert, ...] = ()
    recovered: tuple[Alert, ...] = ()  # all alerts that ended
    notices: int = 0  # notices to deliver


def _alert(row: Row) -> Alert:
    return Alert(**dict(zip(Alert.__struct_fields__, row, strict=True)))


def open_alerts(namespace: int, rule: str) -> Script[list[Alert]]:
    """Return the firing alerts of a rule."""
    return [_alert(row) for row in (yield Fetch(OPEN, (namespace, rule)))]


def firing() -> Script[dict[tuple[int, str], int]]:
    """Count the firing alerts by namespace and severity."""
    return {(namespace, severity): int(count) for namespace, severity, count in (yield Fetch(FIRING))}


def rules_with_open(rules: Sequence[StoredRule]) -> Script[set[tuple[int, str]]]:
    """Return the rules that have firing alerts, by namespace and name."""
    given = [(stored.namespace, stored.name) for stored in rules]
    rows = (yield ForEach(RULES_WITH_OPEN, (("namespace", "int"), ("rule", "text")), given)) if given else []
    return {(namespace, rule) for namespace, rule in rows}


def firing_by_rule(namespace: int) -> Script[dict[str, int]]:
    """Count the firing alerts of each rule."""
    return {rule: int(count) for rule, count in (yield Fetch(FIRING_BY_RULE, (namespace,)))}


def has_changes(stored: StoredRule, found: Sequence[RuleFinding], opened: Sequence[Alert], now: Instant) -> bool:
    """Return whether the findings of a rule change its alerts.

    Callers check this before `settle`, because most evaluations change nothing and then need no transaction.
    """
    return bool(
        decide_changes(stored.rule, found, [_as_open(alert) for alert in opened], stored.pace, now, stored.unnotified)
    )


def settle(stored: StoredRule, found: Sequence[RuleFinding], new_id: NewId, now: Instant) -> Script[SettleResult]:
    """Open, refresh or end the alerts of a rule by its findings, and write the notices.

    The rule is locked and read again. If its edition is no longer the one that was evaluated, or it is not active,
    nothing changes.
    """
    rows = yield Fetch(LOCK_RULE, (stored.namespace, stored.name))
    present = read_rule(rows[0]) if rows else None
    if present is None or present.state != "active" or present.edition != stored.edition:
        return SettleResult()
    before = yield from open_alerts(stored.namespace, stored.name)
    known = {alert.id: alert for alert in before}
    decided = decide_changes(
        present.rule, found, [_as_open(alert) for alert in before], present.pace, now, present.unnotified
    )
    if not decided:
        return SettleResult()
    opened = [_opened(present, finding, notified, new_id(), now) for finding, notified in decided.opened]
    if opened:
        yield Insert("alerts", _ROW, [_row(alert) for alert in opened])
    yield from _refresh(decided, now)
    if decided.ended:
        rows = [(one.alert.id, one.forgotten or known[one.alert.id].message) for one in decided.ended]
        yield ForEach(RECOVER, (("id", "uuid"), ("message", "text")), rows, (now,))
    writer = NoticeWriter(present, new_id, now)
    fired = [alert for alert in opened if alert.notified_at is not None]
    fired += [_with_message(known[one.id], finding.message) for one, finding in decided.notified]
    writer.firing(fired, decided)
    writer.reminders([_with_message(known[one.id], finding.message) for one, finding in decided.reminded], decided)
    over = [(one, known[one.alert.id]) for one in decided.ended if one.notified]
    if over:
        writer.ends(over, (yield from alert_notices.notified_channels([alert.id for _, alert in over])))
    if writer.written:
        yield alert_notices.put(writer.written, now, now)
    if (decided.pace, decided.unnotified) != (present.pace, present.unnotified):
        yield Fetch(SET_PACE, (stored.namespace, stored.name, decided.pace, decided.unnotified))
    ended = tuple(known[one.alert.id] for one in decided.ended)
    return SettleResult(tuple(opened), ended, writer.pending)


def _refresh(decided: AlertChanges, now: Instant) -> Script[None]:
    notified = {alert.id for alert, _ in (*decided.notified, *decided.reminded)}
    rows = [
        (alert.id, finding.message, finding.execution, alert.id in notified)
        for alert, finding in (*decided.notified, *decided.reminded, *decided.refreshed)
    ]
    if rows:
        yield ForEach(REFRESH, _REFRESHED, rows, (now,))


def _as_open(alert: Alert) -> OpenAlert:
    return OpenAlert(
        id=alert.id, subject=alert.subject, last_at=alert.last_at, notified_at=alert.notified_at,
        acknowledged=alert.acknowledged_at is not None, execution=alert.execution,
    )  # fmt: skip


def _opened(stored: StoredRule, finding: RuleFinding, notified: bool, alert_id: UUID, now: Instant) -> Alert:
    return Alert(
        id=alert_id, namespace=stored.namespace, rule=stored.name, kind=stored.rule.kind, severity=stored.rule.severity,
        subject=finding.subject, job=finding.job, execution=finding.execution, state="firing",
        message=finding.message, since=now, last_at=now, recovered_at=None, count=1,
        notified_at=now if notified else None, acknowledged_at=None, acknowledged_by="",
    )  # fmt: skip


def _row(alert: Alert) -> Row:
    return tuple(getattr(alert, name) for name, _ in _ROW)


def _with_message(alert: Alert, message: str) -> Alert:
    return structs.replace(alert, message=message)


def end(ids: Sequence[UUID], now: Instant) -> Script[None]:
    """End alerts without notices, because their rule no longer covers their subjects."""
    if ids:
        yield ForEach(END, (("id", "uuid"),), [(alert_id,) for alert_id in ids], (now,))


def find(alert_id: UUID, namespace: int) -> Script[Alert | None]:
    """Return an alert of a namespace by its id."""
    rows = yield Fetch(ONE, (alert_id, namespace))
    return _alert(rows[0]) if rows else None


def page(
    namespace: int, before: UUID, limit: int, *, firing: bool = False, job: UUID | None = None
) -> Script[list[Alert]]:
    """Return a page of alerts, newest first: those of a job if `job` is given, otherwise all or only firing alerts."""
    if job is not None:
        rows = yield Fetch(JOB_PAGE, (namespace, before, limit, job))
    else:
        rows = yield Fetch(FIRING_PAGE if firing else PAGE, (namespace, before, limit))
    return [_alert(row) for row in rows]


def acknowledge(alert_id: UUID, namespace: int, by: str, now: Instant) -> Script[Alert | None]:
    """Acknowledge an alert if it is firing and not acknowledged yet. Return it, or None if it does not exist."""
    yield Fetch(ACKNOWLEDGE, (alert_id, namespace, now, by))
    return (yield from find(alert_id, namespace))


def acknowledge_all(namespace: int, rule: str, by: str, now: Instant) -> Script[list[tuple[UUID, UUID | None]]]:
    """Acknowledge all firing alerts of a rule; return the ids and jobs of the alerts that changed."""
    return [(alert_id, job) for alert_id, job in (yield Fetch(ACKNOWLEDGE_ALL, (namespace, rule, now, by)))]


def forget(before: Instant, limit: int) -> Script[int]:
    """Delete at most `limit` alerts that ended before an instant; return how many."""
    return len((yield Fetch(FORGET, (before, limit))))
