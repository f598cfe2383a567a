"""The content of notices: one for all kinds of channels, and the title and text of e-mails and chat messages."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.features.alerts.model.rule import SUBJECTS_OF, Kind
from horae.model.base.instant import format_instant

TITLES = {
    "firing": "ALERT", "reminder": "STILL", "recovered": "RECOVERED", "forgotten": "FORGOTTEN", "test": "TEST",
}  # fmt: skip
MOST_NAMED = 50  # if alerts share a notice, so many are listed in the content (webhooks)
MOST_LINES = 20  # if alerts share a notice, so many are listed in the text (e-mails and chats)


class NotificationContent(Struct, frozen=True, kw_only=True, rename="camel"):
    """The content of a notice, which is the JSON body of a webhook."""

    type: str  # "alert." and the kind of the notice: firing, reminder, recovered, forgotten or test
    timestamp: str
    data: dict[str, Any]


class AlertSummary(Struct, frozen=True, kw_only=True, rename="camel"):
    """One alert in the content of a notice."""

    alert_id: UUID | None
    subject: str
    message: str
    since: str
    job_id: UUID | None = None
    execution_id: UUID | None = None


def summarize(
    subject: str,
    message: str,
    since: Instant,
    *,
    alert: UUID | None = None,
    job: UUID | None = None,
    execution: UUID | None = None,
) -> AlertSummary:
    """Return the entry about one alert in the content of a notice."""
    return AlertSummary(
        alert_id=alert,
        subject=subject,
        message=message,
        since=format_instant(since),
        job_id=job,
        execution_id=execution,
    )


def encode_content(
    kind: str,
    members: Sequence[AlertSummary],
    *,
    rule: str,
    alert_kind: Kind,
    severity: str,
    at: Instant,
    overflow: int = 0,
    unnotified: int = 0,
) -> str:
    """Return the content of a notice as JSON, in the form that Standard Webhooks recommend.

    If several alerts (`members`) share the notice, its `alerts` lists the first MOST_NAMED, and its `count` has the
    number of all members and of the `overflow` findings that could not open an alert. `unnotified` alerts have opened
    and ended without a notice since the last notice.
    """
    count = len(members) + overflow
    whole = members[0] if count == 1 else _group(members, count, alert_kind)
    data = {
        "alertId": whole.alert_id, "rule": rule, "kind": alert_kind, "severity": severity, "subject": whole.subject,
        "jobId": whole.job_id, "executionId": whole.execution_id, "message": whole.message, "since": whole.since,
        "count": count, **({"alerts": members[:MOST_NAMED]} if count > 1 else {}),
        **({"unnotified": unnotified} if unnotified else {}),
    }  # fmt: skip
    return msgspec.json.encode(
        NotificationContent(type=f"alert.{kind}", timestamp=format_instant(at), data=data)
    ).decode()


def _group(members: Sequence[AlertSummary], count: int, kind: Kind) -> AlertSummary:
    names = [one.subject for one in members[:MOST_LINES]]
    more = f" and {count - len(names)} more" if count > len(names) else ""
    since = min(one.since for one in members)
    noun = "circuit" if kind == "circuit-open" else SUBJECTS_OF[kind]  # a job may have many circuits
    return AlertSummary(alert_id=None, subject=f"{count} {noun}s", message=f"{', '.join(names)}{more}", since=since)


def title_of(content: NotificationContent) -> str:
    """Return the title of a notice, a single line for the subject of an e-mail."""
    word = TITLES[content.type.removeprefix("alert.")]
    line = f"[{word}] {content.data['subject']}: {content.data['rule']}"
    return " ".join(line.split())[:200]


def text_of(content: NotificationContent, namespace: str) -> str:
    """Return the text of an e-mail or chat message."""
    data = content.data
    silent = data.get("unnotified")
    lines = [
        f"{data['subject']}: {data['message']}.",
        *_named(data),
        *([f"Other alerts that opened and ended without a notice since the last one: {silent}."] if silent else []),
        "",
        f"rule       {data['rule']} ({data['kind']}, {data['severity']})",
        f"namespace  {namespace}",
        f"since      {data['since']}",
        *([f"execution  {data['executionId']}"] if data["executionId"] else []),
        *([f"alert      {data['alertId']}"] if data["alertId"] else []),
    ]
    return "\n".join(lines) + "\n"


def _named(data: dict[str, Any]) -> list[str]:
    """Return lines about the first of the alerts that share a notice; no lines if it is about one alert."""
    if "alerts" not in data:
        return []
    lines = [f"  {one['subject']}: {one['message']}" for one in data["alerts"][:MOST_LINES]]
    left = data["count"] - len(lines)
    return ["", *lines, *([f"  and {left} more: horae alerts list --rule {data['rule']}"] if left else [])]


read_content = msgspec.json.Decoder(NotificationContent).decode
