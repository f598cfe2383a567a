"""What channels are told: one content for all of them, and how each puts it."""

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
MOST_NAMED = 50  # alerts of a group that are told by name
MOST_LINES = 20  # of them, where people read it


class Content(Struct, frozen=True, kw_only=True, rename="camel"):
    """What is told; `type` is alert.firing, alert.reminder, alert.recovered, alert.forgotten or alert.test."""

    type: str
    timestamp: str
    data: dict[str, Any]


class Told(Struct, frozen=True, kw_only=True, rename="camel"):
    """An alert as it is told of."""

    alert_id: UUID | None
    subject: str
    message: str
    since: str
    job_id: UUID | None = None
    execution_id: UUID | None = None


def told_of(
    subject: str,
    message: str,
    since: Instant,
    *,
    alert: UUID | None = None,
    job: UUID | None = None,
    execution: UUID | None = None,
) -> Told:
    """What is told of one alert."""
    return Told(
        alert_id=alert,
        subject=subject,
        message=message,
        since=format_instant(since),
        job_id=job,
        execution_id=execution,
    )


def content_of(
    kind: str,
    members: Sequence[Told],
    *,
    rule: str,
    alert_kind: Kind,
    severity: str,
    at: Instant,
    beyond: int = 0,
    unsaid: int = 0,
) -> str:
    """The body of a webhook, as Standard Webhooks recommend it; e-mails and the rest are made from it.

    Of a group it names as many as it holds, and counts all, also what is `beyond` those that were opened.
    """
    count = len(members) + beyond
    whole = members[0] if count == 1 else _group(members, count, alert_kind)
    data = {
        "alertId": whole.alert_id, "rule": rule, "kind": alert_kind, "severity": severity, "subject": whole.subject,
        "jobId": whole.job_id, "executionId": whole.execution_id, "message": whole.message, "since": whole.since,
        "count": count, **({"alerts": members[:MOST_NAMED]} if count > 1 else {}),
        **({"unsaid": unsaid} if unsaid else {}),
    }  # fmt: skip
    return msgspec.json.encode(Content(type=f"alert.{kind}", timestamp=format_instant(at), data=data)).decode()


def _group(members: Sequence[Told], count: int, kind: Kind) -> Told:
    names = [one.subject for one in members[:MOST_LINES]]
    more = f" and {count - len(names)} more" if count > len(names) else ""
    since = min(one.since for one in members)
    return Told(
        alert_id=None, subject=f"{count} {SUBJECTS_OF[kind]}s", message=f"{', '.join(names)}{more}", since=since
    )


def title_of(content: Content) -> str:
    """One line, as the subject of an e-mail."""
    word = TITLES[content.type.removeprefix("alert.")]
    line = f"[{word}] {content.data['subject']}: {content.data['rule']}"
    return " ".join(line.split())[:200]


def text_of(content: Content, namespace: str) -> str:
    """A few lines for people."""
    data = content.data
    unsaid = data.get("unsaid")
    lines = [
        f"{data['subject']}: {data['message']}.",
        *_named(data),
        *([f"{unsaid} more came and went since the last notice, which said nothing of them."] if unsaid else []),
        "",
        f"rule       {data['rule']} ({data['kind']}, {data['severity']})",
        f"namespace  {namespace}",
        f"since      {data['since']}",
        *([f"execution  {data['executionId']}"] if data["executionId"] else []),
        *([f"alert      {data['alertId']}"] if data["alertId"] else []),
    ]
    return "\n".join(lines) + "\n"


def _named(data: dict[str, Any]) -> list[str]:
    """The first of a group, one by one."""
    if "alerts" not in data:
        return []
    lines = [f"  {one['subject']}: {one['message']}" for one in data["alerts"][:MOST_LINES]]
    left = data["count"] - len(lines)
    return ["", *lines, *([f"  and {left} more: horae alerts list --rule {data['rule']}"] if left else [])]


read_content = msgspec.json.Decoder(Content).decode
