"""The audit log as the API shows it."""

from typing import Annotated

from msgspec import Meta, Raw

from horae.features.audit_log.model.values import ChainBreak, Link
from horae.model.base.instant import format_instant
from horae.model.base.view import Time, View
from horae.model.tenancy.audit import Outcome


class AuditRow(View, frozen=True, kw_only=True):
    """An action: its actor, target, time, address and outcome.

    `outcome` is `done`; `refused` if the request was invalid; `denied` if a permission was missing; `failed`; or
    `begun`: the action is in progress, or its server ended before it could log the outcome.
    """

    seq: int
    at: Time
    namespace: str
    actor: Annotated[str, Meta(description="`key:` and a key's id, or `user:` and a name.")]
    actor_name: str
    address: str
    action: Annotated[str, Meta(description="The name of the operation, such as `jobs.edit`.")]
    target: Annotated[str, Meta(description="The changed object: `jobs/etl`, `executions/` and an id.")]
    outcome: Outcome
    detail: Annotated[
        Raw,
        Meta(
            description="`changed`: each changed field before and after; `request` and `path`: the request; `status`"
            " and `problem`: the answer; `made`: the id of the created object."
        ),
    ]
    hash: Annotated[str, Meta(description="The hash of this row and of the previous row's hash.")]


class AuditVerdict(View, frozen=True, kw_only=True):
    """The result of the check of the log. `broken` is the first row that differs from the original, if any."""

    rows: int
    head: str
    signed: Annotated[
        bool, Meta(description="Whether the head is signed, so that missing rows at the end are noticed.")
    ]
    broken: ChainBreak | None = None


def show_row(link: Link, namespace: str) -> AuditRow:
    """Return a row as the API shows it."""
    entry = link.entry
    return AuditRow(
        seq=link.seq, at=format_instant(entry.at), namespace=namespace, actor=entry.actor, actor_name=entry.actor_name,
        address=entry.address, action=entry.action, target=entry.target, outcome=entry.outcome,
        detail=Raw(entry.detail.encode()), hash=link.hash.hex(),
    )  # fmt: skip
