"""The audit log: all actions with actor, target, time and address, as links of a chain.

The hash of each link covers its content and the previous link's hash. Therefore, editing, removing or moving a link
breaks the chain at that place. The head has the length of the chain and is signed, so that missing links at the end
are noticed, too. A head is signed only if the signature before it is valid, so that later links do not hide a forged
head.
"""

import hashlib
from collections.abc import Callable, Iterable
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct

from horae.model.base.instant import format_instant
from horae.model.base.view import Time, View
from horae.model.tenancy.audit import AuditEntry, Outcome

FIRST = b"\0" * 32  # the predecessor of the first link
IsSigned = Callable[[bytes, bytes], bool]  # whether a text has a signature
_encode = msgspec.json.Encoder().encode


class Link(Struct, frozen=True):
    """An entry with its position and hash."""

    seq: int
    entry: AuditEntry
    hash: bytes


class ChainHead(Struct, frozen=True):
    """A place in the chain: the number of links up to it, the last hash, and a signature of both if there is one."""

    seq: int = 0
    hash: bytes = FIRST
    signature: bytes = b""

    @property
    def signed_bytes(self) -> bytes:
        """The bytes that are signed."""
        return b"audit log %d:" % self.seq + self.hash

    def is_signed_by(self, is_signed: IsSigned) -> bool:
        """Return whether the signature is valid. The beginning of the chain needs none."""
        return not self.seq or is_signed(self.signed_bytes, self.signature)


class ChainBreak(Struct, frozen=True, kw_only=True, rename="camel"):
    """The first place where the chain is broken, with the reason."""

    seq: int
    reason: str


def link(entry: AuditEntry, before: ChainHead) -> Link:
    """Return the link that appends an entry to the chain that ends at `before`."""
    seq = before.seq + 1
    return Link(seq, entry, hash_of(seq, entry, before.hash))


def hash_of(seq: int, entry: AuditEntry, before: bytes) -> bytes:
    """Return the hash of a link: over the previous link's hash (`before`) and the content, in one fixed encoding."""
    said = (
        seq, entry.at, entry.namespace, entry.actor, entry.actor_name, entry.address, entry.action, entry.target,
        entry.outcome, entry.detail, entry.begun,
    )  # fmt: skip
    return hashlib.sha256(before + _encode(said)).digest()


class ChainChecker:
    """Checks the chain link by link. `broken` is the first broken place, if any."""

    def __init__(self) -> None:
        self.seq, self.hash = 0, FIRST
        self.broken: ChainBreak | None = None

    def follow(self, links: Iterable[Link]) -> None:
        """Check the next links, up to the first broken one: links after it prove nothing."""
        for one in links:
            if self.broken is not None:
                return
            self._check(one)

    def end(self, head: ChainHead, signed: ChainHead, is_signed: IsSigned) -> None:
        """Compare the end of the chain with the stored head, and check the signature of the last signed place."""
        if self.broken is not None:
            return
        if self.seq < head.seq:
            self._break(self.seq + 1, f"it is missing: the log ends before it, but once had {head.seq} rows")
        elif self.seq > head.seq or self.hash != head.hash:
            self._break(self.seq, f"it does not match the stored head, which is that of row {head.seq}")
        elif not signed.is_signed_by(is_signed):
            self._break(self.seq, "the head is not signed with this installation's key")

    def _check(self, one: Link) -> None:
        wanted = self.seq + 1
        if one.seq != wanted:
            self._break(wanted, f"it is missing: row {one.seq} follows row {self.seq}")
        elif one.hash != hash_of(one.seq, one.entry, self.hash):
            self._break(one.seq, "its hash does not match its content and the row before: one of them was changed")
        else:
            self.seq, self.hash = one.seq, one.hash

    def _break(self, seq: int, reason: str) -> None:
        self.broken = ChainBreak(seq=seq, reason=reason)


class RowFilter(Struct, frozen=True, kw_only=True):
    """The rows to read, newest first. An empty text does not restrict the rows."""

    before: int  # only rows before this position
    since: int  # instant
    until: int  # instant, exclusive
    limit: int
    namespace: int
    action: str = ""  # "jobs.edit", or "jobs." for all actions that begin with it
    actor: str = ""
    target: str = ""  # "jobs/etl" for this object and its parts, or "jobs" for all jobs


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
            " and `problem`: the answer; `created`: the id of the created object."
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
