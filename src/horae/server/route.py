"""A route: one method on one path, with everything that the server needs to know about it.

Routing, decoding, access, the audit log, idempotency, the OpenAPI document and docs/access.md use these values. Every
route must declare `access` and `scope`. Every route that changes something must also declare `audit`.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypedDict, Unpack, get_type_hints

import msgspec
from msgspec import Struct

from horae.errors import HoraeError
from horae.server.access import PUBLIC, Access
from horae.server.reading.bodies import LIMIT
from horae.server.reply import Response

API = "/api/v1"

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Run = Callable[..., Awaitable[Response]]
# What an Idempotency-Key of a POST or DELETE does. "stored": the first answer is stored with the key, and a repetition
# gets it again; "submission": likewise, but the transaction of the submission stores the key; "none": the key is
# ignored, and the route itself decides what a repetition does.
IdempotencyPolicy = Literal["stored", "submission", "none"]
# Refuses a request for anything outside the scope of its credential. The first sentence of its docstring is printed in
# docs/access.md.
Scope = Callable[[Any, Mapping[str, Any]], Awaitable[None]]


class AuditPolicy(Struct, frozen=True):
    """The parts of a request that the audit log holds besides its caller, target and outcome."""

    body: bool = True  # the body without personal values
    changes: bool = False  # the fields that differ in the answers of GET at the same path, before and after


UNRECORDED = None  # for submissions and reports, since executions and events store them
ACTION = AuditPolicy(body=False)  # for bodies with secrets
ACTION_AND_CHANGES = AuditPolicy(body=False, changes=True)
REQUEST = AuditPolicy()
CHANGES = AuditPolicy(changes=True)


class Route(Struct, frozen=True, kw_only=True):
    """All properties of a route."""

    name: str  # "jobs.create": identifies the route in metrics, audit entries, idempotency keys and OpenAPI
    method: Method
    path: str  # "/api/v1/jobs/{ref}"
    run: Run
    gives: Mapping[int, Any]  # status -> the answer's type; None is an empty answer
    access: Access
    scope: Scope  # called only for credentials that are limited to some queues or jobs
    audit: AuditPolicy | None
    refuses: tuple[type[HoraeError], ...] = ()  # documented errors, besides those that `openapi` derives
    idempotency: IdempotencyPolicy | None = None
    takes: Any = None  # the documented type of the body, if its Python type is too general
    body: msgspec.json.Decoder[Any] | None = None
    body_type: Any = None
    query: type[Struct] | None = None
    limit: int = LIMIT  # bytes of the body
    streams: bool = False  # the body is a file's content, which the route reads in pieces
    texts: bool = True  # the body holds texts for the store, so NUL is refused
    media: str = "application/json"  # the media type of the answer
    secret: bool = False  # the answer may hold a secret, so it is never compressed
    headers: Mapping[str, str] = {}  # request headers with their meaning

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
        """Return whether a request needs no credential."""
        return self.access is PUBLIC

    @property
    def is_counted(self) -> bool:
        """Return whether a request counts towards the rate limit of its credential. Requests of workers do not."""
        return self.tag != "sessions"

    @property
    def is_monitoring(self) -> bool:
        """Return whether a request monitors this server. Such requests are answered even if the store is away."""
        return self.tag == "metrics"

    @property
    def takes_turn(self) -> bool:
        """Return whether a request waits for its namespace's turn. Exchanges that wait for work and uploads do not."""
        return not (self.is_public or self.is_monitoring or self.streams or self.name == "sessions.exchange")


class RouteOptions(TypedDict, total=False):
    """The optional fields of a route."""

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
    audit: AuditPolicy | None, idempotency: IdempotencyPolicy | None = None, **details: Unpack[RouteOptions],
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
            idempotency=idempotency,
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
    status: int = 200, idempotency: IdempotencyPolicy = "stored", **details: Unpack[RouteOptions],
) -> RouteDecorator:  # fmt: skip
    """Declare an action; a repetition with the same Idempotency-Key gets the same answer."""
    return _declare(
        "POST", path, name, gives, status, access=access, scope=scope, audit=audit, idempotency=idempotency, **details
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
    status: int = 204, idempotency: IdempotencyPolicy = "stored", **details: Unpack[RouteOptions],
) -> RouteDecorator:  # fmt: skip
    """Declare a removal; a repetition with the same Idempotency-Key gets the same answer."""
    return _declare(
        "DELETE", path, name, gives, status, access=access, scope=scope, audit=audit, idempotency=idempotency, **details
    )
