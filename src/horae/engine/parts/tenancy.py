"""Tenancy: namespaces, keys and rates of requests."""

from horae.engine.base.backups import Backups
from horae.engine.base.store_report import StoreReport
from horae.engine.parts.base import BasePart
from horae.engine.parts.part import ServerPart
from horae.engine.tenancy.audit_trail import AuditTrail
from horae.engine.tenancy.idempotent_requests import IdempotentRequests
from horae.engine.tenancy.keys import ApiKeys, UserSessions
from horae.engine.tenancy.namespaces import Namespaces
from horae.engine.tenancy.request_rates import RequestRates
from horae.engine.tenancy.sealed_kinds import SealedKinds


class TenancyPart(ServerPart):
    """Namespaces with their keys, sealed values, and backups of the whole store."""

    def __init__(self, base: BasePart, audit: AuditTrail, users: UserSessions | None = None) -> None:
        env, store = base.env, base.store
        self.audit = audit
        self.namespaces = Namespaces(env, store, base.directory, base.hints, base.settings)
        self.keys = ApiKeys(env, store, users)
        self.request_rates = RequestRates(env, base.settings.request_rate)
        self.sealed_kinds = SealedKinds(env, store, base.sealer)
        self.store_report = StoreReport(env, store, self.sealed_kinds)
        self.idempotent_requests = IdempotentRequests(env, store)
        self.backups = Backups(env, store)
