"""What a row of the audit log is about: the thing itself by its name (`jobs/etl`), whatever was done to it.

A thing's rows are found by its target, and below it those of what it holds (`jobs/etl/triggers/nightly`). So a target
is the request's path up to the last thing that it names, without what is to be done (`/pause`). A job is told by its
name even where the path has its id, and what is made by the name that it gets.
"""

import re
from contextlib import suppress
from typing import Any

import msgspec

from horae.engine.base.refs import as_id
from horae.errors import HoraeError
from horae.features.users.model import NAME
from horae.server.call import Call
from horae.server.reply import Reply
from horae.server.route import API, Route
from horae.server.routes.table import ROUTES

MOST = 500  # characters
_UP_TO_THE_LAST_NAME = re.compile(r".*\}")
_PATHS = frozenset(route.path for route in ROUTES)


def makes(route: Route) -> str | None:
    """How the things go that a route adds to a collection, by `name` or by `id`; None if it adds none."""
    if route.method != "POST":
        return None
    if f"{route.path}/{{name}}" in _PATHS or f"{route.path}/{{ref}}" in _PATHS:
        return "name"
    return "id" if f"{route.path}/{{id}}" in _PATHS else None


async def target_of(call: Call, asked: Any) -> str:
    """What a request is about; `asked` is its body, as far as that can be read."""
    how, path = makes(call.route), call.route.path.removeprefix(f"{API}/")
    if how is None:
        named = _UP_TO_THE_LAST_NAME.match(path)
        path = named[0] if named else path.removesuffix(f"/{call.route.name.partition('.')[2]}")
    target = path.format_map(await _names(call))
    name = asked.get("name") if how == "name" and isinstance(asked, dict) else None
    if isinstance(name, str) and NAME.fullmatch(name):  # what cannot be a name may be a secret in the wrong place
        target = f"{target}/{name}"
    return target.replace("\0", "\N{REPLACEMENT CHARACTER}")[:MOST]


def made_by(call: Call, target: str, reply: Reply) -> tuple[str, str | None]:
    """What a request was about, known from its answer, and the id of what it made."""
    place = dict(reply.headers).get(b"location")
    made = None if place is None else place.decode("latin-1").rpartition("/")[2]
    how = makes(call.route)
    if made is None or how is None or reply.status != 201:
        return target, made
    name = made if how == "id" else msgspec.json.decode(reply.body)["name"]
    return target if target.endswith(f"/{name}") else f"{target}/{name}"[:MOST], made


async def _names(call: Call) -> dict[str, str]:
    """The parts of the path; a job's id is its name."""
    parts: dict[str, str] = dict(call.scope["path_params"])
    ref = parts.get("ref")
    if ref is not None and as_id(ref) is not None:
        with suppress(HoraeError):
            parts["ref"] = (await call.node.jobs.find(call.namespace, ref)).name
    return parts
