"""The audit log: who did what to what, when and from where, as links of a chain.

Each link's hash covers what it says and the hash of the link before, so nothing can be edited, removed or put elsewhere
without breaking the chain at that place. What is missing at its end the head tells, which is signed.
"""

import hashlib
from collections.abc import Callable, Iterable

import msgspec
from msgspec import Struct

from horae.model.tenancy.audit import AuditEntry

FIRST = b"\0" * 32  # what the first link follows
_encode = msgspec.json.Encoder().encode


class Link(Struct, frozen=True):
    """An entry in its place."""

    seq: int
    entry: AuditEntry
    hash: bytes


class ChainHead(Struct, frozen=True):
    """The chain's end: how many links there are, the last one's hash, and a signature of both if somebody can sign."""

    seq: int = 0
    hash: bytes = FIRST
    signature: bytes = b""

    @property
    def said(self) -> bytes:
        """What is signed."""
        return b"audit log %d:" % self.seq + self.hash


class Broken(Struct, frozen=True, kw_only=True, rename="camel"):
    """The first place where the chain does not hold, and why."""

    seq: int
    reason: str


def link(entry: AuditEntry, before: ChainHead) -> Link:
    """Put an entry at the chain's end."""
    seq = before.seq + 1
    return Link(seq, entry, hash_of(seq, entry, before.hash))


def hash_of(seq: int, entry: AuditEntry, before: bytes) -> bytes:
    """The hash of a link: everything it says, in one spelling, after the hash of the one before."""
    said = (
        seq, entry.at, entry.namespace, entry.actor, entry.actor_name, entry.address, entry.action, entry.target,
        entry.outcome, entry.detail, entry.begun,
    )  # fmt: skip
    return hashlib.sha256(before + _encode(said)).digest()


class Checker:
    """Follows the chain link by link; `broken` is the first place where it does not hold."""

    def __init__(self) -> None:
        self.seq, self.hash = 0, FIRST
        self.broken: Broken | None = None

    def follow(self, links: Iterable[Link]) -> None:
        """Look at the next links; what comes after a broken one proves nothing more."""
        for one in links:
            if self.broken is not None:
                return
            self._look(one)

    def end(self, head: ChainHead, is_signed: Callable[[bytes, bytes], bool]) -> None:
        """Compare the end with the head that was kept; nothing signs that of an empty log."""
        if self.broken is not None:
            return
        if self.seq < head.seq:
            self._break(self.seq + 1, f"it is missing: the log ends before it, and had {head.seq} rows")
        elif self.seq > head.seq or self.hash != head.hash:
            self._break(self.seq, f"the head that was kept is another one, of row {head.seq}")
        elif head.seq and not is_signed(head.said, head.signature):
            self._break(self.seq, "the head is not signed with this installation's key")

    def _look(self, one: Link) -> None:
        wanted = self.seq + 1
        if one.seq != wanted:
            self._break(wanted, f"it is missing: row {one.seq} follows row {self.seq}")
        elif one.hash != hash_of(one.seq, one.entry, self.hash):
            self._break(one.seq, "its hash does not follow from what it says and from the row before: one was changed")
        else:
            self.seq, self.hash = one.seq, one.hash

    def _break(self, seq: int, reason: str) -> None:
        self.broken = Broken(seq=seq, reason=reason)


class RowFilter(Struct, frozen=True, kw_only=True):
    """The rows to read, newest first."""

    before: int
    since: int
    until: int
    limit: int
    namespace: int
    action: str = ""  # "jobs.edit", or "jobs." for all that begin so
    actor: str = ""
    target: str = ""  # "jobs/etl" and what it holds, or "jobs" for all of a noun
