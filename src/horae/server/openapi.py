"""The OpenAPI 3.1 document, built from the routes.

Schemas come from msgspec, which also decodes the bodies: what the document says is what the server accepts.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import msgspec

from horae.errors import BadInput, Busy, Conflict, Forbidden, HoraeError, KeyReused, TooLarge, TooOften, Unauthorized
from horae.server.access import is_counted, is_public
from horae.server.problems import Broken, Problem, UnsupportedMedia
from horae.server.reply import encode
from horae.server.route import Route
from horae.server.routes import ROUTES
from horae.server.schemas import BEHIND, Document, schemas_of
from horae.version import __version__

PREFIX = "#/components/schemas/"
IDEMPOTENCY = "Makes a repetition safe: the same key and body are answered alike for a day (submissions: two hours)."
TRACE_STATE = "What vendors say of that trace, handed on with it."
TRACE = "The W3C trace context that the executions belong to; one that cannot be read is dropped."
HEADERS: dict[str, Document] = {
    "Idempotency-Key": {"type": "string", "minLength": 1, "maxLength": 256},
    "If-Match": {"type": "string", "pattern": r'^(\*|(W/)?"[0-9]{1,9}(\\.[0-9a-f]{1,16})?")$'},
}
TEXT: Document = {"type": "string", "maxLength": 8192}
UUID_TAGS = frozenset({"executions", "dlq", "sessions"})  # whose {id} is a UUID
_PARAMETER = re.compile(r"\{(\w+)\}")


@cache
def document() -> bytes:
    """The document, encoded."""
    return encode(build(ROUTES))


def build(routes: Iterable[Route]) -> Document:
    """The document of these routes."""
    routes = list(routes)
    schemas, components = _schemas(routes)
    paths: dict[str, Document] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Horae", "version": __version__, "description": "A distributed job scheduler."},
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}, {"cookie": []}],
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": _security()},
    }


def _security() -> Document:
    return {
        "bearer": {"type": "http", "scheme": "bearer", "description": "A key: hk_<id>_<secret>."},
        "cookie": {
            "type": "apiKey",
            "in": "cookie",
            "name": "horae",
            "description": "A browser's, from POST /api/v1/sign-in; its writes also send X-CSRF-Token.",
        },
    }


class Schemas(dict[Any, Document]):
    """What stands for each type in the document; several types are alternatives."""

    def of(self, type: Any) -> Document:
        return {"oneOf": [self[one] for one in type]} if isinstance(type, tuple) else self[type]


def _schemas(routes: list[Route]) -> tuple[Schemas, Document]:
    types = list(dict.fromkeys([Problem, *(one for route in routes for one in _types(route))]))
    schemas, components = schemas_of([*types, *BEHIND], PREFIX)
    return Schemas(zip(types, schemas, strict=False)), components


def _types(route: Route) -> Iterator[Any]:
    for type in (route.takes or route.body_type, *route.gives.values()):
        yield from type if isinstance(type, tuple) else () if type is None else (type,)


def _operation(route: Route, schemas: Schemas) -> Document:
    operation: Document = {
        "operationId": route.name,
        "tags": [route.tag],
        "summary": route.summary,
        "description": route.description,
        "parameters": [*_path_parameters(route), *_query_parameters(route), *_header_parameters(route)],
        "responses": {
            **{str(status): _answer(route, type, schemas) for status, type in route.gives.items()},
            **_refusals(route, schemas),
        },
    }
    takes = route.takes or route.body_type
    if takes is not None:
        content = {"application/json": {"schema": schemas.of(takes)}}
        operation["requestBody"] = {"content": content, "required": _needs_body(takes)}
    if is_public(route):
        operation["security"] = []
    return operation


def _needs_body(takes: Any) -> bool:
    """An empty body counts as an empty object: enough when nothing is required."""
    types = takes if isinstance(takes, tuple) else (takes,)
    return all(any(field.required for field in msgspec.structs.fields(type)) for type in types)


def _path_parameters(route: Route) -> Iterator[Document]:
    for name in _PARAMETER.findall(route.path):
        schema: Document = {"type": "string", "minLength": 1}
        if name == "id" and route.tag in UUID_TAGS:
            schema = {"type": "string", "format": "uuid"}
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameters(route: Route) -> Iterator[Document]:
    if route.query is None:
        return
    (_,), components = msgspec.json.schema_components([route.query], ref_template=PREFIX + "{name}")
    whole = components[route.query.__name__]
    for name, schema in whole["properties"].items():
        bare = _without_null(schema)
        parameter = {"name": name, "in": "query", "required": name in whole.get("required", ()), "schema": bare}
        if "description" in bare:
            parameter["description"] = bare["description"]
        if bare.get("type") == "array":
            parameter |= {"style": "form", "explode": False}
        yield parameter


def _without_null(schema: Document) -> Document:
    """An absent parameter is left out; there is no way to write null."""
    rest = {name: value for name, value in schema.items() if not (name == "default" and value is None)}
    kept = [option for option in rest.get("anyOf", ()) if option.get("type") != "null"]
    if "anyOf" not in rest or len(kept) == len(rest["anyOf"]):
        return rest
    del rest["anyOf"]
    return {**(kept[0] if len(kept) == 1 else {"anyOf": kept}), **rest}


def _header_parameters(route: Route) -> Iterator[Document]:
    headers = dict(route.headers)
    if route.repeats in ("kept", "submission"):
        headers["Idempotency-Key"] = IDEMPOTENCY
    if route.repeats == "submission":
        headers["traceparent"], headers["tracestate"] = TRACE, TRACE_STATE
    for name, meaning in headers.items():
        schema = HEADERS.get(name, TEXT)
        yield {"name": name, "in": "header", "required": False, "description": meaning, "schema": schema}


def _answer(route: Route, type: Any, schemas: Schemas) -> Document:
    answer: Document = {"description": route.summary}
    if type is not None:
        answer["content"] = {route.media: {"schema": schemas.of(type)}}
    if any(status in (201, 202) and type is not None for status in route.gives):
        answer["headers"] = {"Location": {"schema": {"type": "string"}, "description": "Where to read it."}}
    return answer


def _refusals(route: Route, schemas: Schemas) -> Document:
    kinds: dict[int, list[str]] = {}
    for error in _errors(route):
        kinds.setdefault(error.status, []).append(error.title)
    content = {"application/problem+json": {"schema": schemas[Problem]}}
    return {
        str(status): {"description": "; ".join(dict.fromkeys(titles)) + ".", "content": content}
        for status, titles in sorted(kinds.items())
    }


def _errors(route: Route) -> Iterator[type[HoraeError]]:
    yield from route.refuses
    if not is_public(route):
        yield from (Unauthorized, Forbidden)
        if is_counted(route):
            yield TooOften
    if route.body is not None or route.query is not None or route.headers or route.repeats:
        yield BadInput
    if route.body is not None or route.repeats:
        yield from (TooLarge, UnsupportedMedia)
    if route.repeats in ("kept", "submission"):
        yield from (Conflict, KeyReused)
    if route.name != "health.live":
        yield from (Busy, Broken)
