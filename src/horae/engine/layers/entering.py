"""Who is let in: keys, people and how they sign in, namespaces, what is told of them, and copies of the whole."""

from horae.engine.base.backups import Backups
from horae.engine.fleet.enrolments import Enrolments
from horae.engine.layers.seeing import Seeing
from horae.engine.settings import EngineSettings
from horae.engine.tenancy.keys import Keys
from horae.engine.tenancy.namespace_ends import NamespaceEnds
from horae.engine.tenancy.namespace_erasures import NamespaceErasures
from horae.engine.tenancy.namespaces import Namespaces
from horae.engine.tenancy.repeats import Repeats
from horae.engine.tenancy.request_rates import RequestRates
from horae.env import Env
from horae.features.audit_log.engine import AuditLog
from horae.features.users.engine.oidc import Oidc
from horae.features.users.engine.passwords import Passwords
from horae.features.users.engine.sign_ins import SignIns
from horae.features.users.engine.users import People
from horae.store.contract import Store


class Entering(Seeing):
    """Tenants, and those who come to them."""

    def __init__(self, env: Env, store: Store, settings: EngineSettings) -> None:
        super().__init__(env, store, settings)
        self.namespaces = Namespaces(env, store, self.directory, self.hints, settings)
        self.keys = Keys(env, store)
        self.namespace_erasures = NamespaceErasures(
            env,
            store,
            self.namespaces,
            self.jobs,
            self.backfills,
            self.replays,
            self.keys,
            NamespaceEnds(store, self._session_asked),
            self.archive,
        )
        self.repeats = Repeats(env, store)
        self.request_rates = RequestRates(env, settings.request_rate)
        self.enrolments = Enrolments(env, store)
        passwords = Passwords()
        self.sign_ins = SignIns(env, store, passwords, settings.session_idle, settings.session_life)
        self.keys.people = self.sign_ins
        self.people = People(env, store, passwords, self.sign_ins)
        callbacks = self.callbacks
        self.oidc = Oidc(env, store, self.sign_ins, settings.oidc, lambda: callbacks.secret) if settings.oidc else None
        self.audit_log = AuditLog(env, store, self.sealer)
        self.backups = Backups(env, store)
