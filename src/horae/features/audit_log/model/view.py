"""The audit log as people read it."""

from typing import Annotated

from msgspec import Meta, Raw

from horae.features.audit_log.model.values import Broken, Link
from horae.model.base.instant import format_instant
from horae.model.base.view import Time, View
from horae.model.tenancy.audit import Outcome


class AuditRow(View, frozen=True, kw_only=True):
    """Who did what to what, when and from where, and what came of it.

    `outcome` is `done`; `refused`, for what the request said; `denied`, for want of a permission; `failed`; or `begun`:
    it is under way, or its server ended before it could tell.
    """

    seq: int
    at: Time
    namespace: str
    actor: Annotated[str, Meta(description="`key:` and a key's id, or `user:` and a name.")]
    actor_name: str
    address: str
    action: Annotated[str, Meta(description="The name of the operation, such as `jobs.edit`.")]
    target: Annotated[str, Meta(description="What it was done to, by its name: `jobs/etl`, `executions/` and an id.")]
    outcome: Outcome
    detail: Annotated[
        Raw,
        Meta(
            description="`changed`: each field before and after; `request` and `path`: what was asked; `status`;"
            " `problem`; `made`: the id of what was made."
        ),
    ]
    hash: Annotated[str, Meta(description="Covers this row and the hash of the row before.")]


class AuditVerdict(View, frozen=True, kw_only=True):
    """Whether the log is whole: `broken` is the first row that is not as it was written."""

    rows: int
    head: str
    signed: Annotated[bool, Meta(description="Whether the head is signed, so that a cut end is noticed.")]
    broken: Broken | None = None


def show_row(link: Link, namespace: str) -> AuditRow:
    """A row as the API shows it."""
    entry = link.entry
    return AuditRow(
        seq=link.seq, at=format_instant(entry.at), namespace=namespace, actor=entry.actor, actor_name=entry.actor_name,
        address=entry.address, action=entry.action, target=entry.target, outcome=entry.outcome,
        detail=Raw(entry.detail.encode()), hash=link.hash.hex(),
    )  # fmt: skip
