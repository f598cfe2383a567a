"""The OpenAPI 3.1 document, built from the routes.

Schemas come from msgspec, which also decodes the bodies, so the document describes exactly what the server accepts.
"""

import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from horae.errors import BadInput, Busy, Conflict, Forbidden, HoraeError, KeyReused, TooLarge, TooOften, Unauthorized
from horae.model.base.view import Versioned
from horae.model.definitions.job import JOB
from horae.server.problems import InternalError, ProblemDocument, UnsupportedMedia
from horae.server.reading.schemas import RAW_TYPES, Document, schemas_of
from horae.server.route import Route
from horae.server.shaping import is_tagged
from horae.version import __version__

PREFIX = "#/components/schemas/"
IDEMPOTENCY = "Makes a repetition safe: the same key and body get the same answer for a day (submissions: two hours)."
TRACE_STATE = "The vendors' state of that trace, forwarded with it."
TRACE = "The W3C trace context that the executions belong to; a malformed context is ignored."
HEADERS: dict[str, Document] = {
    "Idempotency-Key": {"type": "string", "minLength": 1, "maxLength": 256},
    "If-Match": {"type": "string", "pattern": r'^(\*|(W/)?"[0-9]{1,9}(\.[0-9a-f]{1,16})?")$'},
}
TEXT: Document = {"type": "string", "maxLength": 8192}
MERGE_PATCH = "application/merge-patch+json"
FILE, FILE_SCHEMA = "application/octet-stream", {"type": "string", "format": "binary"}
JOB_VIEWS = ("JobView", "ListedJobView")
AS_WRITTEN = tuple(row.name for row in JOB.rows if row.kind.shown is Any)  # fields shown as they were written
UNLOCATED = frozenset({"sessions", "enrolments"})  # tags of routes that create things without a URL
UUID_TAGS = frozenset({"executions", "dlq", "sessions"})  # tags with a UUID as {id}
_PARAMETER = re.compile(r"\{(\w+)\}")


def build(routes: Iterable[Route]) -> Document:
    """Return the document of these routes."""
    routes = list(routes)
    schemas, components = _schemas(routes)
    refusals = Refusals(schemas[ProblemDocument])
    paths: dict[str, Document] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas, refusals)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Horae",
            "version": __version__,
            "description": "A distributed job scheduler.",
            "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}, {"cookie": []}],
        "tags": [{"name": name, "description": description} for name, description in sorted(_tags(routes).items())],
        "paths": paths,
        "components": {"schemas": components, "responses": refusals.components, "securitySchemes": _security()},
    }


def _tags(routes: Iterable[Route]) -> dict[str, str]:
    """Return a description of each tag: the first line of the docstring of the module with its routes."""
    modules = {route.tag: inspect.getmodule(route.run) for route in reversed(list(routes))}
    return {tag: (inspect.getdoc(module) or tag).partition("\n")[0] for tag, module in modules.items()}


def _security() -> Document:
    return {
        "bearer": {"type": "http", "scheme": "bearer", "description": "A key: hk_<id>_<secret>."},
        "cookie": {
            "type": "apiKey",
            "in": "cookie",
            "name": "horae",
            "description": "A browser's cookie, set by POST /api/v1/sign-in. Writes must also send X-CSRF-Token.",
        },
    }


class Schemas(dict[Any, Document]):
    """The schema of each type in the document; a tuple of types stands for alternatives."""

    def of(self, body_type: Any) -> Document:
        return {"oneOf": [self[one] for one in body_type]} if isinstance(body_type, tuple) else self[body_type]


def _schemas(routes: list[Route]) -> tuple[Schemas, Document]:
    types = list(dict.fromkeys([ProblemDocument, *(one for route in routes for one in _types(route))]))
    schemas, components = schemas_of([*types, *RAW_TYPES], PREFIX)
    if "JobBody" in components:
        _typed(components)
    return Schemas(zip(types, schemas, strict=False)), components


def _typed(components: Document) -> None:
    """Add schemas for those fields of answers that msgspec describes only as any JSON.

    Answers show a definition in the form of the request, so its fields get the schemas of the request's fields.
    """
    written = components["JobBody"]["properties"]
    for name in JOB_VIEWS:
        shown = components[name]["properties"]
        shown |= {field: written[field] for field in AS_WRITTEN}
    components["BulkItem"]["properties"]["error"] = {"$ref": f"{PREFIX}Problem"}
    kinds = {f"urn:horae:{kind.slug}" for kind in _all_errors(HoraeError)}
    components["Problem"]["properties"]["type"]["enum"] = sorted(kinds)


def _all_errors(root: type[HoraeError]) -> Iterator[type[HoraeError]]:
    for kind in root.__subclasses__():
        if kind.__module__ in (root.__module__, InternalError.__module__):
            yield kind
        yield from _all_errors(kind)


def _types(route: Route) -> Iterator[Any]:
    for body_type in (route.takes or route.body_type, *route.gives.values()):
        yield from body_type if isinstance(body_type, tuple) else () if body_type is None else (body_type,)


def _operation(route: Route, schemas: Schemas, refusals: "Refusals") -> Document:
    operation: Document = {
        "operationId": route.name,
        "tags": [route.tag],
        "summary": route.summary,
        **({"description": route.description} if route.description != route.summary else {}),
        "parameters": [*_path_parameters(route), *_query_parameters(route), *_header_parameters(route)],
        "responses": {
            **{str(status): _answer(route, body_type, schemas) for status, body_type in route.gives.items()},
            **refusals.of(route),
        },
    }
    takes = route.takes or route.body_type
    if takes is not None:
        media = ("application/json", MERGE_PATCH) if route.method == "PATCH" else ("application/json",)
        content = {kind: {"schema": schemas.of(takes)} for kind in media}
        operation["requestBody"] = {"content": content, "required": _needs_body(takes)}
    if route.streams:
        operation["requestBody"] = {"content": {FILE: {"schema": FILE_SCHEMA}}, "required": True}
    if route.is_public:
        operation["security"] = []
    return operation


def _needs_body(takes: Any) -> bool:
    """Return whether a body is required. If an accepted type has no required field, an empty body counts as `{}`."""
    types = takes if isinstance(takes, tuple) else (takes,)
    return all(any(field.required for field in msgspec.structs.fields(body_type)) for body_type in types)


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
    """Remove null from the schema of a parameter, because a query cannot hold null: it leaves the parameter out."""
    rest = {name: value for name, value in schema.items() if not (name == "default" and value is None)}
    kept = [option for option in rest.get("anyOf", ()) if option.get("type") != "null"]
    if "anyOf" not in rest or len(kept) == len(rest["anyOf"]):
        return rest
    del rest["anyOf"]
    return {**(kept[0] if len(kept) == 1 else {"anyOf": kept}), **rest}


def _header_parameters(route: Route) -> Iterator[Document]:
    headers = {name: meaning for name, meaning in route.headers.items() if name != "Content-Type"}
    if route.idempotency in ("stored", "submission"):
        headers["Idempotency-Key"] = IDEMPOTENCY
    if route.idempotency == "submission":
        headers["traceparent"], headers["tracestate"] = TRACE, TRACE_STATE
    for name, meaning in headers.items():
        schema = HEADERS.get(name, TEXT)
        yield {"name": name, "in": "header", "required": False, "description": meaning, "schema": schema}


def _answer(route: Route, body_type: Any, schemas: Schemas) -> Document:
    answer: Document = {"description": route.summary}
    if body_type is not None:
        answer["content"] = {route.media: {"schema": FILE_SCHEMA if body_type is bytes else schemas.of(body_type)}}
    headers = {}
    if body_type is not None and route.tag not in UNLOCATED and route.gives.keys() & {201, 202}:
        headers["Location"] = _header("The path at which the created object can be read.")
    if inspect.isclass(body_type) and issubclass(body_type, Versioned):
        headers["ETag"] = _header("The object's version, for If-Match, and a digest of the answer, for If-None-Match.")
    elif is_tagged(route):
        headers["ETag"] = _header("A digest of the answer, for If-None-Match.")
    return {**answer, "headers": headers} if headers else answer


def _header(meaning: str, **schema: Any) -> Document:
    return {"schema": {"type": "string", **schema}, "description": meaning}


RESPONSE_NAMES: dict[type[HoraeError], str] = {InternalError: "Broken"}  # names that differ from the class names
RETRY_AFTER = {"Retry-After": _header("Seconds after which to try again.", pattern="^[0-9]+$")}
REFUSED_WITH: dict[int, Document] = {
    401: {"WWW-Authenticate": _header("How to present a credential.")},
    429: RETRY_AFTER,
    503: RETRY_AFTER,
}


class Refusals:
    """The answers with errors. Routes that refuse a request with the same errors share one component."""

    def __init__(self, schema: Document) -> None:
        self._content = {"application/problem+json": {"schema": schema}}
        self.components: Document = {}

    def of(self, route: Route) -> Document:
        """Return references to the components for the errors of a route, by status."""
        kinds: dict[int, list[type[HoraeError]]] = {}
        for error in _errors(route):
            kinds.setdefault(error.status, []).append(error)
        return {str(status): self._reference(status, kinds[status]) for status in sorted(kinds)}

    def _reference(self, status: int, errors: list[type[HoraeError]]) -> Document:
        names = sorted({RESPONSE_NAMES.get(error, error.__name__) for error in errors})
        name = "Or".join(names)
        titles = "; ".join(sorted({error.title for error in errors}))
        answer: Document = {"description": f"{titles}.", "content": self._content}
        if status in REFUSED_WITH:
            answer["headers"] = REFUSED_WITH[status]
        self.components[name] = answer
        return {"$ref": f"#/components/responses/{name}"}


def _errors(route: Route) -> Iterator[type[HoraeError]]:
    yield from route.refuses
    if not route.is_public:
        yield from (Unauthorized, Forbidden)
        if route.is_counted:
            yield TooOften
    if route.body is not None or route.query is not None or route.headers or route.idempotency:
        yield BadInput
    if route.body is not None or route.method == "POST":
        yield from (TooLarge, UnsupportedMedia)
    if route.idempotency in ("stored", "submission"):
        yield from (Conflict, KeyReused)
    if route.name != "health.live":
        yield from (Busy, InternalError)
