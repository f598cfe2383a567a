"""The notices about the alerts that an evaluation has changed, for each channel of the rule.

Few alerts get a notice each; many share one notice.
"""

from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.features.alerts.model.changes import MOST_SINGLE, AlertChanges, EndedAlert, group, notice_count
from horae.features.alerts.model.notification import encode_content, summarize
from horae.features.alerts.model.rule import AlertState, Kind, NoticeKind, Severity
from horae.features.alerts.store.notices import Notice
from horae.features.alerts.store.rules import StoredRule

NewId = Callable[[], UUID]


class Alert(Struct, frozen=True, kw_only=True):
    """An alert as it is stored."""

    id: UUID
    namespace: int
    rule: str
    kind: Kind
    severity: Severity
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


class NoticeWriter:
    """Collects the notices for the channels of a rule in `written`; the caller writes them to the store."""

    def __init__(self, stored: StoredRule, new_id: NewId, now: Instant) -> None:
        self._stored, self._new_id, self._now = stored, new_id, now
        self.written: list[Notice] = []

    @property
    def pending(self) -> int:
        """The number of notices to deliver; notices that another one includes are not counted."""
        return sum(one.state == "pending" for one in self.written)

    def firing(self, alerts: Sequence[Alert], decided: AlertChanges) -> None:
        """Add notices about new alerts; the first has the number of alerts that opened and ended without a notice."""
        for number, some in enumerate(group(alerts, decided.firing_notices)):
            overflow = decided.overflow if len(some) > 1 else 0
            unnotified = self._stored.unnotified if number == 0 else 0
            for channel in self._stored.rule.channels:
                self._write("firing", some, channel, overflow, unnotified)

    def reminders(self, alerts: Sequence[Alert], decided: AlertChanges) -> None:
        for some in group(alerts, decided.reminder_notices):
            for channel in self._stored.rule.channels:
                self._write("reminder", some, channel)

    def ends(self, over: Sequence[tuple[EndedAlert, Alert]], notified: Mapping[UUID, set[str]]) -> None:
        """Add notices about ended alerts, for each channel that got notices about these alerts.

        `notified` has these channels by alert. If the notices of an alert were deleted, the rule's channels are used.
        """
        usual = set(self._stored.rule.channels)
        for channel in sorted(set().union(usual, *notified.values())):
            mine = [(end, alert) for end, alert in over if channel in notified.get(alert.id, usual)]
            recovered = [alert for end, alert in mine if not end.forgotten]
            gone = [structs.replace(alert, message=end.forgotten) for end, alert in mine if end.forgotten]
            self._ends("recovered", recovered, channel)
            self._ends("forgotten", gone, channel)

    def _ends(self, kind: NoticeKind, alerts: Sequence[Alert], channel: str) -> None:
        for some in group(alerts, notice_count(len(alerts), MOST_SINGLE)) if alerts else ():
            self._write(kind, some, channel)

    def _write(
        self, kind: NoticeKind, alerts: Sequence[Alert], channel: str, overflow: int = 0, unnotified: int = 0
    ) -> None:
        """Add one notice for each of the alerts that share a notice.

        The first has the content and is delivered. The others are only there so that each alert has a notice.
        """
        if not alerts:
            return
        rule = self._stored.rule
        members = [
            summarize(one.subject, one.message, one.since, alert=one.id, job=one.job, execution=one.execution)
            for one in alerts
        ]
        content = encode_content(
            kind, members, rule=self._stored.name, alert_kind=rule.kind, severity=rule.severity, at=self._now,
            overflow=overflow, unnotified=unnotified,
        )  # fmt: skip
        ids = [self._new_id() for _ in alerts]
        for number, (notice_id, alert) in enumerate(zip(ids, alerts, strict=True)):
            first = number == 0
            self.written.append(
                Notice(
                    id=notice_id, letter=ids[0], namespace=self._stored.namespace, alert=alert.id,
                    rule=self._stored.name,
                    channel=channel, kind=kind, content=content if first else "",
                    state="pending" if first else "grouped",
                )
            )  # fmt: skip
