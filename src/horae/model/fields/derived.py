"""Values derived from a field table: the structs of request bodies and answers.

The OpenAPI document describes these structs.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import partial
from typing import Annotated, Any, Union

from msgspec import NODEFAULT, UNSET, Meta, Struct, UnsetType, defstruct, field

from horae.model.fields.table import Row, Rows, Table


def body(
    table: Rows,
    name: str,
    doc: str,
    base: type[Struct],
    *,
    needed: tuple[str, ...] = (),
    types: Mapping[str, Any] = {},
) -> Any:
    """Make the struct of a request body. A null field counts as left out, except for the required fields in `needed`.

    `types` replaces the types of some fields by ones that describe them better in the OpenAPI document.
    """
    fields: list[Any] = []
    for row in table.rows:
        kind = types.get(row.name, row.kind.given)
        given = kind if row.name in needed else Union[kind, None]  # noqa: UP007 - made of values
        kept = field(name=row.name) if row.name in needed else field(default=None, name=row.name)
        fields.append((row.keyword, Annotated[given, _about(row)], kept))
    return defstruct(name, fields, bases=(base,), namespace={"__doc__": doc}, frozen=True, kw_only=True)


def decoded(rows: Iterable[Row], name: str, doc: str, base: type[Struct]) -> Any:
    """Make the struct of a request body that msgspec decodes and checks; only fields with default None accept null."""
    fields: list[Any] = []
    for row in rows:
        given = Union[row.kind.given, None] if row.default is None else row.kind.given  # noqa: UP007 - made of values
        fields.append((row.attribute, Annotated[given, _about(row)], field(default=row.default, name=row.name)))
    return defstruct(name, fields, bases=(base,), namespace={"__doc__": doc}, frozen=True, kw_only=True)


def reader(rows: Iterable[Row], struct: type[Struct], arguments: str, **beside: str) -> Callable[..., Any]:
    """Compile a function that turns a `body` into a struct, because a loop over the fields takes twice as long.

    `arguments` are the parameters of the function. `beside` has source code for the values of further attributes.
    """
    rows = tuple(rows)
    made = [f"{name}={source}" for name, source in beside.items()]
    for row in rows:
        value = f"body.{row.attribute}"
        read = f"None if {value} is None else read_{row.attribute}({value}, {row.name!r})"
        made.append(f"{row.attribute}={read if row.is_converted else value}")
    known = {"make": struct, **{f"read_{row.attribute}": row.kind.read for row in rows}}
    compiled: Callable[..., Any] = eval(f"lambda {arguments}: make({', '.join(made)})", known)  # noqa: S307
    return compiled


def view(table: Table, name: str, doc: str, base: type[Struct]) -> Any:
    """Make the struct of an answer. A required field may be absent from the answer if it belongs to a group."""
    fields = [
        (row.keyword, Annotated[_shown(table, row), Meta(description=row.field.help)], _kept(table, row))
        for row in table.rows
    ]
    return defstruct(name, fields, bases=(base,), namespace={"__doc__": doc}, frozen=True, kw_only=True)


def _shown(table: Table, row: Row) -> Any:
    if row.default is NODEFAULT:
        return row.kind.shown if row.group is None else Union[row.kind.shown, UnsetType]  # noqa: UP007 - made of values
    return row.kind.shown if table.defaults[row.name] is not None else Union[row.kind.shown, None]  # noqa: UP007


def _kept(table: Table, row: Row) -> Any:
    usual = table.defaults[row.name]
    if row.default is NODEFAULT:
        return field(name=row.name) if row.group is None else field(default=UNSET, name=row.name)
    if isinstance(usual, list | dict) and usual:
        return field(default_factory=partial(copy, usual), name=row.name)
    return field(default=usual, name=row.name)


def _about(row: Row) -> Meta:
    """Return the OpenAPI description of a field: its help, the format of its kind, and an example."""
    example = row.field.example
    how = [meta.description for meta in getattr(row.kind.given, "__metadata__", ()) if meta.description]
    return Meta(description=" ".join([row.field.help, *how]), examples=None if example is None else [example])
