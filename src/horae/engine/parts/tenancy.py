"""Tenancy: namespaces, keys, rates of requests, and the audit trail."""

from typing import Protocol

from horae.engine.base.installation import Backups, StoreReport
from horae.engine.parts.base import BasePart
from horae.engine.parts.part import ServerPart
from horae.engine.tenancy.idempotent_requests import IdempotentRequests
from horae.engine.tenancy.keys import ApiKeys, UserSessions
from horae.engine.tenancy.namespaces import Namespaces
from horae.engine.tenancy.sealed_kinds import SealedKinds
from horae.engine.tenancy.throttle import RequestRates
from horae.model.tenancy.audit import AuditEntry
from horae.model.tenancy.principal import Principal


class AuditTrail(Protocol):
    """Records changes before they begin and after they end, sign-ins, and refusals. A feature implements it."""

    async def append(self, entry: AuditEntry) -> int:
        """Write an entry; return its number in the trail once it is stored."""
        ...

    async def note(self, principal: Principal, address: str, action: str, target: str = "", detail: str = "{}") -> None:
        """Record an action by which a caller without a credential got one, such as a sign-in."""
        ...

    async def deny(self, entry: AuditEntry) -> None:
        """Record that a credential lacks a permission. Repetitions are recorded only now and then."""
        ...

    async def fail(self, action: str, name: str, address: str, error: str) -> None:
        """Record that a sign-in failed; `error` is the error that was answered.

        Repetitions are recorded only now and then.
        """
        ...


class TenancyPart(ServerPart):
    """Namespaces with their keys, sealed values, and backups of the whole store."""

    def __init__(self, base: BasePart, audit: AuditTrail, users: UserSessions | None = None) -> None:
        env, store = base.env, base.store
        self.audit = audit
        self.namespaces = Namespaces(env, store, base.directory, base.hints, base.settings)
        self.keys = ApiKeys(env, store, users)
        self.request_rates = RequestRates(env, base.settings.request_rate)
        self.sealed_kinds = SealedKinds(env, store, base.sealer)
        self.store_report = StoreReport(store, self.sealed_kinds)
        self.idempotent_requests = IdempotentRequests(env, store)
        self.backups = Backups(env, store)
