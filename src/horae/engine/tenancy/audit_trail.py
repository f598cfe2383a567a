"""The interface by which the kernel writes to the audit trail. A feature implements it."""

from typing import Protocol

from horae.model.tenancy.audit import AuditEntry
from horae.model.tenancy.principal import Principal


class AuditTrail(Protocol):
    """Records changes before they begin and after they end, sign-ins, and refusals."""

    async def append(self, entry: AuditEntry) -> int:
        """Write an entry; return its number in the trail once it is stored."""
        ...

    async def note(self, principal: Principal, address: str, action: str, target: str = "", detail: str = "{}") -> None:
        """Record an action by which a caller without a credential got one, such as a sign-in."""
        ...

    async def deny(self, entry: AuditEntry) -> None:
        """Record that a credential lacks a permission. Repetitions are recorded only now and then."""
        ...

    async def fail(self, action: str, name: str, address: str, said: str) -> None:
        """Record that a sign-in failed; `said` is the error that was answered.

        Repetitions are recorded only now and then.
        """
        ...
