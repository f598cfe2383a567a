"""Tenants with all kinds of objects, and all requests that can name another tenant's objects, for each API operation.

The tables here provide the values for parts of paths, queries and bodies. An operation that the tables do not cover
fails the test: a developer who adds a route must say which of its values can name another tenant's objects.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any
from uuid import UUID, uuid5

import httpx2
from msgspec import Struct

from horae.engine.server_node import ServerNode
from horae.features.alerts.part import AlertsPart
from horae.model.base.ids import parcel_of
from horae.model.base.instant import format_instant
from horae.model.fleet.protocol import PROTOCOL

Api = httpx2.AsyncClient
Values = Mapping[str, str]
API = "/api/v1"
HOUR = 3_600_000_000
GHOST = UUID("0198c5a0-0000-7000-8000-00000000f00d")


class Tenant(Struct):
    """A namespace with an administrator, a worker, and the names of all its objects."""

    name: str
    id: int
    api: Api
    worker: Api
    values: dict[str, str]


def secret(name: str) -> str:
    """Return a text that occurs in all objects of a tenant, and in no other data."""
    return f"what only {name} knows"


async def ok(answer: httpx2.Response) -> Any:
    assert answer.status_code < 300, answer.text
    return answer.json() if answer.content else None


async def found(node: ServerNode, connect: Callable[..., Api], name: str) -> Tenant:
    """Create a namespace and its users."""
    await node.tenancy.namespaces.create({"name": name, "description": secret(name)})
    id = next(one.id for one in node.base.directory.namespaces.values() if one.name == name)
    admin = (await node.tenancy.keys.create(id, "admin", "admin")).text
    worker = (await node.tenancy.keys.create(id, "worker", "worker")).text
    people = [connect(authorization=f"Bearer {key}") for key in (admin, worker)]
    return Tenant(name, id, *people, values={"namespace": name})


async def furnish(node: ServerNode, tenant: Tenant) -> None:
    """Create one object of each kind in a namespace, with names that begin with its own."""
    api, mark, told = tenant.api, tenant.name, secret(tenant.name)
    values = tenant.values | {
        "queue": f"{mark}-queue", "calendar": f"{mark}-calendar", "template": f"{mark}-template", "file": "out.txt",
        "job_name": f"{mark}-job", "cron": f"{mark}-cron", "hook": f"{mark}-hook", "event": f"{mark}-event",
        "flow_name": f"{mark}-flow", "step": "ask", "version": "1", "worker": f"{mark}-worker", "tag": f"{mark}-tag",
        "signal": f"{mark}-signal", "secret": f"{mark}-secret", "user": f"{mark}-user@{mark}",
        "rule": f"{mark}-rule", "channel": f"{mark}-channel",
    }  # fmt: skip
    await ok(await api.put(f"{API}/queues/{values['queue']}", json={"policy": "fifo"}))
    dates = {"description": told, "dates": ["2031-12-24"]}
    await ok(await api.put(f"{API}/calendars/{values['calendar']}", json=dates))
    await ok(await api.put(f"{API}/secrets/{values['secret']}", json={"value": told}))
    template = {"parameters": {"x": {"type": "string"}}, "job": {"command": ["true", "${with.x}"], "description": told}}
    await ok(await api.put(f"{API}/templates/{values['template']}", json=template))
    job = {
        "name": values["job_name"], "command": ["true"], "description": told, "queue": values["queue"],
        "params": {"told": told}, "tags": [values["tag"]], "circuit": {"failures": "50%"}, "cache": {"ttl": "1d"},
        "triggers": [
            {"name": values["cron"], "cron": "0 * * * *"},
            {"name": values["hook"], "event": values["event"], "webhook": True},
        ],
    }  # fmt: skip
    values["job"] = (await ok(await api.post(f"{API}/jobs", json=job)))["jobId"]
    await ok(await api.post(f"{API}/jobs/{values['job']}/triggers/{values['hook']}/webhook", json={}))
    flow = {"name": values["flow_name"], "workflow": {"steps": [{"name": "ask", "approval": {"message": told}}]}}
    values["flow_job"] = (await ok(await api.post(f"{API}/jobs", json=flow)))["jobId"]
    await ok(await api.put(f"{API}/jobs/{values['job']}/rollout", json={"change": {"priority": 7}, "share": "10%"}))
    tenant.values = values
    await _run(node, tenant)
    await ok(await api.post(f"{API}/events", json={"name": values["event"], "payload": {"told": told}}))
    past = {"from": format_instant(node.env.now() - 5 * HOUR), "to": format_instant(node.env.now() - HOUR)}
    values["backfill"] = (await ok(await api.post(f"{API}/backfills", json={"job": values["job"], **past})))[
        "backfillId"
    ]
    slow = {"filter": {"job": values["job"]}, "rate": "1/1d"}
    values["replay"] = (await ok(await api.post(f"{API}/dlq/replays", json=slow)))["replayId"]
    values["key"] = (await ok(await api.post(f"{API}/keys", json={"name": told, "role": "viewer"})))["keyId"]
    user = {"name": values["user"], "password": told, "role": "viewer"}
    await ok(await api.post(f"{API}/users", json=user))
    hold = {"for": "1h", "reason": told}
    await ok(await api.post(f"{API}/queues/{values['queue']}/hold", json=hold))
    await ok(await api.put(f"{API}/windows/{values['calendar']}", json={"reason": told}))
    await ok(await api.post(f"{API}/jobs/{values['job']}/circuit/open", json={"reason": told}))
    channel = {"kind": "webhook", "url": "https://horae.test/", "description": told}
    await ok(await api.put(f"{API}/alert-channels/{values['channel']}", json=channel))
    rule = {"kind": "circuit-open", "channels": [values["channel"]], "description": told}
    await ok(await api.put(f"{API}/alert-rules/{values['rule']}", json=rule))
    await node.part(AlertsPart).watch.step()
    values["alert"] = (await ok(await api.get(f"{API}/alerts")))["items"][0]["alertId"]


async def _run(node: ServerNode, tenant: Tenant) -> None:
    """Create a failed execution, one with a log and a file, a waiting workflow, and a queued execution."""
    values, told, queue = tenant.values, secret(tenant.name), tenant.values["queue"]
    presence = {"protocol": PROTOCOL, "worker": values["worker"], "concurrency": 1, "queues": [queue]}
    session = (await ok(await tenant.worker.post(f"{API}/sessions", json=presence)))["sessionId"]
    exchange = f"{API}/sessions/{session}/exchange"

    async def submit(job: str) -> str:
        made: str = (await ok(await tenant.api.post(f"{API}/executions", json={"job": job})))["executionId"]
        await node.base.directory.step()
        return made

    async def claim(n: int) -> dict[str, Any]:
        (slice,) = (await ok(await tenant.worker.post(exchange, json={"channel": 0, "n": n, "free": 1})))["slices"]
        return {"parcel": slice["parcel"], "attempt": slice["attempt"]}

    failed = await submit(values["job"])
    item = await claim(1)
    outcome = {**item, "lo": 0, "hi": 1, "outcome": "failed", "error": {"type": "E", "message": told}}
    await ok(await tenant.worker.post(exchange, json={"channel": 0, "n": 2, "outcomes": [outcome]}))
    running = await submit(values["job"])
    item = await claim(3)
    lines = {**item, "item": 0, "seq": 1, "lines": [[node.env.now(), "stdout", told]]}
    await ok(await tenant.worker.post(exchange, json={"channel": 0, "n": 4, "logs": [lines]}))
    step = {**item, "item": 0, "name": "first", "result": told}
    await ok(await tenant.worker.post(f"{API}/sessions/{session}/steps", json={"steps": [step]}))
    upload = {"parcel": item["parcel"], "item": 0, "attempt": item["attempt"]}
    place = f"{API}/sessions/{session}/artifacts/{values['file']}"
    await ok(await tenant.worker.put(place, params=upload, content=told.encode()))
    flow = await submit(values["flow_job"])
    await node.workflows.opener.step()
    queued = await submit(values["job"])
    await ok(await tenant.api.post(f"{API}/executions/{running}/signals", json={"name": "later", "payload": told}))
    tenant.values |= {
        "failed": failed, "running": running, "flow": flow, "queued": queued, "session": session,
        "parcel": str(parcel_of(UUID(running))),
    }  # fmt: skip


def ghosts(values: Values) -> dict[str, str]:
    """Return ids and names that do not exist."""
    return {kind: _ghost(kind, value) for kind, value in values.items()}


def _ghost(kind: str, value: str) -> str:
    if kind in ("file", "step", "version"):
        return value
    try:
        made = UUID(value)
    except ValueError:
        return f"ghost-{kind}" if kind != "key" else "f00d" * 3
    # As old as the other, but of no existing parcel.
    return str(UUID(int=made.int & ~((1 << 62) - 1) | uuid5(GHOST, kind).int & ((1 << 62) - 1) & ~0xFFFF))


# Values for path parameters, by the segment before them.
SEGMENTS: Mapping[str, tuple[str, ...]] = {
    "jobs": ("job", "job_name", "flow_job"),
    "triggers": ("cron", "hook"),
    "executions": ("queued", "running", "failed", "flow"),
    "backfills": ("backfill",),
    "dlq": ("failed",),
    "replays": ("replay",),
    "sessions": ("session",),
    "workers": ("worker", "session"),
    "keys": ("key",),
    "queues": ("queue",),
    "windows": ("calendar",),
    "calendars": ("calendar",),
    "templates": ("template",),
    "namespaces": ("namespace",),
    "secrets": ("secret",),
    "users": ("user",),
    "artifacts": ("file",),
    "alerts": ("alert",),
    "alert-rules": ("rule",),
    "alert-channels": ("channel",),
    "steps": ("step",),
    "versions": ("version",),
    "diff": ("version",),
}
# Query parameters that name objects, and others that they require.
NAMES: Mapping[str, tuple[str, ...]] = {
    "job": ("job", "job_name"),
    "queue": ("queue",),
    "ownerWorkflow": ("flow_job", "flow_name"),
    "worker": ("worker",),
    "trigger": ("cron",),
    "parent": ("flow",),
    "execution": ("running", "queued", "flow"),
    "parcel": ("parcel",),
    "name": ("event",),
    "tag": ("tag",),
    "search": ("job_name",),
    "prefix": ("job_name",),
    "target": ("job",),
    "rule": ("rule",),
}
FILLED = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "item": "0", "attempt": "1"}
PLAIN = {
    *("limit", "cursor", "state", "owned", "queued", "running", "force", "status", "since", "until", "dryRun", "kind"),
    *("disposition", "at", "tail", "key", "errorType", "reason", "text", "olderThan", "after", "targetWait", "slots"),
    *("statistics", "timezone", "by", "grep", "level", "before", "timestamps", "every"),
    *("ended", "actor", "action", "topics", "confirm"),
}
TASK = {"command": ["true"]}
Bodies = Callable[[Values], list[dict[str, Any]]]


def _items(values: Values) -> dict[str, Any]:
    return {"parcel": values["parcel"], "item": 0, "attempt": 1}


# Bodies: all fields that name objects, and the required ones.
BODIES: Mapping[str, Bodies] = {
    "jobs.create": lambda v: [
        {"name": "mine", **TASK, "dependencies": [v["job"]]},
        {"name": "mine", **TASK, "dependencies": [v["job_name"]]},
        {"name": "mine", "template": v["template"], "with": {"x": "1"}},
        {"name": "mine", **TASK, "env": {"TOLD": f"secret://{v['secret']}"}},
        {"name": "mine", "python": "digest", "secrets": [v["secret"]]},
        {"name": "mine", "workflow": [{"name": "a", "job": v["job"]}]},
        {"name": "mine", "workflow": [{"name": "a", "job": v["job_name"], "params": {"told": "x"}}]},
        {"name": "mine", **TASK, "schedule": {"cron": "0 0 * * *", "calendar": v["calendar"]}},
    ],
    "jobs.replace": lambda v: [TASK],
    "jobs.edit": lambda v: [{"description": "mine"}],
    "jobs.rollback": lambda v: [{"version": 1}],
    "rollouts.put": lambda v: [{"version": 1, "share": "10%"}],
    "templates.create": lambda v: [
        {"name": v["flow_name"], "job": {"workflow": [{"name": "a", "job": v["job"]}]}},
        {"name": v["template"], "job": {"command": ["true"], "dependencies": [v["job_name"]]}},
    ],
    "templates.put": lambda v: [{"job": TASK}],
    "triggers.preview": lambda v: [
        {"job": v["job"], "trigger": v["cron"]},
        {"cron": "0 0 * * *", "calendar": v["calendar"]},
    ],
    "yaml.read": lambda v: [{"text": "job: ["}],
    "triggers.add": lambda v: [{"name": "mine", "cron": "0 0 * * *"}],
    "triggers.edit": lambda v: [{"cron": "0 0 * * *"}],
    "calendars.create": lambda v: [
        {"name": "mine", "calendar": v["calendar"]},
        {"name": "mine", "any": [v["calendar"], {"dates": ["2031-01-01"]}]},
        {"name": "mine", "dates": ["2031-01-01"], "except": v["calendar"]},
    ],
    "calendars.put": lambda v: [{"dates": ["2031-01-01"]}],
    "backfills.create": lambda v: [
        {"job": v[kind], "from": FILLED["from"], "to": FILLED["to"], "dryRun": dry}
        for kind, dry in product(("job", "job_name"), (True, False))
    ],
    "executions.submit": lambda v: [
        {"job": v["job"]},
        {"job": v["job_name"]},
        {"job": v["job"], "items": [{}, {}]},
        {"items": [{"job": v["job"]}, {"job": v["job_name"]}]},
        {"items": [{"job": v["job"]}], "atomic": True},
    ],
    "executions.signal": lambda v: [{"name": v["signal"]}],
    "events.send": lambda v: [{"name": v["event"]}],
    "dlq.retry": lambda v: [{"ids": [v["failed"]]}, {"filter": {"job": v["job"]}}, {"filter": {"queue": v["queue"]}}],
    "dlq.discard": lambda v: [{"ids": [v["failed"]]}, {"filter": {"job": v["job"]}}, {"filter": {"queue": v["queue"]}}],
    "dlq.replay": lambda v: [{"filter": {"job": v["job"]}, "rate": "1/1s"}],
    "queues.hold": lambda v: [{"for": "1h"}],
    "holds.open": lambda v: [{"for": "1h", "reason": "mine"}],
    "keys.create": lambda v: [
        {"name": "mine", "role": "worker", "queues": [v["queue"]], "jobs": [v["job_name"]]},
        {"name": "mine", "role": "admin", "permissions": ["installation"]},
    ],
    "me.password": lambda v: [{"current": "not what it was", "password": "not what it was"}],
    "users.create": lambda v: [{"name": v["user"], "password": "not what it was", "role": "viewer"}],
    "users.edit": lambda v: [{"active": False}],
    "users.grant": lambda v: [{"role": "viewer"}],
    "erasures.create": lambda v: [
        {"where": {"tag": v["tag"]}},
        {"where": {"tag": v["tag"], "job": v["job"]}},
        {"where": {"params": {"told": "x"}, "job": v["job_name"]}},
    ],
    "alert-rules.create": lambda v: [
        {"name": v["rule"], "kind": "lag", "channels": [v["channel"]]},
        {"name": v["rule"], "kind": "lag", "jobs": [v["job_name"]]},
    ],
    "alert-rules.put": lambda v: [{"kind": "lag", "jobs": [v["job_name"]]}],
    "alert-channels.create": lambda v: [{"name": "mine", "kind": "webhook", "url": f"secret://{v['secret']}"}],
    "alert-channels.put": lambda v: [{"kind": "webhook", "url": "https://horae.test/", "secret": "s" * 32}],
    "secrets.put": lambda v: [{"value": "not what it was"}],
    "namespaces.create": lambda v: [{"name": v["namespace"]}],
    "namespaces.edit": lambda v: [{"description": "mine"}],
    "namespaces.set-quota": lambda v: [{"queued": 0}],
    "namespaces.erase": lambda v: [
        {"confirm": v["namespace"], "cancel": True, "definitions": whole} for whole in (False, True)
    ],
    "sessions.register": lambda v: [
        {"protocol": PROTOCOL, "worker": v["worker"], "concurrency": 1, "queues": [v["queue"]]}
    ],
    "sessions.exchange": lambda v: [{"channel": 0, "n": 1, "free": 1}],
    "sessions.reattach": lambda v: [
        {"answered": [0] * 8, "held": []},
        {"answered": [0] * 8, "held": [{"parcel": _items(v)["parcel"], "lo": 0, "hi": 1, "attempt": 1}]},
    ],
    "sessions.submit": lambda v: [{**_items(v), "call": "1", "submissions": [{"job": v["job"]}]}],
    "sessions.remember": lambda v: [{"steps": [{**_items(v), "name": "mine"}]}],
    "sessions.upload": lambda v: [{"told": "mine"}],
    "sessions.wait": lambda v: [{**_items(v), "step": "mine", "signal": v["signal"]}],
}
# Operations that create own objects, whatever names other tenants use.
MAKES = {
    *("queues.put", "calendars.put", "templates.put", "holds.open", "holds.window", "keys.create", "events.send"),
    *("queues.window", "sessions.register", "namespaces.create", "queues.hold", "secrets.put", "enrolments.create"),
    *("alert-rules.put", "alert-rules.create", "alert-channels.put"),
    *("me.create-sign-in-code", "templates.create"),
}


class Attack(Struct, frozen=True):
    """One request that names objects of another tenant, or missing ones."""

    operation: str
    names: bool  # something of somebody
    method: str
    path: str
    query: dict[str, str]
    body: dict[str, Any] | None

    async def send(self, tenant: Tenant) -> httpx2.Response:
        who = tenant.worker if self.operation.startswith("sessions.") else tenant.api
        content = {} if self.body is None else {"json": self.body}
        return await who.request(self.method, self.path, params=self.query, **content)


def operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Return every operation that needs a credential; operations that create own objects are last."""
    every = [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if operation.get("security") != []
    ]
    return iter(sorted(every, key=lambda one: one[2]["operationId"] in MAKES))


def attacks(path: str, method: str, operation: Mapping[str, Any], values: Values) -> Iterator[Attack]:
    """Return all requests of an operation with these values."""
    name = operation["operationId"]
    parts = _parts(path)
    queries = list(_queries(operation, values))
    bodies: list[dict[str, Any] | None] = [None]
    if name in BODIES:
        bodies = [*BODIES[name](values)]
    elif operation.get("requestBody"):
        assert not operation["requestBody"]["required"], f"Say in BODIES what {name} may be told."
        bodies = [{}]
    for kinds in product(*(SEGMENTS[part] for part in parts)):
        filled = path
        for part in kinds:
            filled = re.sub(r"\{\w+\}", values[part], filled, count=1)
        for query, body in product(queries, bodies):
            names = bool(parts or body) or not NAMES.keys().isdisjoint(query)
            yield Attack(name, names, method.upper(), filled, query, body)


def _parts(path: str) -> list[str]:
    """Return the path segment before each parameter of a path."""
    found, before = [], ""
    for part in path.split("/"):
        if part.startswith("{"):
            assert before in SEGMENTS, f"Say in SEGMENTS what may stand for {part} of {path}."
            found.append(before)
        before = part
    return found


def _queries(operation: Mapping[str, Any], values: Values) -> Iterator[dict[str, str]]:
    named = [one for one in operation.get("parameters", ()) if one["in"] == "query"]
    for one in named:
        known = one["name"] in NAMES or one["name"] in FILLED or one["name"] in PLAIN
        assert known, f"Say in NAMES or PLAIN what {one['name']} of {operation['operationId']} is."
    always = {one["name"]: _value(one["name"], values) for one in named if one["required"]}
    if operation["operationId"] == "queues.purge":
        always["confirm"] = values["queue"]
    yield always
    for one in named:
        for kind in NAMES.get(one["name"], ()):
            yield always | {one["name"]: values[kind]}


def _value(name: str, values: Values) -> str:
    return FILLED[name] if name in FILLED else values[NAMES[name][0]]
