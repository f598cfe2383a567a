"""The record of a change in the audit log: actor, action, target, time, address and outcome."""

from typing import Literal

from msgspec import Struct

from horae.env import Instant

Outcome = Literal["begun", "done", "refused", "failed", "denied"]


class AuditEntry(Struct, frozen=True, kw_only=True):
    """An entry to be written to the audit log."""

    at: Instant
    namespace: int
    actor: str  # "key:ab12", "user:ada"
    actor_name: str
    address: str  # network address of the client
    action: str  # a route's name: "jobs.edit"
    target: str  # the changed object by its name: "jobs/etl"
    outcome: Outcome
    detail: str  # JSON
    begun: int | None = None  # number of the earlier entry that recorded the start of the same action


def outcome_of(status: int) -> Outcome:
    """Return the outcome for an HTTP status."""
    return "done" if status < 400 else "denied" if status == 403 else "refused" if status < 500 else "failed"
