"""The text of a method, generated from a route."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Set
from inspect import get_annotations
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Meta, Raw, Struct, UnsetType

from horae.client.encode import camel
from horae.client.views import Status
from horae.model.triggers.decisions.schedule import KIND_NAMES
from horae.server.reading.bodies import Duration, DurationText, When
from horae.server.route import API, Route

# The module of each name that generated methods use.
NAMES = {
    "Any": "typing", "Literal": "typing", "Sequence": "collections.abc", "datetime": "datetime",
    "ResultPage": "horae.client.views", "ApiDocument": "horae.client.views", "page_of": "horae.client.views",
    "Status": "horae.client.views", "path_of": "horae.client.transport.calls",
    "Span": "horae.model.executions.job_exceptions",
    "definition": "horae.client.encode", "given": "horae.client.encode", "instant": "horae.client.encode",
    "span": "horae.client.encode",
    "document": "horae.client.encode",
    "Unpack": "typing",
    "AlertRuleFields": "horae.features.alerts.options",
    "AlertChannelFields": "horae.features.alerts.options", "TemplateFields": "horae.features.templates.options",
    "TriggerKind": "horae.client.kernel.trigger_options",
}  # fmt: skip
# Answers with another class name in the SDK.
VIEWS = {
    "RuleView": "AlertRule", "ChannelView": "AlertChannel", "AlertTestView": "AlertTest",
    "AutoscaleView": "AutoscaleSignals", "EventView": "SentEvent", "SignalView": "SignalReceipt",
    "CancelView": "Cancellation", "BulkView": "BulkResult", "JobTotalsView": "JobStatisticsInfo",
    "ListedJobView": "JobInfo", "JobExplanationView": "Explanation",
}  # fmt: skip
# Documents with fields that are also keywords.
TYPED = {"AlertRuleBody": "AlertRuleFields", "AlertChannelBody": "AlertChannelFields", "TemplateBody": "TemplateFields"}
PLAIN: dict[Any, str] = {str: "str", int: "int", float: "float", bool: "bool", Raw: "Any", Any: "Any"}
SHAPES = (get_args(Duration)[1], get_args(When)[1], get_args(DurationText)[1])
STATUSES = get_args(Status)
DEFAULTED = ("otherwise", "unless", "by default")  # a description with one of these words mentions the default already
PAGING = ("limit", "cursor")
NOUNS = {"dlq": "execution"}  # nouns of ids, where the path has another word
WIDTH = 120


class Field(NamedTuple):
    """A parameter of a method that is sent in the query or the body."""

    name: str
    sent: str  # the name in the API
    type: str
    value: str  # the expression that is sent
    required: bool
    about: str

    @property
    def parameter(self) -> str:
        if self.required:
            return f"{self.name}: {self.type}"
        if self.value.endswith(" or None") and self.type == "bool":
            return f"{self.name}: bool = False"
        return (
            f"{self.name}: {self.type} = ()"
            if self.type[:8] == "Sequence"
            else f"{self.name}: {self.type} | None = None"
        )


def method(route: Route, name: str, views: Set[str]) -> str:
    """Return the text of the method that sends a route's request."""
    query = list(fields(route.query))
    body = list(fields(route.body_type))
    kind, wrapped = answer(route, views)
    text = f"{head(name, list(parameters(route, query, body)), kind)}\n"
    text += f"{textwrap.indent(docstring(route, [*query, *body]), '    ')}\n"
    line = f"    return {wrapped}await self._caller.{{}})" if wrapped else "    await self._caller.{}"
    text += statement(line, *call(route, query, body))
    return textwrap.indent(text, "    ")


def head(name: str, given: list[str], kind: str) -> str:
    """Return the method's first line, or lines with as many parameters as fit."""
    line = f"async def {name}({', '.join(['self', *given])}) -> {kind}:"
    if len(line) <= WIDTH - 4:
        return line
    one = f"    self, {', '.join(given)}"
    if len(one) <= WIDTH - 4:
        return f"async def {name}(\n{one}\n) -> {kind}:"
    return f"async def {name}(\n{filled(['self', *given])}\n) -> {kind}:  # fmt: skip"


def filled(parts: Iterable[str]) -> str:
    """Return lines with as many parts as fit."""
    rows = [""]
    for part in parts:
        if len(rows[-1]) + len(part) + 2 > WIDTH - 12:
            rows.append("")
        rows[-1] += f"{' ' if rows[-1] else ''}{part},"
    return textwrap.indent("\n".join(rows), "    ")


def statement(line: str, request: str, document: str) -> str:
    """Return the request as one statement, after an assignment if the document would make it too long."""
    whole = line.format(request.format(document))
    if not document or len(whole) <= WIDTH - 4:
        return f"{whole}\n"
    name = "body" if document.startswith("given") else "query"
    assigned = f"{name} = {document}"
    if len(assigned) > WIDTH - 8:
        start, inner, end = re.fullmatch(r"(given\(\*\*{|given\(|{)(.*?)(}?\)?)", document).groups()  # type: ignore[union-attr]
        assigned = f"{name} = {start}\n{filled(inner.split(', '))}\n{end}  # fmt: skip"
    return f"{textwrap.indent(assigned, '    ')}\n{line.format(request.format(name))}\n"


def fields(kind: Any) -> Iterator[Field]:
    """Yield the fields of a query or a body, required fields first and inherited fields last."""
    if not (isinstance(kind, type) and issubclass(kind, Struct)):
        return
    own = [name for base in kind.__mro__ for name in get_annotations(base)]
    found = {one.name: _field(one) for one in msgspec.structs.fields(kind)}
    yield from sorted(
        (found[name] for name in dict.fromkeys(own) if name in found),
        key=lambda field: (not field.required, field.name in PAGING),
    )


def _field(info: msgspec.structs.FieldInfo) -> Field:
    kind, metas = _parts(info.type)
    about = next((meta.description for meta in reversed(metas) if meta.description and meta not in SHAPES), "")
    if about and isinstance(info.default, int | str) and info.default and not any(word in about for word in DEFAULTED):
        about = f"{about.removesuffix('.')}; {info.default} by default."
    required = info.default is NODEFAULT and info.default_factory is NODEFAULT
    name, value = info.name, info.name
    if SHAPES[0] in metas or SHAPES[2] in metas:
        return Field(name, info.encode_name, "Span", f"span({value})", required, about)
    if SHAPES[1] in metas:
        return Field(name, info.encode_name, "datetime | str", f"instant({value})", required, about)
    spelled = spell(kind)
    if spelled == "bool" and info.default is False:
        value = f"{name} or None"
    if spelled.startswith("Sequence"):
        value = f"list({name})" if required else f"list({name}) or None"
    return Field(name, info.encode_name, spelled, value, required, about)


def _parts(kind: Any) -> tuple[Any, list[Meta]]:
    """Return a type without None and UNSET, and its annotations."""
    metas: list[Meta] = []
    while True:
        if get_origin(kind) is Annotated:
            kind, *more = get_args(kind)
            metas = [*(meta for meta in more if isinstance(meta, Meta)), *metas]
            continue
        if get_origin(kind) in (Union, UnionType):
            left = [one for one in get_args(kind) if one not in (NoneType, UnsetType)]
            if len(left) == 1:
                kind = left[0]
                continue
        return kind, metas


def spell(kind: Any) -> str:
    """Return a type as the SDK writes it."""
    kind, _ = _parts(kind)
    if kind in PLAIN:
        return PLAIN[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " | ".join(dict.fromkeys(spell(one) for one in inner))
    if origin is Literal and inner == KIND_NAMES:
        return "TriggerKind"
    if origin is Literal:
        more = [value for value in inner if value not in STATUSES] if set(STATUSES) <= set(inner) else inner
        literal = f"Literal[{', '.join(map(_quoted, more))}]" if more else ""
        return " | ".join(filter(None, ("Status" if more is not inner else "", literal)))
    if origin in (list, tuple, frozenset, set):
        return f"Sequence[{spell(inner[0])}]"
    if origin is dict:
        return f"dict[{', '.join(map(spell, inner))}]"
    if isinstance(kind, type) and issubclass(kind, Struct):
        return "dict[str, Any]"
    raise SystemExit(f"The SDK has no spelling for {kind!r}.")


def parameters(route: Route, query: list[Field], body: list[Field]) -> Iterator[str]:
    """Yield a method's parameters: parts of the path, required fields, and then optional keywords."""
    yield from (f"{part}: str" for part in path_parts(route))
    both = [*body, *query]
    yield from (field.parameter for field in both if field.required)
    document = takes_document(route)
    if document and route.method != "PATCH":
        yield "definition: dict[str, Any] | None = None" if typed(route) else "definition: dict[str, Any]"
    rest = [field.parameter for field in both if not field.required]
    if has_if_match(route):
        rest.append("if_match: str | None = None")
    yield from ["*", *rest] if rest else []
    if fields := typed(route):
        yield f"**fields: Unpack[{fields}]"
    if document and route.method == "PATCH":
        yield "**fields: Any"


def path_parts(route: Route) -> list[str]:
    """Return the names of a path's parameters; `{id}` is named after its noun, as `execution_id`."""
    return [_parameter(noun, name) for noun, name in re.findall(r"([\w-]+)/{(\w+)}", route.path)]


def _parameter(noun: str, name: str) -> str:
    return f"{NOUNS.get(noun, noun.removesuffix('s'))}_id" if name == "id" else name


def takes_document(route: Route) -> bool:
    return route.body_type is not None and get_origin(route.body_type) is dict


def typed(route: Route) -> str:
    """Return the type of a document's fields, if these are also keywords."""
    return TYPED.get(getattr(route.takes, "__name__", ""), "") if takes_document(route) else ""


def has_if_match(route: Route) -> bool:
    return "If-Match" in route.headers and route.method in ("PUT", "PATCH")


def call(route: Route, query: list[Field], body: list[Field]) -> tuple[str, str]:
    """Return the call of the caller, with a placeholder for its query or body, and that document."""
    names = iter(path_parts(route))
    parts = [next(names) if part.startswith("{") else f'"{part}"' for part in route.path[len(API) + 1 :].split("/")]
    path = f"path_of({', '.join(parts)})"
    asked = _literal({field.name if camel(field.name) == field.sent else field.sent: field.value for field in query})
    if route.method in ("GET", "DELETE"):
        return f"{route.method.lower()}({path}{', {}' if query else ''})", asked if query else ""
    if takes_document(route):
        whole = "document(definition, fields)" if typed(route) else "definition"
        sent = "definition(fields)" if route.method == "PATCH" else whole
    elif all(camel(field.name) == field.sent for field in body):
        sent = f"given({', '.join(f'{field.name}={field.value}' for field in body)})" if body else ""
    else:
        sent = f"given(**{_literal({field.sent: field.value for field in body})})"
    match = ", if_match" if has_if_match(route) else ""
    more = f"{match}{f', query={asked}' if query else ''}".replace("{", "{{").replace("}", "}}")
    verb = "post(" if route.method == "POST" else f'edit("{route.method}", '
    return f"{verb}{path}{', {}' if sent else ''}{more})", sent


def _literal(values: dict[str, str]) -> str:
    return "{" + ", ".join(f'"{name}": {value}' for name, value in values.items()) + "}"


def answer(route: Route, views: Set[str]) -> tuple[str, str]:
    """Return the type of a method's result, and the start of the expression that creates it."""
    kind = next(iter(route.gives.values()))
    kind = kind[0] if isinstance(kind, tuple) else kind
    if kind is None:
        return "None", ""
    item = _item(kind)
    if item is not None:
        one = _view(item, views)
        return f"ResultPage[{one}]", f"page_of({one}, "
    one = _view(kind, views)
    return one, f"{one}.of("


def _item(kind: Any) -> Any:
    """Return the type of a list's items; None for a type that is no list."""
    if args := get_args(kind):
        return args[0]
    if not kind.__name__.endswith("Page"):
        return None
    return next(get_args(one.type)[0] for one in msgspec.structs.fields(kind) if one.name == "items")


def _view(kind: Any, views: Set[str]) -> str:
    name = VIEWS.get(kind.__name__, kind.__name__.removesuffix("View"))
    return next((one for one in (name, f"{name}Info") if one in views), "ApiDocument")


def docstring(route: Route, said: list[Field]) -> str:
    """Return the docstring: the route's description and each parameter."""
    about = " ".join(f"`{field.name}`: {field.about}" for field in said if field.about and field.name not in PAGING)
    width = WIDTH - 8
    paragraphs = [part for part in (*route.description.split("\n\n"), about) if part]
    wrapped = ["\n".join(textwrap.wrap(part, width - 6, break_on_hyphens=False)) for part in paragraphs]
    if wrapped[1:] or "\n" in wrapped[0]:
        wrapped[-1] += "\n"
    text = "\n\n".join(wrapped)
    for field in said:
        text = text.replace(f"`{field.sent}`", f"`{field.name}`")
    return f'"""{text}"""'


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
