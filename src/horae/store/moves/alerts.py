"""Alerts: opened, gone on, recovered, acknowledged; each with its notices in the same transaction."""

from collections.abc import Callable, Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.alert import AlertState, Finding
from horae.model.alert_course import Course, Open, course
from horae.model.alert_notice import content_of
from horae.store.moves import alert_notices
from horae.store.moves.alert_notices import Notice
from horae.store.moves.alert_rules import LOCK_RULE, SET_PACE, StoredRule, read_rule
from horae.store.moves.shelves import Columns
from horae.store.script import Fetch, ForEach, Insert, Row, Script, Statement

_COLUMNS = (
    "id, namespace, rule, kind, severity, subject, job, execution, state, message, since, last_at, recovered_at, count,"
    " notified_at, acknowledged_at, acknowledged_by"
)
OPEN = Statement(
    "open_alerts_of_rule",
    f"SELECT {_COLUMNS} FROM alerts WHERE namespace = $1 AND rule = $2 AND state = 'firing'"
    " ORDER BY subject LIMIT 1000",
)
FIRING = Statement(
    "firing_alerts",
    "SELECT namespace, severity, count(*) FROM alerts WHERE state = 'firing' GROUP BY namespace, severity",
)
ALL_OPEN = Statement(
    "open_alerts", f"SELECT {_COLUMNS} FROM alerts WHERE state = 'firing' ORDER BY namespace, id LIMIT 100000"
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
GO_ON = Statement(
    "refresh_alerts",
    "UPDATE alerts SET last_at = $5, count = count + 1, message = given.message, execution = given.execution,"
    " notified_at = CASE WHEN given.told THEN $5 ELSE notified_at END"
    " FROM given WHERE alerts.id = given.id AND alerts.state = 'firing'",
)
RECOVER = Statement(
    "recover_alerts",
    "UPDATE alerts SET state = 'recovered', recovered_at = $2, last_at = $2 FROM given"
    " WHERE alerts.id = given.id AND alerts.state = 'firing'",
)
ACKNOWLEDGE = Statement(
    "acknowledge_alert",
    "UPDATE alerts SET acknowledged_at = $3, acknowledged_by = $4"
    " WHERE id = $1 AND namespace = $2 AND acknowledged_at IS NULL AND state = 'firing'",
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
_GOING_ON: Columns = (("id", "uuid"), ("message", "text"), ("execution", "uuid"), ("told", "bool"))
NewId = Callable[[], UUID]
LAST = UUID(int=(1 << 128) - 1)


class Alert(Struct, frozen=True, kw_only=True):
    """An alert as it is kept."""

    id: UUID
    namespace: int
    rule: str
    kind: str
    severity: str
    subject: str
    job: UUID | None
    execution: UUID | None
    state: AlertState
    message: str
    since: Instant
    last_at: Instant
    recovered_at: Instant | None
    count: int
    notified_at: Instant | None
    acknowledged_at: Instant | None
    acknowledged_by: str


class Settled(Struct, frozen=True):
    """What a look at a rule changed: alerts that are open or over since, and how many notices were written."""

    opened: tuple[Alert, ...] = ()
    recovered: tuple[Alert, ...] = ()
    notices: int = 0


def _alert(row: Row) -> Alert:
    return Alert(**dict(zip(Alert.__struct_fields__, row, strict=True)))


def open_of(namespace: int, rule: str) -> Script[list[Alert]]:
    """The alerts of a rule that are not over."""
    return [_alert(row) for row in (yield Fetch(OPEN, (namespace, rule)))]


def firing() -> Script[dict[tuple[int, str], int]]:
    """How many alerts of each namespace and severity are not over."""
    return {(namespace, severity): int(count) for namespace, severity, count in (yield Fetch(FIRING))}


def all_open() -> Script[dict[tuple[int, str], list[Alert]]]:
    """The alerts of all rules that are not over, by namespace and rule."""
    found: dict[tuple[int, str], list[Alert]] = {}
    for row in (yield Fetch(ALL_OPEN)):
        alert = _alert(row)
        found.setdefault((alert.namespace, alert.rule), []).append(alert)
    return found


def firing_by_rule(namespace: int) -> Script[dict[str, int]]:
    """How many alerts of each rule are not over."""
    return {rule: int(count) for rule, count in (yield Fetch(FIRING_BY_RULE, (namespace,)))}


def settle(stored: StoredRule, found: Sequence[Finding], new_id: NewId, now: Instant) -> Script[Settled]:
    """Let what was found by a rule open, go on or end its alerts, and write the notices of that.

    The rule is locked and compared: what was found by another revision of it, or of a paused one, changes nothing.
    """
    rows = yield Fetch(LOCK_RULE, (stored.namespace, stored.name))
    present = read_rule(rows[0]) if rows else None
    if present is None or present.state != "active" or present.revision != stored.revision:
        return Settled()
    before = yield from open_of(stored.namespace, stored.name)
    known = {alert.id: alert for alert in before}
    decided = course(present.rule, found, [_open(alert) for alert in before], present.pace, now)
    if not decided:
        return Settled()
    opened = [(_opened(present, finding, told, new_id(), now), told) for finding, told in decided.opened]
    if opened:
        yield Insert("alerts", _ROW, [_row(alert) for alert, _ in opened])
    yield from _go_on(decided, now)
    over = [(known[alert.id], told) for alert, told in decided.recovered]
    if over:
        yield ForEach(RECOVER, (("id", "uuid"),), [(alert.id,) for alert, _ in over], (now,))
    notices = [
        *(_notices(present, alert, "firing", new_id, now) for alert, told in opened if told),
        *(_notices(present, known[o.id], "firing", new_id, now, f.message) for o, f in decided.told),
        *(_notices(present, known[o.id], "reminder", new_id, now, f.message) for o, f in decided.reminded),
        *(_notices(present, alert, "recovered", new_id, now) for alert, told in over if told),
    ]
    written = [notice for some in notices for notice in some]
    if written:
        yield alert_notices.put(written, now, now)
    if decided.pace != present.pace:
        yield Fetch(SET_PACE, (stored.namespace, stored.name, decided.pace))
    return Settled(tuple(alert for alert, _ in opened), tuple(alert for alert, _ in over), len(written))


def _go_on(decided: Course, now: Instant) -> Script[None]:
    told = {alert.id for alert, _ in (*decided.told, *decided.reminded)}
    rows = [
        (alert.id, finding.message, finding.execution, alert.id in told)
        for alert, finding in (*decided.told, *decided.reminded, *decided.refreshed)
    ]
    if rows:
        yield ForEach(GO_ON, _GOING_ON, rows, (now,))


def _open(alert: Alert) -> Open:
    return Open(
        id=alert.id, subject=alert.subject, last_at=alert.last_at, notified_at=alert.notified_at,
        acknowledged=alert.acknowledged_at is not None, execution=alert.execution,
    )  # fmt: skip


def _opened(stored: StoredRule, finding: Finding, told: bool, id: UUID, now: Instant) -> Alert:
    return Alert(
        id=id, namespace=stored.namespace, rule=stored.name, kind=stored.rule.kind, severity=stored.rule.severity,
        subject=finding.subject, job=finding.job, execution=finding.execution, state="firing",
        message=finding.message, since=now, last_at=now, recovered_at=None, count=1,
        notified_at=now if told else None, acknowledged_at=None, acknowledged_by="",
    )  # fmt: skip


def _row(alert: Alert) -> Row:
    return tuple(getattr(alert, name) for name, _ in _ROW)


def _notices(
    stored: StoredRule, alert: Alert, kind: str, new_id: NewId, now: Instant, message: str | None = None
) -> list[Notice]:
    """One for each channel of the rule."""
    content = content_of(
        kind, rule=stored.name, alert_kind=alert.kind, severity=alert.severity, subject=alert.subject,
        message=message or alert.message, alert=alert.id, job=alert.job, execution=alert.execution, since=alert.since,
        at=now,
    )  # fmt: skip
    return [
        Notice(
            id=new_id(), namespace=stored.namespace, alert=alert.id, rule=stored.name, channel=channel,
            kind=kind, content=content,  # type: ignore[arg-type]
        )
        for channel in stored.rule.channels
    ]  # fmt: skip


def one(id: UUID, namespace: int) -> Script[Alert | None]:
    rows = yield Fetch(ONE, (id, namespace))
    return _alert(rows[0]) if rows else None


def page(
    namespace: int, before: UUID, limit: int, *, firing: bool = False, job: UUID | None = None
) -> Script[list[Alert]]:
    """Alerts, newest first; of a job, or only those that are not over."""
    if job is not None:
        rows = yield Fetch(JOB_PAGE, (namespace, before, limit, job))
    else:
        rows = yield Fetch(FIRING_PAGE if firing else PAGE, (namespace, before, limit))
    return [_alert(row) for row in rows]


def acknowledge(id: UUID, namespace: int, by: str, now: Instant) -> Script[Alert | None]:
    """Somebody looks after it: nobody is reminded of it any more. The first counts."""
    yield Fetch(ACKNOWLEDGE, (id, namespace, now, by))
    return (yield from one(id, namespace))


def forget(before: Instant, limit: int) -> Script[int]:
    """Forget alerts that were over before an instant; how many."""
    return len((yield Fetch(FORGET, (before, limit))))
