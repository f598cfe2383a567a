"""Options of the fields of a noun: one for each, typed by its kind, with the help of the table."""

from collections.abc import Callable, Container, Iterable, Mapping
from shlex import quote
from typing import Any

import click
from msgspec import NODEFAULT

from horae.cli.times import TIME
from horae.cli.values import loosely, pairs, read_json
from horae.model.fields.kinds import (
    Choice,
    Custom,
    Duration,
    Flag,
    Integer,
    Key,
    Kind,
    Listed,
    Moment,
    Name,
    Number,
    Tags,
    Text,
)
from horae.model.fields.table import Object, Row, Rows

NONE = "none"  # what stands for no value, where a field may be without one
_METAVARS: dict[type, str | None] = {
    Integer: "N", Number: "N", Duration: "SPAN", Key: "KEY", Text: "TEXT", Tags: "NAME=VALUE", Moment: "TIME",
    Flag: None, Choice: None,
}  # fmt: skip
CHOICES_IN_A_ROW = 60  # characters; a longer list of words goes to the help, where it wraps


def options_of(
    table: Rows, *, without: Container[str] = (), required: Container[str] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a command the options of a noun's fields."""
    offered = [row for row in table.rows if row.flag and row.name not in without]
    return with_options(option_of(row, table, required=row.name in required) for row in offered)


def given_by(table: Rows, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the options of a noun say, as a document says it."""
    return values_of((row for row in table.rows if row.keyword in options), options)


def option_of(row: Row, table: Rows, *, required: bool = False) -> Any:
    """Make the option that gives a field."""
    kind = row.kind
    name = f"--{row.flag}"
    said: dict[str, Any] = {"help": help_of(row, table), "metavar": row.field.metavar or _metavar(row), "default": None}
    if isinstance(kind, Flag):
        name, said["metavar"] = f"{name}/--{kind.off or f'not-{row.flag}'}", None
    elif isinstance(kind, Integer):
        said["type"] = click.IntRange(kind.least, kind.most)
    elif isinstance(kind, Number):
        said["type"] = click.FloatRange(kind.least, kind.most)
    elif isinstance(kind, Choice):
        said["type"] = click.Choice(kind.words)
        if len(_words(kind)) > CHOICES_IN_A_ROW:
            said |= {"metavar": row.keyword.upper(), "help": f"{said['help']} One of {', '.join(kind.words)}."}
    elif isinstance(kind, Moment):
        said["type"] = TIME
    if may_be_none(row, table):
        said["type"] = _OrNone(said.get("type", str))
    if is_many(kind):
        said |= {"multiple": True, "help": f"{said['help'].rstrip('.')}; repeatable."}
    return click.option(name, row.keyword, required=required, **said)


def may_be_none(row: Row, table: Rows) -> bool:
    """Tell whether `none` takes a field back to having no value; of texts, it would be one."""
    kind = row.kind
    is_without = row.default is not NODEFAULT and table.usual.get(row.name, "") is None
    return is_without and not (is_many(kind) or isinstance(kind, Flag | Text | Name | Key | Moment))


class _OrNone(click.ParamType):  # type: ignore[type-arg]  # not generic at run time before click 8.4
    """A value of a type, or nothing."""

    def __init__(self, type: Any) -> None:
        self.type = click.types.convert_type(type)
        self.name = self.type.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return NONE if value == NONE else self.type.convert(value, param, ctx)


class _FieldOf(click.Choice):  # type: ignore[type-arg]  # the same
    """A field by its option; by its name if it has none."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.fields = {row.flag or row.name: row.name for row in rows}
        super().__init__(list(self.fields))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self.fields[super().convert(value, param, ctx)]


def unset_option(rows: Iterable[Row]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make the option that takes fields back to their defaults."""
    fields = [row for row in rows if row.default is not NODEFAULT]
    example = next(row.flag for row in fields if row.flag)
    help = f"Take a field back to its default, as --unset {example}; repeatable."
    return click.option("--unset", multiple=True, metavar="FIELD", type=_FieldOf(fields), help=help)


def with_options(options: Iterable[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what gives a command these options, in their order."""

    given = tuple(options)

    def give(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(given):
            command = option(command)
        return command

    return give


def is_many(kind: Kind) -> bool:
    """Tell whether an option is repeated to give more than one value."""
    return isinstance(kind, Listed | Tags) or (isinstance(kind, Custom) and kind.option != "once")


def help_of(row: Row, table: Rows) -> str:
    """Return a field's help with an example and its default."""
    usual, text = table.usual.get(row.name), row.field.help.rstrip(".")
    example = f", as {shown}" if (shown := _example(row.kind, row.field.example)) else ""
    is_told = any(word in text for word in ("otherwise", "unless")) or isinstance(usual, bool)
    otherwise = f"; {usual} otherwise" if isinstance(usual, str | int) and usual and not is_told else ""
    return f"{text}{example}{otherwise}."


def _example(kind: Kind, example: Any) -> str:
    """Return an example as a line gives it; empty for one that is too long for it."""
    if isinstance(example, list):
        return _example(kind.item if isinstance(kind, Listed) else kind, example[0])
    if isinstance(example, dict) and isinstance(kind, Object):
        return quote(str(example[kind.main]))
    if isinstance(example, dict) and is_many(kind):
        return quote("=".join(map(str, next(iter(example.items())))))
    return quote(example) if isinstance(example, str) else ""


def _metavar(row: Row) -> str | None:
    """Return what the CLI calls a value of a kind."""
    kind = row.kind
    if isinstance(kind, Object):
        return line_of(kind)
    if isinstance(kind, Listed):
        return line_of(kind.item) if isinstance(kind.item, Object) else "VALUE"
    if isinstance(kind, Custom):
        return {"pairs": "NAME=VALUE", "repeated": "VALUE", "once": row.name.upper()}[kind.option]
    return (
        row.name.upper()
        if isinstance(kind, Name)
        else next(word for of, word in _METAVARS.items() if isinstance(kind, of))
    )


def line_of(kind: Object) -> str:
    """Return how an object is written on a line: KEY[,patience=SPAN]."""
    words = {row.name: row.field.metavar or _metavar(row) or _words(row.kind) for row in kind.table.rows}
    main = words.pop(kind.main)
    alone = "|true" if any(short is bool for short, _ in kind.short) else ""
    return f"{main}{alone}" + "".join(f"[,{name}={word}]" for name, word in words.items())


def _words(kind: Kind) -> str:
    return "|".join(kind.words) if isinstance(kind, Choice) else "true|false"


def values_of(rows: Iterable[Row], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what options say, by the names of the fields; null for what is `none`."""
    given = ((row, options[row.keyword]) for row in rows)
    return {row.name: value_of(row, value) for row, value in given if value is not None and value != ()}


def changes_of(rows: Iterable[Row], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what options change: what they say, and null for what goes back to its default."""
    return {**values_of(rows, options), **dict.fromkeys(options.get("unset", ()))}


def value_of(row: Row, given: Any) -> Any:
    """Return what an option says, as a document says it."""
    kind = row.kind
    if given in (NONE, (NONE,)) and not isinstance(kind, Text | Name | Key | Listed):
        return None
    if isinstance(kind, Object):
        return _object(kind, given, row)
    if isinstance(kind, Listed) and isinstance(kind.item, Object):
        return [_object(kind.item, one, row) for one in given]
    if isinstance(kind, Tags):
        return pairs(given, f"--{row.flag}")
    if isinstance(kind, Custom) and kind.option == "once" and isinstance(given, str) and given.lstrip().startswith("{"):
        return read_json(given, f"--{row.flag}")
    if isinstance(kind, Custom) and kind.option == "pairs":
        texts = pairs(given, f"--{row.flag}")
        return texts if kind.python == "Mapping[str, str]" else {name: loosely(text) for name, text in texts.items()}
    return list(given) if is_many(kind) else given


def _object(kind: Object, text: str, row: Row) -> Any:
    """Read JSON, or the main member with others as `,name=value` behind it; it may hold commas of its own."""
    if text.lstrip().startswith(("{", "@")):
        return read_json(text, f"--{row.flag}")
    if text == "true" and any(short is bool for short, _ in kind.short):
        return True
    parts: dict[str, Any] = {}
    while True:
        text, comma, last = text.rpartition(",")
        name, equals, value = last.partition("=")
        if not comma or not equals or name not in kind.table.names or name == kind.main:
            return {kind.main: _number(kind.table[kind.main], f"{text}{comma}{last}"), **parts}
        parts[name] = _number(kind.table[name], value)


def _number(row: Row, text: str) -> Any:
    return int(text) if isinstance(row.kind, Integer) and text.isdecimal() else text
