"""Tables: the fields of an object such as a job, declared on its struct, and the reader and writer made from them.

    priority: Annotated[int, Field(Integer(0, 9), "From 0 (least urgent) to 9 (most urgent).")] = 4

msgspec ignores these annotations. So a stored struct decodes as fast as without them, and is not validated again. A
`Group` reads and writes several fields that together make an attribute, such as `rate` and `burst`.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from keyword import iskeyword
from operator import attrgetter
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct, structs

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
from horae.model.fields.values import an_object, refuse_unknown

Document = Mapping[str, Any]  # fields by their names in the API


@dataclass(frozen=True)
class Object(Kind):
    """A struct with its own table.

    `short` lists abbreviations: a value of the given type may stand for an object with just the given member; "" means
    an object without members, for `true`. `main` is the member that a plain CLI value sets. `what` names the object in
    errors about unknown fields.
    """

    struct: type[Struct]
    remedy: str
    what: str = ""
    short: tuple[tuple[type, str], ...] = ()
    main: str = ""
    check: Callable[[Any, str], None] | None = None  # a rule across members
    shows_all: bool = False  # whether members without a value are written as null
    brief: bool = False  # whether members with their default value are left out
    shown = dict[str, Any]

    @cached_property
    def table(self) -> "Table":
        return Table(self.struct, self.what)

    @property
    def given(self) -> Any:
        return Union[(*(kind for kind, _ in self.short), dict[str, Any])]

    @property
    def python(self) -> str:
        return " | ".join([*(kind.__name__ for kind, _ in self.short), "Mapping[str, Any]"])

    def read(self, value: Any, at: str) -> Any:
        for kind, member in self.short:
            if isinstance(value, kind) and value is not False:
                value = {member: value} if member else {}
        made = self.table.make(an_object(value, at, self.remedy), at, self.remedy)
        if self.check is not None:
            self.check(made, at)
        return made

    def write(self, value: Any) -> dict[str, Any]:
        if self.brief:
            return self.table.write_changed(value)
        written = self.table.write(value)
        return written if self.shows_all else {name: part for name, part in written.items() if part is not None}


AnyKind = Text | Name | Integer | Number | Flag | Duration | Moment | Choice | Key | Tags | Custom | Object | ListOf


@dataclass(frozen=True, eq=False)
class Field:
    """The declaration of one field, from which all texts and forms that users see are made."""

    kind: AnyKind
    help: str  # one sentence for the OpenAPI description, the CLI help, the SDK keyword and the reference
    name: str = ""  # its name in the API; by default the attribute's name in camelCase
    example: Any = None
    since: str = ""  # the version that added it, if not the first
    default: Any = None  # in stored form, for a required attribute of the struct, which is always stored
    flag: str | None = None  # the CLI option; by default the name with dashes, "" for none
    metavar: str = ""  # the CLI's placeholder for its value; the default depends on its kind
    sdk: bool = True  # whether the SDK has a keyword for it
    merges: bool = False  # whether a patch changes it key by key
    tells: str = ""  # the name of the only kind of object that has this field, which identifies the kind


@dataclass(frozen=True, eq=False)
class Group:
    """Several fields that together make attributes.

    `read` turns a document into attributes, `write` turns a struct into fields. If a group has no reader or no writer,
    the caller of the table reads or writes its fields.
    """

    read: Callable[[Document, str], dict[str, Any]] | None = None
    write: Callable[[Any], dict[str, Any]] | None = None


class Row(Struct, frozen=True, kw_only=True):
    """A field together with the attribute of the struct on which it is declared."""

    name: str
    attribute: str
    field: Any  # a Field or a subclass
    default: Any  # in stored form; NODEFAULT when it is required
    group: Group | None

    @property
    def kind(self) -> AnyKind:
        kind: AnyKind = self.field.kind
        return kind

    @property
    def is_needed(self) -> bool:
        return self.default is NODEFAULT and self.group is None

    @property
    def keyword(self) -> str:
        """The name of the field in Python, in snake_case."""
        snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in self.name)
        return f"{snake}_" if iskeyword(snake) else snake

    @property
    def is_converted(self) -> bool:
        """Return whether the API form of its value differs from the stored form."""
        kind = self.kind
        return type(kind).write is not Kind.write and not (isinstance(kind, Custom) and kind.writes is None)

    @property
    def flag(self) -> str:
        """The CLI option without leading dashes; empty for none."""
        given: str | None = self.field.flag
        return self.keyword.strip("_").replace("_", "-") if given is None else given


class Rows:
    """Fields in order; `what` names the object that has them in errors."""

    def __init__(self, rows: Iterable[Row], what: str) -> None:
        self._by_name: dict[str, Row] = {}
        for row in rows:
            self._by_name.setdefault(row.name, row)
        self.rows, self.names, self.what = tuple(self._by_name.values()), tuple(self._by_name), what

    def __getitem__(self, name: str) -> Row:
        return self._by_name[name]

    @property
    def defaults(self) -> dict[str, Any]:
        """The defaults in API form; None for a field without a default."""
        raise NotImplementedError

    def where(self, says: Callable[[Any], Any]) -> tuple[str, ...]:
        """Return the names of the fields for which `says` is true."""
        return tuple(row.name for row in self.rows if says(row.field))

    def refuse_unknown(self, given: Document, at: str = "") -> None:
        """Raise BadInput for a field that does not exist; `at` is the path of the object."""
        if not self._by_name.keys() >= given.keys():
            refuse_unknown(given, self.names, self.what or at, f"{at}." if at else "")

    def keywords(self, fields: Document) -> dict[str, Any]:
        """Return the same fields by their Python names."""
        return {self._by_name[name].keyword: value for name, value in fields.items()}


class JoinedRows(Rows):
    """The fields of several tables. A field that several tables have is taken from the first of them."""

    def __init__(self, tables: Iterable["Table"], what: str) -> None:
        self._tables = tuple(tables)
        super().__init__((row for table in self._tables for row in table.rows), what)

    @cached_property
    def defaults(self) -> dict[str, Any]:
        usual = {name: value for table in reversed(self._tables) for name, value in table.defaults.items()}
        return {name: usual[name] for name in self.names}


class Table(Rows):
    """The fields of a struct; `rows` overrides them, for another order or for fields of other structs."""

    def __init__(self, struct: type[Struct], what: str, rows: Iterable[Row] | None = None) -> None:
        super().__init__(rows_of(struct) if rows is None else rows, what)
        self.struct = struct
        self._needed = [row.name for row in self.rows if row.is_needed]
        self._usual = {
            row.attribute: row.field.default for row in self.rows if row.field.default is not None and row.group is None
        }
        parts = [(group, tuple(rows)) for group, rows in groupby(self.rows, lambda row: row.group or row)]
        groups = [group for group, _ in parts if isinstance(group, Group)]
        if len(set(groups)) < len(groups):
            raise TypeError(f"{struct.__name__} has attributes between those of a group")
        self._readers = [_reader(group, rows) for group, rows in parts if isinstance(group, Row) or group.read]
        self._values = _values([row.attribute for row in self.rows])
        self._writers = [(row.name, writer, row.kind.none) for row in self.rows if (writer := _writer(row)) is not None]
        self._groups = [
            (group, rows[0].attribute, tuple(row.name for row in rows))
            for group, rows in parts
            if isinstance(group, Group)
        ]

    @cached_property
    def defaults(self) -> dict[str, Any]:
        missing = {info.name for info in structs.fields(self.struct) if info.required} - self._usual.keys()
        written = self.write(self.struct(**{**dict.fromkeys(missing), **self._usual}))
        apart = {
            row.name: row.kind.write(row.default)
            for row in self.rows
            if row.group and not row.group.write and row.default not in (None, NODEFAULT)
        }
        return {row.name: None if row.attribute in missing else {**apart, **written}.get(row.name) for row in self.rows}

    def read(self, given: Document, prefix: str = "") -> dict[str, Any]:
        """Return the attributes for the given fields; a null field counts as left out."""
        values: dict[str, Any] = {}
        for names, is_always, attribute, read in self._readers:
            if attribute:
                value = given.get(names[0])
                if value is not None:
                    values[attribute] = read(value, prefix + names[0])
            elif is_always or any(given.get(name) is not None for name in names):
                values.update(read(given, prefix))
        return values

    def make(self, given: Document, at: str = "", remedy: str = "") -> Any:
        """Return the struct for an object; `at` is its path when it is part of a body."""
        self.refuse_unknown(given, at)
        for name in self._needed:
            if given.get(name) is None:
                if at:
                    raise BadInput(f"{at} has no {name}.", remedy, field=f"{at}.{name}")
                how = f'Add "{name}": {json.dumps(self[name].field.example)}.'
                raise BadInput(f'{self.what} needs "{name}".', how, field=name)
        return self.struct(**{**self._usual, **self.read(given, f"{at}." if at else "")})

    def write(self, value: Struct, apart: Mapping[str, Document] | None = None) -> dict[str, Any]:
        """Return every field in API form; `apart` has the fields of groups without a writer, by attribute."""
        written = dict(zip(self.names, self._values(value), strict=True))
        for name, writer, none in self._writers:
            part = written[name]
            written[name] = none if part is None else writer(part)
        for group, attribute, names in self._groups:
            parts = group.write(value) if group.write else (apart or {}).get(attribute, {})
            for name in names:
                if name in parts:
                    written[name] = parts[name]
                else:
                    del written[name]
        return written

    def write_changed(self, value: Struct, apart: Mapping[str, Document] | None = None) -> dict[str, Any]:
        """Return the fields that differ from their defaults, in API form."""
        return {name: part for name, part in self.write(value, apart).items() if part != self.defaults[name]}


def _reader(group: Group | Row, rows: tuple[Row, ...]) -> tuple[tuple[str, ...], bool, str, Any]:
    """Return a reader: the fields that it reads, whether it always runs, the attribute that it sets, and its function.

    The attribute is "" for a group, which sets several.
    """
    names = tuple(row.name for row in rows)
    if isinstance(group, Row):
        return names, False, group.attribute, group.kind.read
    return names, any(row.default is NODEFAULT for row in rows), "", group.read


def _writer(row: Row) -> Callable[[Any], Any] | None:
    """Return the writer of a field; None when the stored form is the API form, or its group writes it."""
    if row.group is not None or not row.is_converted:
        return None
    return row.kind.writes if isinstance(row.kind, Custom) else row.kind.write


def _values(attributes: list[str]) -> Callable[[Any], Iterable[Any]]:
    """Return a function that gets the values of all attributes in one call, which is faster than a call for each."""
    if not attributes:
        return lambda value: ()
    get = attrgetter(*attributes)
    return get if len(attributes) > 1 else lambda value: (get(value),)


def rows_of(struct: type[Struct]) -> Iterator[Row]:
    """Yield the fields that a struct declares."""
    hints = get_type_hints(struct, include_extras=True)
    for info in structs.fields(struct):
        said = get_args(hints[info.name])[1:] if get_origin(hints[info.name]) is Annotated else ()
        group = next((one for one in said if isinstance(one, Group)), None)
        default = info.default if info.default_factory is NODEFAULT else info.default_factory()
        for one in said:
            if isinstance(one, Field):
                usual = default if one.default is None else one.default
                name = one.name or info.encode_name
                yield Row(name=name, attribute=info.name, field=one, default=usual, group=group)
