"""Termination notices: texts by which a cloud, a script or a user announces that this machine will be taken away.

This module only interprets the text; `notice_watch` fetches it. Formats: EC2's `spot/instance-action` ({"action",
"time"}) and `spot/termination-time`, Google's `instance/preempted` (TRUE) and `maintenance-event`, Azure's
`scheduledevents`, and a bare RFC 3339 time. An empty file is a notice, too, so that a script only needs `touch`.
"""

from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec
from msgspec import Struct

from horae.env import SECOND, Instant, Micros
from horae.errors import BadInput
from horae.model.base.instant import format_instant, parse_instant

WELL_KNOWN = {
    "aws": "http://169.254.169.254/latest/meta-data/spot/instance-action",
    "gcp": "http://metadata.google.internal/computeMetadata/v1/instance/preempted",
    "azure": "http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01",
}
PARTING: Micros = 1 * SECOND  # before the announced end, reserved for the last messages to the server
_NO = frozenset({"", "false", "none", "no", "0", "migrate_on_host_maintenance"})
_YES = frozenset({"true", "yes", "1", "terminate_on_host_maintenance"})
_UNDERSTOOD = 'Write an instant in RFC 3339, "true", "false", or a notice in the format of EC2, Google or Azure.'
_LEAVING = frozenset({"preempt", "terminate", "reboot", "redeploy"})  # Azure's events that end a machine


class TerminationNotice(Struct, frozen=True):
    """The announced end of this machine, with its time if known."""

    ends_at: Instant | None = None


def read_notice(text: str, machine: str = "") -> TerminationNotice | None:
    """Read a notice; None if it announces nothing. Raises BadInput for an unknown format.

    Azure lists the events of all machines of a set: `machine` is the name of this one.
    """
    stripped = text.strip()
    if stripped.lower() in _NO:
        return None
    if stripped.lower() in _YES:
        return TerminationNotice()
    if stripped.startswith("{"):
        return _read_document(stripped, machine)
    return TerminationNotice(_instant(stripped))


def _read_document(text: str, machine: str) -> TerminationNotice | None:
    try:
        document = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise BadInput(f"The notice is not JSON: {error}.", _UNDERSTOOD) from None
    if "Events" in document:
        return _soonest(document["Events"], machine)
    if "time" in document:
        return TerminationNotice(_instant(document["time"]))
    if "action" in document or "noticeTime" in document:  # EC2's rebalance recommendation has no time of the end
        return TerminationNotice()
    raise BadInput(f"{text[:60]!r} is not a termination notice.", _UNDERSTOOD)


def _soonest(events: Any, machine: str) -> TerminationNotice | None:
    """Return a notice for Azure's events that end this machine, with their earliest time.

    The notice has no time if one of these events has none.
    """
    ours = [event for event in events if isinstance(event, dict) and _is_ours(event, machine)]
    times = [_instant(event["NotBefore"]) if event.get("NotBefore") else None for event in ours]
    known = [at for at in times if at is not None]
    return TerminationNotice(min(known, default=None) if len(known) == len(times) else None) if ours else None


def _is_ours(event: dict[str, Any], machine: str) -> bool:
    if str(event.get("EventType", "")).lower() not in _LEAVING:
        return False
    named = event.get("Resources") or []
    return not machine or not named or machine in named


def _instant(value: Any) -> Instant:
    """Parse RFC 3339, or the HTTP date that Azure uses."""
    try:
        return parse_instant(str(value))
    except BadInput:
        pass
    try:
        at = parsedate_to_datetime(str(value))
    except (TypeError, ValueError):
        raise BadInput(f"{str(value)[:60]!r} is not a termination notice.", _UNDERSTOOD) from None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * SECOND)


def time_left(notice: TerminationNotice, now: Instant) -> Micros | None:
    """Return the time that work may continue under a notice; None if the notice has no time."""
    return None if notice.ends_at is None else max(0, notice.ends_at - now - PARTING)


def end_text(notice: TerminationNotice) -> str:
    """Return the announced end of the machine, for a log line."""
    return "soon" if notice.ends_at is None else format_instant(notice.ends_at)
