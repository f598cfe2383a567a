"""A route: one method on one path, with all that the server needs to know of it.

Routing, decoding, access, the audit log, idempotency, the OpenAPI document and docs/access.md read these values.
`access` and `scope` are required of every route, and `audit` of every route that changes something.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypedDict, Unpack, get_type_hints

import msgspec
from msgspec import Struct

from horae.errors import HoraeError
from horae.server.access import EVERYBODY, Access
from horae.server.reading.bodies import LIMIT
from horae.server.reply import Response

API = "/api/v1"

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Run = Callable[..., Awaitable[Response]]
# How a repeated POST is recognised: by its kept answer, in the submission's own transaction, or by what it says.
Repeats = Literal["kept", "submission", "by itself"]
# Refuses a request that names anything outside of the scope of its credential. Its docstring's first sentence stands in
# docs/access.md.
Scope = Callable[[Any, Mapping[str, Any]], Awaitable[None]]


class AuditPolicy(Struct, frozen=True):
    """What the audit log holds of a request besides its caller, its target and how it ended."""

    body: bool = True  # without personal values
    changes: bool = False  # the fields that differ afterwards in what GET shows at the same path


UNRECORDED = None  # submissions and reports: the executions and events themselves tell of them
ACTION = AuditPolicy(body=False)  # the body holds secrets
ACTION_AND_CHANGES = AuditPolicy(body=False, changes=True)
REQUEST = AuditPolicy()
CHANGES = AuditPolicy(changes=True)


class Route(Struct, frozen=True, kw_only=True):
    """Everything there is to know about a route."""

    name: str  # "jobs.create": access and idempotency keys speak of it
    method: Method
    path: str  # "/api/v1/jobs/{ref}"
    run: Run
    gives: Mapping[int, Any]  # status -> the answer's type; None is an empty answer
    access: Access
    scope: Scope  # asked of credentials for some queues or jobs only
    audit: AuditPolicy | None
    refuses: tuple[type[HoraeError], ...] = ()
    repeats: Repeats | None = None
    takes: Any = None  # what the document says the body is, when its Python type says too little
    body: msgspec.json.Decoder[Any] | None = None
    body_type: Any = None
    query: type[Struct] | None = None
    limit: int = LIMIT
    streams: bool = False  # the body is a file's content, which the route reads piece by piece
    texts: bool = True  # the body holds texts the store keeps as such, so NUL is refused
    media: str = "application/json"  # of the answer
    secret: bool = False  # the answer may hold a secret, so it is never packed
    headers: Mapping[str, str] = {}  # request headers it reads, with their meaning

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.run) or "").partition("\n")[0]

    @property
    def description(self) -> str:
        return inspect.getdoc(self.run) or ""

    @property
    def tag(self) -> str:
        return self.name.partition(".")[0]

    @property
    def is_public(self) -> bool:
        """Whether a request needs no credential."""
        return self.access is EVERYBODY

    @property
    def is_counted(self) -> bool:
        """Whether a request counts for the rate of its credential. Workers' exchanges do not."""
        return self.tag != "sessions"

    @property
    def is_watching(self) -> bool:
        """Whether a request asks about this server itself, which it answers also while the store is away."""
        return self.tag == "metrics"

    @property
    def takes_turn(self) -> bool:
        """Whether a request waits for its namespace's turn. Exchanges that wait for work do not, nor uploads."""
        return not (self.is_public or self.is_watching or self.streams or self.name == "sessions.exchange")


class RouteOptions(TypedDict, total=False):
    """The fields of a route that have a default."""

    refuses: tuple[type[HoraeError], ...]
    takes: Any
    limit: int
    streams: bool
    texts: bool
    media: str
    secret: bool
    headers: Mapping[str, str]


RouteDecorator = Callable[[Run], Route]


def _declare(
    method: Method, path: str, name: str, gives: Any, status: int, *, access: Access, scope: Scope,
    audit: AuditPolicy | None, repeats: Repeats | None = None, **details: Unpack[RouteOptions],
) -> RouteDecorator:  # fmt: skip
    def declare(run: Run) -> Route:
        types = get_type_hints(run)
        body = types.get("body")
        return Route(
            name=name,
            method=method,
            path=path,
            run=run,
            gives=gives if isinstance(gives, Mapping) else {status: gives},
            access=access,
            scope=scope,
            audit=audit,
            repeats=repeats,
            body=None if body is None else msgspec.json.Decoder(body),
            body_type=body,
            query=types.get("query"),
            **details,
        )

    return declare


def get(
    path: str, name: str, gives: Any = None, *, access: Access, scope: Scope, audit: AuditPolicy | None = UNRECORDED,
    **details: Unpack[RouteOptions],
) -> RouteDecorator:  # fmt: skip
    """Declare a read."""
    return _declare("GET", path, name, gives, 200, access=access, scope=scope, audit=audit, **details)


def post(
    path: str, name: str, gives: Any = None, *, access: Access, scope: Scope, audit: AuditPolicy | None,
    status: int = 200, repeats: Repeats = "kept", **details: Unpack[RouteOptions],
) -> RouteDecorator:  # fmt: skip
    """Declare an action; a repetition with the same Idempotency-Key is answered alike."""
    return _declare(
        "POST", path, name, gives, status, access=access, scope=scope, audit=audit, repeats=repeats, **details
    )


def put(
    path: str, name: str, gives: Any = None, *, access: Access, scope: Scope, audit: AuditPolicy | None,
    **details: Unpack[RouteOptions],
) -> RouteDecorator:  # fmt: skip
    """Declare a replacement."""
    return _declare("PUT", path, name, gives, 200, access=access, scope=scope, audit=audit, **details)


def patch(
    path: str, name: str, gives: Any = None, *, access: Access, scope: Scope, audit: AuditPolicy | None,
    **details: Unpack[RouteOptions],
) -> RouteDecorator:  # fmt: skip
    """Declare a change."""
    return _declare("PATCH", path, name, gives, 200, access=access, scope=scope, audit=audit, **details)


def delete(
    path: str, name: str, gives: Any = None, *, access: Access, scope: Scope, audit: AuditPolicy | None,
    status: int = 204, **details: Unpack[RouteOptions],
) -> RouteDecorator:  # fmt: skip
    """Declare a removal."""
    return _declare("DELETE", path, name, gives, status, access=access, scope=scope, audit=audit, **details)
