"""Options for the fields of a noun: one per field, typed by the field's kind, with help from the field table."""

from collections.abc import Callable, Container, Iterable, Mapping
from shlex import quote
from typing import Any

import click
from msgspec import NODEFAULT

from horae.cli.times import TIME
from horae.cli.values import loosely, pairs, read_json
from horae.errors import BadInput
from horae.model.fields.kinds import (
    Choice,
    Custom,
    Duration,
    Flag,
    Integer,
    Key,
    Kind,
    ListOf,
    Moment,
    Name,
    Number,
    Tags,
    Text,
)
from horae.model.fields.table import Object, Row, Rows

NONE = "none"  # the text that stands for no value, for fields that may be empty
_METAVARS: dict[type, str | None] = {
    Integer: "N", Number: "N", Duration: "SPAN", Key: "KEY", Text: "TEXT", Tags: "NAME=VALUE", Moment: "TIME",
    Flag: None, Choice: None,
}  # fmt: skip
CHOICES_IN_A_ROW = 60  # characters; a longer list of choices is shown in the help text, where it wraps


def options_of(
    table: Rows, *, without: Container[str] = (), required: Container[str] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the options of a noun's fields to a command."""
    offered = [row for row in table.rows if row.flag and row.name not in without]
    return with_options(option_of(row, table, required=row.name in required) for row in offered)


def given_by(table: Rows, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a noun's options as a document."""
    return values_of((row for row in table.rows if row.keyword in options), options)


def option_of(row: Row, table: Rows, *, required: bool = False) -> Any:
    """Create the option of a field."""
    kind = row.kind
    name = f"--{row.flag}"
    settings: dict[str, Any] = {
        "help": help_of(row, table),
        "metavar": row.field.metavar or _metavar(row),
        "default": None,
    }
    if isinstance(kind, Flag):
        name, settings["metavar"] = f"{name}/--{kind.off or f'not-{row.flag}'}", None
    elif isinstance(kind, Integer):
        settings["type"] = click.IntRange(kind.least, kind.most)
    elif isinstance(kind, Number):
        settings["type"] = click.FloatRange(kind.least, kind.most)
    elif isinstance(kind, Choice):
        settings["type"] = click.Choice(kind.words)
        if len(_words(kind)) > CHOICES_IN_A_ROW:
            settings |= {"metavar": row.keyword.upper(), "help": f"{settings['help']} One of {', '.join(kind.words)}."}
    elif isinstance(kind, Moment):
        settings["type"] = TIME
    if may_be_none(row, table):
        settings["type"] = _OrNone(settings.get("type", str))
    if is_many(kind):
        settings |= {"multiple": True, "help": f"{settings['help'].rstrip('.')}; repeatable."}
    return click.option(name, row.keyword, required=required, **settings)


def may_be_none(row: Row, table: Rows) -> bool:
    """Return whether the value `none` clears the field. Text fields have no such value: `none` is a valid text."""
    kind = row.kind
    is_without = row.default is not NODEFAULT and table.defaults.get(row.name, "") is None
    return is_without and not (is_many(kind) or isinstance(kind, Flag | Text | Name | Key | Moment))


class _OrNone(click.ParamType):  # type: ignore[type-arg]  # not generic at run time before click 8.4
    """A value of a type, or `none`."""

    def __init__(self, kind: Any) -> None:
        self.type = click.types.convert_type(kind)
        self.name = self.type.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return NONE if value == NONE else self.type.convert(value, param, ctx)


class _FieldOf(click.Choice):  # type: ignore[type-arg]  # not generic at run time before click 8.4
    """A field, named by its option or, without an option, by its name."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.fields = {row.flag or row.name: row.name for row in rows}
        super().__init__(list(self.fields))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self.fields[super().convert(value, param, ctx)]


def unset_option(rows: Iterable[Row]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Create the option that resets fields to their defaults."""
    fields = [row for row in rows if row.default is not NODEFAULT]
    example = next(row.flag for row in fields if row.flag)
    text = f"Reset a field to its default, for example --unset {example}; repeatable."
    return click.option("--unset", multiple=True, metavar="FIELD", type=_FieldOf(fields), help=text)


def with_options(options: Iterable[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds these options to a command, in their order."""

    given = tuple(options)

    def give(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(given):
            command = option(command)
        return command

    return give


def is_many(kind: Kind) -> bool:
    """Return whether the option may be repeated to give several values."""
    return isinstance(kind, ListOf | Tags) or (isinstance(kind, Custom) and kind.option != "once")


def help_of(row: Row, table: Rows) -> str:
    """Return a field's help text with an example and its default."""
    usual, text = table.defaults.get(row.name), row.field.help.rstrip(".")
    example = f", such as {shown}" if (shown := _example(row.kind, row.field.example)) else ""
    mentions_default = any(word in text for word in ("otherwise", "unless", "by default")) or isinstance(usual, bool)
    default = f"; {usual} by default" if isinstance(usual, str | int) and usual and not mentions_default else ""
    return f"{text}{example}{default}."


def _example(kind: Kind, example: Any) -> str:
    """Return an example as text for a help line; empty if it is too long."""
    if isinstance(example, list):
        return _example(kind.item if isinstance(kind, ListOf) else kind, example[0])
    if isinstance(example, dict) and isinstance(kind, Object):
        return quote(str(example[kind.main]))
    if isinstance(example, dict) and is_many(kind):
        return quote("=".join(map(str, next(iter(example.items())))))
    return quote(example) if isinstance(example, str) else ""


def _metavar(row: Row) -> str | None:
    """Return the placeholder for a field's value in help texts."""
    kind = row.kind
    if isinstance(kind, Object):
        return line_of(kind)
    if isinstance(kind, ListOf):
        return line_of(kind.item) if isinstance(kind.item, Object) else "VALUE"
    if isinstance(kind, Custom):
        return {"pairs": "NAME=VALUE", "repeated": "VALUE", "once": row.name.upper()}[kind.option]
    return (
        row.name.upper()
        if isinstance(kind, Name)
        else next(word for of, word in _METAVARS.items() if isinstance(kind, of))
    )


def line_of(kind: Object) -> str:
    """Return the notation of an object on the command line, such as KEY[,patience=SPAN]."""
    words = {row.name: row.field.metavar or _metavar(row) or _words(row.kind) for row in kind.table.rows}
    main = words.pop(kind.main)
    alone = "|true" if any(short is bool for short, _ in kind.short) else ""
    return f"{main}{alone}" + "".join(f"[,{name}={word}]" for name, word in words.items())


def _words(kind: Kind) -> str:
    return "|".join(kind.words) if isinstance(kind, Choice) else "true|false"


def values_of(rows: Iterable[Row], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of options by field name; the value `none` becomes None."""
    given = ((row, options[row.keyword]) for row in rows)
    return {row.name: value_of(row, value) for row, value in given if value is not None and value != ()}


def changes_of(rows: Iterable[Row], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes that options request: their values, and None for each field of `--unset`."""
    return with_resets(values_of(rows, options), options)


def with_resets(given: dict[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Add None for each field of `--unset` to the fields that options set. Refuse a field that is set and reset."""
    resets = dict.fromkeys(options.get("unset", ()))
    if both := [name for name in resets if name in given]:
        raise BadInput(f"--unset resets {both[0]}, which another option sets.", "Remove one of the two options.")
    return {**given, **resets}


def value_of(row: Row, given: Any) -> Any:
    """Return the value of an option in the form that documents use."""
    kind = row.kind
    if given in (NONE, (NONE,)) and not isinstance(kind, Text | Name | Key | ListOf):
        return None
    if isinstance(kind, Object):
        return _object(kind, given, row)
    if isinstance(kind, ListOf) and isinstance(kind.item, Object):
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
    """Read an object: JSON, or the main member followed by others as `,name=value`. The main one may contain commas."""
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
