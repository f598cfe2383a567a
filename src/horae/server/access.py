"""Who may use which route: one table. A route without a row is open to nobody."""

from collections.abc import Mapping

from horae.errors import Forbidden
from horae.server.route import Route

Roles = frozenset[str]

EVERYBODY: Roles = frozenset({"*"})  # also without a credential
ADMIN: Roles = frozenset({"admin"})
WORKER: Roles = frozenset({"admin", "worker"})

ACCESS: Mapping[str, Roles] = {
    "health.live": EVERYBODY,
    "health.ready": EVERYBODY,
    "ui.page": EVERYBODY,
    "ui.file": EVERYBODY,
    "me.sign-in": EVERYBODY,
    "me.code": ADMIN,
    "me.sign-out": WORKER,
    "me.get": WORKER,
    "jobs.create": ADMIN,
    "jobs.list": ADMIN,
    "jobs.get": ADMIN,
    "jobs.replace": ADMIN,
    "jobs.edit": ADMIN,
    "jobs.delete": ADMIN,
    "jobs.pause": ADMIN,
    "jobs.resume": ADMIN,
    "jobs.restore": ADMIN,
    "jobs.rollback": ADMIN,
    "jobs.versions": ADMIN,
    "jobs.dependencies": ADMIN,
    "jobs.explain": ADMIN,
    "jobs.trigger": ADMIN,
    "jobs.executions": ADMIN,
    "jobs.forget-results": ADMIN,
    "circuits.list": ADMIN,
    "circuits.get": ADMIN,
    "circuits.open": ADMIN,
    "circuits.close": ADMIN,
    "circuits.reset": ADMIN,
    "fires.list": ADMIN,
    "triggers.list": ADMIN,
    "triggers.preview": ADMIN,
    "triggers.of-job": ADMIN,
    "triggers.add": ADMIN,
    "triggers.get": ADMIN,
    "triggers.edit": ADMIN,
    "triggers.remove": ADMIN,
    "triggers.pause": ADMIN,
    "triggers.resume": ADMIN,
    "calendars.create": ADMIN,
    "calendars.list": ADMIN,
    "calendars.get": ADMIN,
    "calendars.put": ADMIN,
    "calendars.delete": ADMIN,
    "calendars.versions": ADMIN,
    "calendars.openings": ADMIN,
    "backfills.create": ADMIN,
    "backfills.list": ADMIN,
    "backfills.get": ADMIN,
    "backfills.runs": ADMIN,
    "backfills.pause": ADMIN,
    "backfills.resume": ADMIN,
    "backfills.cancel": ADMIN,
    "executions.submit": ADMIN,
    "executions.list": ADMIN,
    "executions.counts": ADMIN,
    "executions.get": ADMIN,
    "executions.explain": ADMIN,
    "executions.cancel": ADMIN,
    "executions.signal": ADMIN,
    "executions.logs": ADMIN,
    "executions.attempts": ADMIN,
    "events.send": ADMIN,
    "events.list": ADMIN,
    "hooks.get": ADMIN,
    "hooks.make": ADMIN,
    "hooks.end": ADMIN,
    "hooks.receive": EVERYBODY,  # the token and the signature are its credential
    "dlq.list": ADMIN,
    "dlq.groups": ADMIN,
    "dlq.get": ADMIN,
    "dlq.retry": ADMIN,
    "dlq.discard": ADMIN,
    "dlq.replay": ADMIN,
    "dlq.replays": ADMIN,
    "dlq.get-replay": ADMIN,
    "dlq.pause-replay": ADMIN,
    "dlq.resume-replay": ADMIN,
    "dlq.cancel-replay": ADMIN,
    "sessions.register": WORKER,
    "sessions.exchange": WORKER,
    "sessions.submit": WORKER,
    "sessions.remember": WORKER,
    "sessions.steps": WORKER,
    "sessions.wait": WORKER,
    "sessions.close": WORKER,
    "workers.list": ADMIN,
    "workers.get": ADMIN,
    "workers.drain": ADMIN,
    "autoscale.queue": ADMIN,
    "keys.list": ADMIN,
    "keys.create": ADMIN,
    "keys.revoke": ADMIN,
    "namespaces.list": ADMIN,
    "namespaces.quota": ADMIN,
    "namespaces.set-quota": ADMIN,
    "namespaces.usage": ADMIN,
    "servers.list": ADMIN,
    "store.get": ADMIN,
    "audit.executions": ADMIN,
    "audit.repair": ADMIN,
    "audit.fires": ADMIN,
    "backup.read": ADMIN,
    "clock.get": ADMIN,
    "clock.accept": ADMIN,
    "queues.list": ADMIN,
    "queues.get": ADMIN,
    "queues.put": ADMIN,
    "queues.patch": ADMIN,
    "queues.pause": ADMIN,
    "queues.resume": ADMIN,
    "queues.drain": ADMIN,
    "queues.purge": ADMIN,
    "queues.hold": ADMIN,
    "queues.release": ADMIN,
    "queues.window": ADMIN,
    "queues.remove-window": ADMIN,
    "holds.list": ADMIN,
    "holds.open": ADMIN,
    "holds.release": ADMIN,
    "holds.window": ADMIN,
    "holds.remove-window": ADMIN,
    "stream.follow": ADMIN,
    "metrics.read": ADMIN,
    "openapi.read": ADMIN,
}


def is_public(route: Route) -> bool:
    """Whether a route needs no credential."""
    return ACCESS.get(route.name) is EVERYBODY


def authorise(role: str, route: Route) -> None:
    """Refuse a credential whose role has no business with this route."""
    may = ACCESS.get(route.name, frozenset())
    if role not in may:
        needed = min(may, default="admin")
        raise Forbidden(
            f'A key with the role "{role}" may not use {route.method} {route.path}: that takes the role "{needed}".',
            f"Make such a key with `horae keys create NAME --role {needed}`, on the server's machine or with an"
            " administrator's key, and set HORAE_KEY to it.",
        )
