"""What people and programs change is written to the audit log: that it is begun, and then what came of it.

Not what runs by the thousand: an execution carries who submitted it, and what workers report is its history. Of a
definition the log tells what changed: the thing is read as its own route shows it, before and after.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec
import structlog
from msgspec import structs

from horae.errors import HoraeError, StoreUnavailable
from horae.features.audit_log.engine import outcome_of
from horae.features.audit_log.model.values import Entry, Outcome
from horae.model.definitions.applied_view import AppliedListView
from horae.server.call import Call
from horae.server.reply import Reply
from horae.server.route import Route
from horae.server.routes.table import ROUTES
from horae.server.targets import MOST, made_by, target_of

MOST_DETAIL = 16 * 1024  # bytes
PERSONAL = ("params", "result", "payload", "data", "value", "code", "token", "password")
UNTOLD = "(not recorded)"
DEEPEST = 30  # levels of a request that are looked at
# What is different at every look, and is nobody's doing.
PASSING = frozenset(
    {
        "updatedAt",
        "nextFireAt",
        "lastExecution",
        "startedAt",
        "progress",
        "executionId",
        "status",
        "next",
        "depth",
        "firing",
    }
)

log = structlog.get_logger("horae.server")


def _readers(routes: tuple[Route, ...]) -> Mapping[str, Route]:
    reads = {route.path: route for route in routes if route.method == "GET" and route.media == "application/json"}
    found = {}
    for route in routes:
        if route.audit and route.audit.changes:
            path = route.path
            while path and path not in reads:
                path = path.rpartition("/")[0]
            if not path:
                raise LookupError(f"{route.name} records changes, and no GET at its path or above shows them.")
            found[route.name] = reads[path]
    return found


# By the name of a route whose changes are recorded: the route that reads what it changes.
READERS = _readers(ROUTES)


async def recorded(call: Call, run: Callable[[], Awaitable[Reply]]) -> Reply:
    """Run a request and tell the audit log of it; what cannot be told is not begun."""
    reader = READERS.get(call.route.name)
    before = await _read(call, reader)
    body = _body(call)
    target, asked = await target_of(call, body), _request(call, body)
    begun = await call.node.audit_log.append(_entry(call, "begun", target, asked))
    try:
        reply = await run()
    except HoraeError as error:
        said = {**asked, "status": error.status, "problem": error.title, "said": error.detail[:500]}
        await _end(call, _entry(call, outcome_of(error.status), target, said, begun))
        raise
    except BaseException:
        await _end(call, _entry(call, "failed", target, asked, begun))
        raise
    target, made = made_by(call, target, reply)
    said = {**asked, "status": reply.status}
    if made is not None:
        said["made"] = made
    if reader is not None and (changed := _changed(before, await _read(call, reader))):
        said["changed"] = changed
    await _end(call, _entry(call, outcome_of(reply.status), target, said, begun))
    if call.route.name == "apply.all":
        await _record_each(call, reply, begun)
    return reply


async def _record_each(call: Call, reply: Reply, begun: int) -> None:
    """Tell of each definition that an apply has changed, as its own route would."""
    applied = msgspec.json.decode(reply.body, type=AppliedListView)
    for one in () if applied.dry_run else applied.items:
        if one.outcome == "unchanged":
            continue
        route = ("create" if one.outcome == "created" else "replace") if one.kind == "job" else "put"
        changed = {each.path: [_known(each.before), _known(each.after)] for each in one.changes}
        said: dict[str, Any] = {"path": _path(call), "status": reply.status}
        if changed:
            said["changed"] = {name: [_public({name: side})[name] for side in sides] for name, sides in changed.items()}
        entry = _entry(call, "done", f"{one.kind}s/{one.name}", said, begun)
        await _end(call, structs.replace(entry, action=f"{one.kind}s.{route}"))


def _known(value: Any) -> Any:
    return None if value is msgspec.UNSET else value


async def denied(call: Call, error: HoraeError) -> None:
    """Tell of a change that somebody had no permission for; the same one by the same credential once in a while."""
    if call.route.audit:
        said = {"path": _path(call), "status": 403, "said": error.detail[:500]}
        with suppress(StoreUnavailable):
            await call.node.audit_log.deny(_entry(call, "denied", await target_of(call, _body(call)), said))


async def _end(call: Call, entry: Entry) -> None:
    """What is done is done: if this cannot be told, the log says that it was begun."""
    try:
        await call.node.audit_log.append(entry)
    except StoreUnavailable:
        log.warning("the audit log does not say how this ended", action=entry.action, target=entry.target)


async def _read(call: Call, reader: Route | None) -> dict[str, Any] | None:
    """A definition as its own route shows it; None when there is none."""
    if reader is None:
        return None
    arguments = {} if reader.query is None else {"query": reader.query()}
    try:
        shown = await reader.run(call.of(reader), **arguments)
    except HoraeError:
        return None
    found = msgspec.json.decode(shown.body) if shown.status == 200 else None
    return found if isinstance(found, dict) else None


def _changed(before: dict[str, Any] | None, after: dict[str, Any] | None) -> dict[str, list[Any]]:
    """Each field that is another one now, before and after."""
    old, new = before or {}, after or {}
    names = sorted({*old, *new} - PASSING)
    changed = (name for name in names if old.get(name) != new.get(name))
    return {name: [_public({name: each.get(name)})[name] for each in (old, new)] for name in changed}


def _body(call: Call) -> Any:
    """What was sent, if it can be read."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.json.decode(call.body) if call.body else None
    return None


def _request(call: Call, body: Any) -> dict[str, Any]:
    """What was asked, without what is somebody's own."""
    said: dict[str, Any] = {"path": _path(call)}
    if call.scope["query_string"]:
        said["query"] = call.scope["query_string"].decode("latin-1")[:500]
    if body is not None and call.route.audit and call.route.audit.body:
        said["request"] = _public(body)
    return said


def _path(call: Call) -> str:
    path: str = call.scope["path"]
    return path[:MOST]


def _public(asked: Any, deep: int = 0) -> Any:
    """Without what jobs are given, wherever it stands: in a definition, its triggers or its steps."""
    if deep > DEEPEST:
        return UNTOLD
    if isinstance(asked, list):
        return [_public(one, deep + 1) for one in asked]
    if not isinstance(asked, dict):
        return asked
    return {name: UNTOLD if name in PERSONAL and value else _public(value, deep + 1) for name, value in asked.items()}


def _entry(call: Call, outcome: Outcome, target: str, said: dict[str, Any], begun: int | None = None) -> Entry:
    return Entry(
        at=call.node.env.now(), namespace=call.namespace, actor=call.caller, actor_name=call.who.name[:200],
        address=call.address, action=call.route.name, target=target, outcome=outcome, detail=_encoded(said),
        begun=begun,
    )  # fmt: skip


def _encoded(said: dict[str, Any]) -> str:
    """As JSON, within bounds: what is too long is told by the names of its fields."""
    for name in ("request", "changed"):
        if len(msgspec.json.encode(said)) > MOST_DETAIL and isinstance(said.get(name), dict):
            said = {**said, name: {"tooLong": sorted(said[name])[:100]}}
    encoded = msgspec.json.encode(said)
    return (encoded if len(encoded) <= MOST_DETAIL else b'{"tooLong":true}').decode()
