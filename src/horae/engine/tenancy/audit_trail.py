"""The audit trail as the kernel writes to it; a feature keeps it."""

from typing import Protocol

from horae.model.tenancy.audit import AuditEntry
from horae.model.tenancy.principal import Principal


class AuditTrail(Protocol):
    """Records changes before they begin and when they have ended, sign-ins, and what was refused."""

    async def append(self, entry: AuditEntry) -> int:
        """Write an entry; return its place once it is stored."""
        ...

    async def note(self, who: Principal, address: str, action: str, target: str = "", detail: str = "{}") -> None:
        """Write what somebody did who came without a credential, and has one now."""
        ...

    async def deny(self, entry: AuditEntry) -> None:
        """Write that a credential lacks a permission; repetitions only now and then."""
        ...

    async def fail(self, action: str, name: str, address: str, said: str) -> None:
        """Write that a sign-in failed; repetitions only now and then."""
        ...
