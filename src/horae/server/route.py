"""A route: one method on one path, with what it takes, gives and refuses.

Routing, decoding, access, idempotency and the OpenAPI document all read these values; nothing is said twice.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, get_type_hints

import msgspec
from msgspec import Struct

from horae.errors import HoraeError
from horae.server.reading.reading import LIMIT
from horae.server.reply import Reply

API = "/api/v1"

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Run = Callable[..., Awaitable[Reply]]
# How a repeated POST is recognised: by its kept answer, in the submission's own transaction, or by what it says.
Repeats = Literal["kept", "submission", "by itself"]


class Route(Struct, frozen=True, kw_only=True):
    """Everything there is to know about a route."""

    name: str  # "jobs.create": access and idempotency keys speak of it
    method: Method
    path: str  # "/api/v1/jobs/{ref}"
    run: Run
    gives: Mapping[int, Any]  # status -> the answer's type; None is an empty answer
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


Declare = Callable[[Run], Route]


def _declare(method: Method, path: str, name: str, gives: Any, status: int, **rest: Any) -> Declare:
    def declare(run: Run) -> Route:
        types = get_type_hints(run)
        body = types.get("body")
        return Route(
            name=name,
            method=method,
            path=path,
            run=run,
            gives=gives if isinstance(gives, Mapping) else {status: gives},
            body=None if body is None else msgspec.json.Decoder(body),
            body_type=body,
            query=types.get("query"),
            **rest,
        )

    return declare


def get(path: str, name: str, gives: Any = None, **rest: Any) -> Declare:
    """Declare a read."""
    return _declare("GET", path, name, gives, 200, **rest)


def post(
    path: str, name: str, gives: Any = None, *, status: int = 200, repeats: Repeats = "kept", **rest: Any
) -> Declare:
    """Declare an action; a repetition with the same Idempotency-Key is answered alike."""
    return _declare("POST", path, name, gives, status, repeats=repeats, **rest)


def put(path: str, name: str, gives: Any = None, **rest: Any) -> Declare:
    """Declare a replacement."""
    return _declare("PUT", path, name, gives, 200, **rest)


def patch(path: str, name: str, gives: Any = None, **rest: Any) -> Declare:
    """Declare a change."""
    return _declare("PATCH", path, name, gives, 200, **rest)


def delete(path: str, name: str, gives: Any = None, *, status: int = 204, **rest: Any) -> Declare:
    """Declare a removal."""
    return _declare("DELETE", path, name, gives, status, **rest)
