"""What is recorded of a change: who did what to what, when, from where, and how it ended."""

from typing import Literal

from msgspec import Struct

from horae.env import Instant

Outcome = Literal["begun", "done", "refused", "failed", "denied"]


class AuditEntry(Struct, frozen=True, kw_only=True):
    """What is to be written."""

    at: Instant
    namespace: int
    actor: str  # "key:ab12", "user:ada"
    actor_name: str
    address: str  # from where
    action: str  # a route's name: "jobs.edit"
    target: str  # the thing by its name: "jobs/etl"
    outcome: Outcome
    detail: str  # JSON
    begun: int | None = None  # the link that says that this was begun


def outcome_of(status: int) -> Outcome:
    """Return what an answer's status says of what was asked."""
    return "done" if status < 400 else "denied" if status == 403 else "refused" if status < 500 else "failed"
