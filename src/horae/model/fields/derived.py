"""What is made from a table: the bodies and views of the OpenAPI document, and the fields as data."""

from copy import copy
from functools import partial
from typing import Annotated, Any, Union

from msgspec import NODEFAULT, UNSET, Meta, Struct, UnsetType, defstruct, field

from horae.model.fields.kinds import Choice, Integer, Number
from horae.model.fields.table import Row, Rows, Table


def body(table: Rows, name: str, doc: str, base: type[Struct], *, needed: tuple[str, ...] = ()) -> Any:
    """Make the struct of what a request may say; null stands for a field that is left out unless it is needed."""
    fields: list[Any] = []
    for row in table.rows:
        given = row.kind.given if row.name in needed else Union[row.kind.given, None]  # noqa: UP007 - made of values
        kept = field(name=row.name) if row.name in needed else field(default=None, name=row.name)
        fields.append((row.keyword, Annotated[given, _about(row)], kept))
    return defstruct(name, fields, bases=(base,), namespace={"__doc__": doc}, frozen=True, kw_only=True)


def view(table: Table, name: str, doc: str, base: type[Struct]) -> Any:
    """Make the struct of what an answer shows; fields of a group that is needed are there if they say something."""
    fields = [
        (row.keyword, Annotated[_shown(table, row), Meta(description=row.field.help)], _kept(table, row))
        for row in table.rows
    ]
    return defstruct(name, fields, bases=(base,), namespace={"__doc__": doc}, frozen=True, kw_only=True)


def _shown(table: Table, row: Row) -> Any:
    if row.default is NODEFAULT:
        return row.kind.shown if row.group is None else Union[row.kind.shown, UnsetType]  # noqa: UP007 - made of values
    return row.kind.shown if table.usual[row.name] is not None else Union[row.kind.shown, None]  # noqa: UP007


def _kept(table: Table, row: Row) -> Any:
    usual = table.usual[row.name]
    if row.default is NODEFAULT:
        return field(name=row.name) if row.group is None else field(default=UNSET, name=row.name)
    if isinstance(usual, list | dict) and usual:
        return field(default_factory=partial(copy, usual), name=row.name)
    return field(default=usual, name=row.name)


def _about(row: Row) -> Meta:
    example = row.field.example
    return Meta(description=row.field.help, examples=None if example is None else [example])


def described(table: Rows) -> list[dict[str, Any]]:
    """Return the fields as data, for the UI and the reference pages."""
    return [
        {
            "name": row.name,
            "kind": type(row.kind).__name__.lower(),
            "default": table.usual.get(row.name),
            "help": row.field.help,
            "example": row.field.example,
            **({"words": list(row.kind.words)} if isinstance(row.kind, Choice) else {}),
            **({"least": row.kind.least, "most": row.kind.most} if isinstance(row.kind, Integer | Number) else {}),
        }
        for row in table.rows
    ]
