"""What channels are told: one content for all of them, and how each puts it."""

from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.instant import format_instant

TITLES = {"firing": "ALERT", "reminder": "STILL", "recovered": "RECOVERED", "test": "TEST"}


class Content(Struct, frozen=True, kw_only=True, rename="camel"):
    """What is told of an alert; `type` is alert.firing, alert.reminder, alert.recovered or alert.test."""

    type: str
    timestamp: str
    data: dict[str, Any]


def content_of(
    kind: str,
    *,
    rule: str,
    alert_kind: str,
    severity: str,
    subject: str,
    message: str,
    at: Instant,
    since: Instant,
    alert: UUID | None = None,
    job: UUID | None = None,
    execution: UUID | None = None,
) -> str:
    """The body of a webhook, as Standard Webhooks recommend it; e-mails and the rest are made from it."""
    data = {
        "alertId": alert, "rule": rule, "kind": alert_kind, "severity": severity, "subject": subject, "jobId": job,
        "executionId": execution, "message": message, "since": format_instant(since),
    }  # fmt: skip
    return msgspec.json.encode(Content(type=f"alert.{kind}", timestamp=format_instant(at), data=data)).decode()


def title_of(content: Content) -> str:
    """One line, as the subject of an e-mail."""
    word = TITLES[content.type.removeprefix("alert.")]
    line = f"[{word}] {content.data['subject']}: {content.data['rule']}"
    return " ".join(line.split())[:200]


def text_of(content: Content, namespace: str) -> str:
    """A few lines for people."""
    data = content.data
    lines = [
        f"{data['subject']}: {data['message']}.",
        "",
        f"rule       {data['rule']} ({data['kind']}, {data['severity']})",
        f"namespace  {namespace}",
        f"since      {data['since']}",
        *([f"execution  {data['executionId']}"] if data["executionId"] else []),
        *([f"alert      {data['alertId']}"] if data["alertId"] else []),
    ]
    return "\n".join(lines) + "\n"


read_content = msgspec.json.Decoder(Content).decode
