"""Who may use which route: one table. A route without a row is open to nobody."""

from collections.abc import Mapping

from msgspec import Struct

from horae.errors import Forbidden
from horae.model.tenancy.principal import ROLES, Permission, Principal, at_least
from horae.server.route import Route


class Access(Struct, frozen=True):
    """Whom a route is for: credentials of some roles, and of these only those that have a permission."""

    roles: frozenset[str]
    permission: Permission | None = None

    @property
    def least(self) -> str:
        """The role that has to be given to somebody for this, and no more."""
        return next((role for role in BY_MIGHT if role in self.roles), "admin")

    def admits(self, who: Principal) -> bool:
        return who.role in self.roles and (self.permission is None or self.permission in who.permissions)


BY_MIGHT = ("viewer", "operator", "editor", "worker", "admin")
EVERYBODY = Access(frozenset({"*"}))  # also without a credential
ANYBODY = Access(frozenset(ROLES))  # whoever has a credential
VIEW = Access(at_least("viewer"))  # reads
OPERATE = Access(at_least("operator"))  # acts on what is defined: runs it, holds it, ends it
EDIT = Access(at_least("editor"))  # defines
ADMIN = Access(at_least("admin"))  # says who may what
WORKER = Access(at_least("worker"))  # executes
OVERSEE = Access(at_least("viewer"), "installation")  # reads what is of no namespace, or of all
INSTALLATION = Access(at_least("admin"), "installation")  # acts on what is of no namespace, or of all
CLOSED = Access(frozenset())

ACCESS: Mapping[str, Access] = {
    "health.live": EVERYBODY,
    "health.ready": EVERYBODY,
    "ui.page": EVERYBODY,
    "ui.begin": EVERYBODY,
    "ui.file": EVERYBODY,
    "me.sign-in": EVERYBODY,
    "me.ways": EVERYBODY,
    "me.sign-in-with-password": EVERYBODY,
    "me.oidc": EVERYBODY,
    "me.oidc-callback": EVERYBODY,  # what was begun and the provider's answer are its credential
    "me.password": ANYBODY,
    "me.code": VIEW,
    "me.sign-out": ANYBODY,
    "me.get": ANYBODY,
    "overview.get": VIEW,
    "jobs.create": EDIT,
    "jobs.list": VIEW,
    "jobs.get": VIEW,
    "jobs.replace": EDIT,
    "jobs.edit": EDIT,
    "jobs.delete": EDIT,
    "jobs.pause": OPERATE,
    "jobs.resume": OPERATE,
    "jobs.restore": EDIT,
    "jobs.rollback": EDIT,
    "jobs.versions": VIEW,
    "jobs.limits": VIEW,
    "jobs.version": VIEW,
    "jobs.diff": VIEW,
    "jobs.dependencies": VIEW,
    "jobs.explain": VIEW,
    "jobs.trigger": OPERATE,
    "jobs.executions": VIEW,
    "jobs.forget-results": OPERATE,
    "jobs.statistics": VIEW,
    "jobs.days": VIEW,
    "jobs.grid": VIEW,
    "rollouts.get": VIEW,
    "rollouts.put": EDIT,
    "rollouts.promote": EDIT,
    "rollouts.abort": EDIT,
    "apply.all": EDIT,
    "templates.create": EDIT,
    "templates.list": VIEW,
    "templates.get": VIEW,
    "templates.put": EDIT,
    "templates.delete": EDIT,
    "templates.versions": VIEW,
    "circuits.list": VIEW,
    "circuits.get": VIEW,
    "circuits.open": OPERATE,
    "circuits.close": OPERATE,
    "circuits.reset": OPERATE,
    "alerts.list": VIEW,
    "alerts.get": VIEW,
    "alerts.acknowledge": OPERATE,
    "alert-rules.create": EDIT,
    "alert-rules.list": VIEW,
    "alert-rules.get": VIEW,
    "alert-rules.put": EDIT,
    "alert-rules.delete": EDIT,
    "alert-rules.pause": OPERATE,
    "alert-rules.resume": OPERATE,
    "alert-rules.test": OPERATE,
    "alert-rules.acknowledge": OPERATE,
    "alert-channels.create": EDIT,
    "alert-channels.list": VIEW,
    "alert-channels.get": VIEW,
    "alert-channels.put": EDIT,
    "alert-channels.delete": EDIT,
    "alert-channels.test": OPERATE,
    "fires.list": VIEW,
    "fires.count": VIEW,
    "triggers.list": VIEW,
    "triggers.preview": VIEW,
    "yaml.read": VIEW,
    "triggers.of-job": VIEW,
    "triggers.add": EDIT,
    "triggers.get": VIEW,
    "triggers.edit": EDIT,
    "triggers.remove": EDIT,
    "triggers.pause": OPERATE,
    "triggers.resume": OPERATE,
    "calendars.create": EDIT,
    "calendars.list": VIEW,
    "calendars.get": VIEW,
    "calendars.put": EDIT,
    "calendars.delete": EDIT,
    "calendars.versions": VIEW,
    "calendars.openings": VIEW,
    "backfills.create": OPERATE,
    "backfills.list": VIEW,
    "backfills.get": VIEW,
    "backfills.runs": VIEW,
    "backfills.pause": OPERATE,
    "backfills.resume": OPERATE,
    "backfills.cancel": OPERATE,
    "executions.submit": OPERATE,
    "executions.list": VIEW,
    "executions.counts": VIEW,
    "executions.archived": VIEW,
    "executions.get": VIEW,
    "executions.explain": VIEW,
    "executions.cancel": OPERATE,
    "erasures.create": ADMIN,
    "executions.graph": VIEW,
    "executions.pause": OPERATE,
    "executions.resume": OPERATE,
    "executions.signal": OPERATE,
    "executions.rerun": OPERATE,
    "executions.approvals": VIEW,
    "executions.approve": OPERATE,
    "executions.reject": OPERATE,
    "executions.skip-step": OPERATE,
    "executions.complete-step": OPERATE,
    "executions.logs": VIEW,
    "executions.log": VIEW,
    "executions.attempts": VIEW,
    "executions.artifacts": VIEW,
    "executions.artifact": VIEW,
    "events.send": OPERATE,
    "events.list": VIEW,
    "hooks.get": VIEW,
    "hooks.make": EDIT,
    "hooks.end": EDIT,
    "callbacks.receive": EVERYBODY,  # the token is its credential
    "hooks.receive": EVERYBODY,  # the token and the signature are its credential
    "dlq.list": VIEW,
    "dlq.groups": VIEW,
    "dlq.get": VIEW,
    "dlq.retry": OPERATE,
    "dlq.discard": OPERATE,
    "dlq.replay": OPERATE,
    "dlq.replays": VIEW,
    "dlq.get-replay": VIEW,
    "dlq.pause-replay": OPERATE,
    "dlq.resume-replay": OPERATE,
    "dlq.cancel-replay": OPERATE,
    "sessions.register": WORKER,
    "sessions.exchange": WORKER,
    "sessions.submit": WORKER,
    "sessions.remember": WORKER,
    "sessions.steps": WORKER,
    "sessions.wait": WORKER,
    "sessions.close": WORKER,
    "sessions.upload": WORKER,
    "workers.list": VIEW,
    "workers.get": VIEW,
    "workers.drain": OPERATE,
    "autoscale.queue": VIEW,
    "users.list": ADMIN,
    "users.create": ADMIN,
    "users.get": ADMIN,
    "users.edit": INSTALLATION,
    "users.delete": INSTALLATION,
    "users.grant": ADMIN,
    "users.revoke": ADMIN,
    "enrolments.create": ADMIN,
    "enrolments.redeem": EVERYBODY,  # the token is its credential
    "keys.list": ADMIN,
    "keys.create": ADMIN,
    "keys.rotate": ADMIN,
    "keys.revoke": ADMIN,
    "secrets.list": EDIT,  # names, for who refers to them
    "secrets.get": EDIT,
    "secrets.put": ADMIN,
    "secrets.delete": ADMIN,
    "secrets.rotate": INSTALLATION,  # of all namespaces
    "namespaces.list": VIEW,
    "namespaces.create": INSTALLATION,
    "namespaces.get": VIEW,
    "namespaces.edit": ADMIN,
    "namespaces.delete": INSTALLATION,
    "namespaces.erase": ADMIN,  # what is defined in it only with "installation"
    "namespaces.quota": VIEW,
    "namespaces.set-quota": INSTALLATION,  # a tenant does not raise its own
    "namespaces.usage": VIEW,
    "servers.list": OVERSEE,
    "store.get": OVERSEE,
    "audit.log": ADMIN,
    "audit.verify": OVERSEE,
    "audit.executions": OVERSEE,
    "audit.repair": INSTALLATION,
    "audit.fires": VIEW,
    "backup.read": INSTALLATION,
    "clock.get": VIEW,
    "clock.accept": INSTALLATION,
    "queues.list": VIEW,
    "queues.get": VIEW,
    "queues.put": EDIT,
    "queues.patch": EDIT,
    "queues.pause": OPERATE,
    "queues.resume": OPERATE,
    "queues.drain": OPERATE,
    "queues.purge": OPERATE,
    "queues.hold": OPERATE,
    "queues.release": OPERATE,
    "queues.window": OPERATE,
    "queues.remove-window": OPERATE,
    "holds.list": VIEW,
    "holds.open": OPERATE,
    "holds.release": OPERATE,
    "holds.window": OPERATE,
    "holds.remove-window": OPERATE,
    "stream.follow": VIEW,
    "metrics.read": OVERSEE,  # of all namespaces
    "openapi.read": ANYBODY,
    "openapi.protocol": ANYBODY,
}


def is_public(route: Route) -> bool:
    """Whether a route needs no credential."""
    return ACCESS.get(route.name) is EVERYBODY


def is_counted(route: Route) -> bool:
    """Whether a request counts for the rate of its credential: what workers exchange does not."""
    return route.tag != "sessions"


def takes_turn(route: Route) -> bool:
    """Return whether a request waits for its namespace's turn. Exchanges that wait for work do not, nor uploads."""
    return not (is_public(route) or is_watching(route) or route.streams or route.name == "sessions.exchange")


def is_watching(route: Route) -> bool:
    """Whether a route tells of this server itself, also while the store is away."""
    return route.tag == "metrics"


def authorise(who: Principal, route: Route) -> None:
    """Refuse a credential that has no business with this route."""
    may = ACCESS.get(route.name, CLOSED)
    if may.admits(who):
        return
    needed = may.least
    flag = f" --permission {may.permission}" if may.permission else ""
    beyond = f' and the permission "{may.permission}"' if may.permission else ""
    raise Forbidden(
        f'A credential with the role "{who.role}" may not use {route.method} {route.path}: that takes the role'
        f' "{needed}"{beyond}.',
        f"Make such a key with `horae keys create NAME --role {needed}{flag}`, on the server's machine or with an"
        " administrator's key, and set HORAE_KEY to it.",
    )
