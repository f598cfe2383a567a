"""Entries of the audit log for changes by people and programs: the start of each change, then its end.

Submissions of executions and reports of workers are left out, because each execution stores its caller and its history.
For a changed definition, the audit log holds the fields that differ. To find them, the definition is read through its
own GET route before and after the change.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import structlog
from msgspec import structs

from horae.engine.base.refs import as_id
from horae.errors import HoraeError, StoreUnavailable
from horae.model.definitions.applied_view import AppliedDocumentsView
from horae.model.tenancy.audit import AuditEntry, Outcome, outcome_of
from horae.model.tenancy.users import NAME
from horae.server.call import ApiCall
from horae.server.reply import Response
from horae.server.route import API, Route

MOST_DETAIL = 16 * 1024  # bytes of an entry's details
MOST_TARGET = 500  # characters of an entry's target
# Fields with values that may be personal or secret, and are not recorded.
PERSONAL = ("params", "result", "payload", "data", "value", "code", "token", "password")
NOT_RECORDED = "(not recorded)"
DEEPEST = 30  # levels of nesting of a request that are recorded
# Fields that change without a request. A difference in them is not recorded.
VOLATILE = frozenset((
    "updatedAt", "nextFireAt", "lastExecution", "startedAt", "progress", "executionId", "status", "next", "depth",
    "firing",
))  # fmt: skip

_UP_TO_THE_LAST_NAME = re.compile(r".*\}")
log = structlog.get_logger("horae.server")


class AuditRecorder:
    """Records requests to the given routes in the audit log."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._readers = _readers(routes)
        self._paths = frozenset(route.path for route in routes)

    async def record(self, call: ApiCall, run: Callable[[], Awaitable[Response]]) -> Response:
        """Run a request, and record its start and its end. If the start cannot be recorded, the request is not run."""
        reader = self._readers.get(call.route.name)
        before = await _read(call, reader)
        body = _body(call)
        target, asked = await self.target_of(call, body), _request(call, body)
        begun = await call.node.tenancy.audit.append(_entry(call, "begun", target, asked))
        try:
            reply = await run()
        except HoraeError as error:
            details = {**asked, "status": error.status, "problem": error.title, "error": error.detail[:500]}
            await _end(call, _entry(call, outcome_of(error.status), target, details, begun))
            raise
        except BaseException:
            await _end(call, _entry(call, "failed", target, asked, begun))
            raise
        target, created = self.target_after(call, target, reply)
        details = {**asked, "status": reply.status}
        if created is not None:
            details["created"] = created
        if reader is not None and (changed := _changed(before, await _read(call, reader))):
            details["changed"] = changed
        await _end(call, _entry(call, outcome_of(reply.status), target, details, begun))
        if call.route.name == "apply.all":
            await _record_each(call, reply, begun)
        return reply

    async def record_denial(self, call: ApiCall, error: HoraeError) -> None:
        """Record a change that was refused for a missing permission; repetitions are recorded only occasionally."""
        if call.route.audit is not None:
            details = {"path": _path(call), "status": 403, "error": error.detail[:500]}
            with suppress(StoreUnavailable):
                target = await self.target_of(call, _body(call))
                await call.node.tenancy.audit.deny(_entry(call, "denied", target, details))

    def created_by(self, route: Route) -> str | None:
        """Return the path parameter of the things that a route creates, `name` or `id`; None if it creates none."""
        if route.method != "POST":
            return None
        if f"{route.path}/{{name}}" in self._paths or f"{route.path}/{{ref}}" in self._paths:
            return "name"
        return "id" if f"{route.path}/{{id}}" in self._paths else None

    async def target_of(self, call: ApiCall, asked: Any) -> str:
        """Return the target of a request: its path up to the last name, as in `jobs/etl/triggers/nightly`.

        So all entries about a thing have the same target, whatever the action (such as `/pause`), and the targets of
        its parts begin with that target. A job appears by name, even if the path has its id. `asked` is the decoded
        body, or None if it cannot be decoded.
        """
        how, path = self.created_by(call.route), call.route.path.removeprefix(f"{API}/")
        if how is None:
            named = _UP_TO_THE_LAST_NAME.match(path)
            path = named[0] if named else path.removesuffix(f"/{call.route.name.partition('.')[2]}")
        target = path.format_map(await _names(call))
        name = asked.get("name") if how == "name" and isinstance(asked, dict) else None
        if isinstance(name, str) and NAME.fullmatch(name):  # any other text may be a secret in the wrong field
            target = f"{target}/{name}"
        return target.replace("\0", "\N{REPLACEMENT CHARACTER}")[:MOST_TARGET]

    def target_after(self, call: ApiCall, target: str, reply: Response) -> tuple[str, str | None]:
        """Return the target, with the name or id of a created thing, and the last part of the answer's Location."""
        place = dict(reply.headers).get(b"location")
        created = None if place is None else place.decode("latin-1").rpartition("/")[2]
        how = self.created_by(call.route)
        if created is None or how is None or reply.status != 201:
            return target, created
        name = created if how == "id" else msgspec.json.decode(reply.body)["name"]
        return target if target.endswith(f"/{name}") else f"{target}/{name}"[:MOST_TARGET], created


async def record_failed_sign_in(call: ApiCall, error: HoraeError, name: str = "") -> None:
    """Record a failed sign-in, unless an error of the server made it fail.

    A `name` that cannot be a name is left out, because it may be a password in the wrong field.
    """
    if error.status < 500:
        known = name if NAME.fullmatch(name) else ""
        await call.node.tenancy.audit.fail(call.route.name, known, call.address, error.detail)


def _readers(routes: Sequence[Route]) -> Mapping[str, Route]:
    """Map the name of each route with recorded changes to the route that reads the changed thing."""
    reads = {route.path: route for route in routes if route.method == "GET" and route.media == "application/json"}
    found = {}
    for route in routes:
        if route.audit and route.audit.changes:
            path = route.path
            while path and path not in reads:
                path = path.rpartition("/")[0]
            if not path:
                raise LookupError(f"{route.name} records changes, but no GET route at its path or above reads them.")
            found[route.name] = reads[path]
    return found


async def _record_each(call: ApiCall, reply: Response, begun: int) -> None:
    """Record each definition that an apply has changed, as if it had been changed through its own route."""
    applied = msgspec.json.decode(reply.body, type=AppliedDocumentsView)
    for one in () if applied.dry_run else applied.items:
        if one.outcome == "unchanged":
            continue
        route = ("create" if one.outcome == "created" else "replace") if one.kind == "job" else "put"
        changed = {each.path: [_known(each.before), _known(each.after)] for each in one.changes}
        details: dict[str, Any] = {"path": _path(call), "status": reply.status}
        if changed:
            details["changed"] = {
                name: [_public({name: side})[name] for side in sides] for name, sides in changed.items()
            }
        entry = _entry(call, "done", f"{one.kind}s/{one.name}", details, begun)
        await _end(call, structs.replace(entry, action=f"{one.kind}s.{route}"))


def _known(value: Any) -> Any:
    return None if value is msgspec.UNSET else value


async def _end(call: ApiCall, entry: AuditEntry) -> None:
    """Record the end of a change. If that fails, the log still has the start of the change."""
    try:
        await call.node.tenancy.audit.append(entry)
    except StoreUnavailable:
        log.warning("the audit log lacks the end of this change", action=entry.action, target=entry.target)


async def _read(call: ApiCall, reader: Route | None) -> dict[str, Any] | None:
    """Return a definition from its own GET route; None if it does not exist or cannot be read."""
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
    """Return the fields that differ, each with its values before and after."""
    old, new = before or {}, after or {}
    names = sorted({*old, *new} - VOLATILE)
    changed = (name for name in names if old.get(name) != new.get(name))
    return {name: [_public({name: each.get(name)})[name] for each in (old, new)] for name in changed}


def _body(call: ApiCall) -> Any:
    """Return the decoded body; None if it is empty or not JSON."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.json.decode(call.body) if call.body else None
    return None


def _request(call: ApiCall, body: Any) -> dict[str, Any]:
    """Return the recorded form of a request: its path, its query and, if the route allows, its body (`_public`)."""
    details: dict[str, Any] = {"path": _path(call)}
    if call.scope["query_string"]:
        details["query"] = call.scope["query_string"].decode("latin-1")[:500]
    if body is not None and call.route.audit and call.route.audit.body:
        details["request"] = _public(body)
    return details


def _path(call: ApiCall) -> str:
    path: str = call.scope["path"]
    return path[:MOST_TARGET]


def _public(asked: Any, deep: int = 0) -> Any:
    """Return a body without the values of PERSONAL fields, at any depth, such as in triggers and steps."""
    if deep > DEEPEST:
        return NOT_RECORDED
    if isinstance(asked, list):
        return [_public(one, deep + 1) for one in asked]
    if not isinstance(asked, dict):
        return asked
    return {
        name: NOT_RECORDED if name in PERSONAL and value else _public(value, deep + 1) for name, value in asked.items()
    }


def _entry(
    call: ApiCall, outcome: Outcome, target: str, details: dict[str, Any], begun: int | None = None
) -> AuditEntry:
    return AuditEntry(
        at=call.node.env.now(), namespace=call.namespace, actor=call.caller, actor_name=call.who.name[:200],
        address=call.address, action=call.route.name, target=target, outcome=outcome, detail=_encoded(details),
        begun=begun,
    )  # fmt: skip


def _encoded(details: dict[str, Any]) -> str:
    """Encode details as JSON of at most MOST_DETAIL bytes; fields that are too long are replaced by their names."""
    for name in ("request", "changed"):
        if len(msgspec.json.encode(details)) > MOST_DETAIL and isinstance(details.get(name), dict):
            details = {**details, name: {"tooLong": sorted(details[name])[:100]}}
    encoded = msgspec.json.encode(details)
    return (encoded if len(encoded) <= MOST_DETAIL else b'{"tooLong":true}').decode()


async def _names(call: ApiCall) -> dict[str, str]:
    """Return the parameters of the path, with the job's name instead of its id."""
    parts: dict[str, str] = dict(call.scope["path_params"])
    ref = parts.get("ref")
    if ref is not None and as_id(ref) is not None:
        with suppress(HoraeError):
            parts["ref"] = (await call.node.definitions.jobs.find(call.namespace, ref)).name
    return parts
