"""Tables: the fields of a noun, declared on its struct, and the reader and writer that follow from them.

    priority: Annotated[int, Field(Integer(0, 9), "From 0 (least urgent) to 9 (most urgent).")] = 4

msgspec ignores these annotations: a stored struct decodes as fast as without them, and is never validated again.
A `Group` reads and writes fields that make attributes together, such as `rate` and `burst`.
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
    Listed,
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
    """A struct with a table of its own.

    `short` lists what may stand for the whole: a value of a type, with the member that it gives; "" for `true`, which
    gives none. `main` is the member that a bare value of an option gives. `what` names it where a field is unknown.
    """

    struct: type[Struct]
    remedy: str
    what: str = ""
    short: tuple[tuple[type, str], ...] = ()
    main: str = ""
    check: Callable[[Any, str], None] | None = None  # a rule across members
    shows_all: bool = False  # whether members without a value are shown, as null
    brief: bool = False  # whether members that have their defaults are not shown
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
            return self.table.written(value)
        written = self.table.write(value)
        return written if self.shows_all else {name: part for name, part in written.items() if part is not None}


AnyKind = Text | Name | Integer | Number | Flag | Duration | Moment | Choice | Key | Tags | Custom | Object | Listed


@dataclass(frozen=True, eq=False)
class Field:
    """One field as users know it: the only place where it is declared."""

    kind: AnyKind
    help: str  # one sentence for the API's description, the option's help, the SDK's keyword and the reference
    name: str = ""  # in the API; the attribute's in camelCase unless given
    example: Any = None
    since: str = ""  # the version that brought it, if it was not there from the first one on
    default: Any = None  # as stored, where the struct has none: what is stored says it always
    flag: str | None = None  # the option of the CLI; the name with dashes unless given, "" for none
    metavar: str = ""  # what the CLI calls its value; by its kind unless given
    sdk: bool = True  # whether the SDK has a keyword for it
    merges: bool = False  # whether a patch changes it key by key
    tells: str = ""  # what the kind of noun is called that is known by this field


@dataclass(frozen=True, eq=False)
class Group:
    """Fields that make attributes together: `read` makes these of a document, `write` the fields of a whole struct.

    A group without a reader is read apart, by the reader of the noun; without a writer it is written there, too.
    """

    read: Callable[[Document, str], dict[str, Any]] | None = None
    write: Callable[[Any], dict[str, Any]] | None = None


class Row(Struct, frozen=True, kw_only=True):
    """A field with what its struct says about it."""

    name: str
    attribute: str
    field: Any  # a Field, or a noun's own kind of it
    default: Any  # as stored; NODEFAULT where it is required
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
        """Its name in Python."""
        snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in self.name)
        return f"{snake}_" if iskeyword(snake) else snake

    @property
    def is_spelled(self) -> bool:
        """Whether the API spells its value otherwise than it is stored."""
        kind = self.kind
        return type(kind).write is not Kind.write and not (isinstance(kind, Custom) and kind.writes is None)

    @property
    def flag(self) -> str:
        """Its option, without dashes in front; empty for none."""
        given: str | None = self.field.flag
        return self.keyword.strip("_").replace("_", "-") if given is None else given


class Rows:
    """Fields in their order; `what` names the noun in refusals."""

    def __init__(self, rows: Iterable[Row], what: str) -> None:
        self._by_name: dict[str, Row] = {}
        for row in rows:
            self._by_name.setdefault(row.name, row)
        self.rows, self.names, self.what = tuple(self._by_name.values()), tuple(self._by_name), what

    def __getitem__(self, name: str) -> Row:
        return self._by_name[name]

    @property
    def usual(self) -> dict[str, Any]:
        """The defaults in the API's spelling; None where there is none."""
        raise NotImplementedError

    def where(self, says: Callable[[Any], Any]) -> tuple[str, ...]:
        """Return the names of the fields of which `says` is true."""
        return tuple(row.name for row in self.rows if says(row.field))

    def refuse_unknown(self, given: Document, at: str = "") -> None:
        """Refuse a field that the noun does not have."""
        if not self._by_name.keys() >= given.keys():
            refuse_unknown(given, self.names, self.what or at, f"{at}." if at else "")

    def keywords(self, fields: Document) -> dict[str, Any]:
        """Return the same fields by their names in Python."""
        return {self._by_name[name].keyword: value for name, value in fields.items()}


class JoinedRows(Rows):
    """The fields of several tables; one that more than one table has is that of the first."""

    def __init__(self, tables: Iterable["Table"], what: str) -> None:
        self._tables = tuple(tables)
        super().__init__((row for table in self._tables for row in table.rows), what)

    @cached_property
    def usual(self) -> dict[str, Any]:
        usual = {name: value for table in reversed(self._tables) for name, value in table.usual.items()}
        return {name: usual[name] for name in self.names}


class Table(Rows):
    """The fields of a struct; `rows` where it alone does not tell them: in another order, or with others' fields."""

    def __init__(self, struct: type[Struct], what: str, rows: Iterable[Row] | None = None) -> None:
        super().__init__(rows_of(struct) if rows is None else rows, what)
        self.struct = struct
        self._needed = [row.name for row in self.rows if row.default is NODEFAULT and row.group is None]
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
    def usual(self) -> dict[str, Any]:
        missing = {info.name for info in structs.fields(self.struct) if info.required} - self._usual.keys()
        written = self.write(self.struct(**{**dict.fromkeys(missing), **self._usual}))
        apart = {
            row.name: row.kind.write(row.default)
            for row in self.rows
            if row.group and not row.group.write and row.default not in (None, NODEFAULT)
        }
        return {row.name: None if row.attribute in missing else {**apart, **written}.get(row.name) for row in self.rows}

    def read(self, given: Document, prefix: str = "") -> dict[str, Any]:
        """Return the attributes that the given fields make; null stands for a field that is left out."""
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
        """Return the struct that an object stands for; `at` is its place in the body, if it is a part of that."""
        self.refuse_unknown(given, at)
        for name in self._needed:
            if given.get(name) is None:
                if at:
                    raise BadInput(f"{at} does not say its {name}.", remedy, field=f"{at}.{name}")
                how = f'Add "{name}": {json.dumps(self[name].field.example)}.'
                raise BadInput(f'{self.what} needs "{name}".', how, field=name)
        return self.struct(**{**self._usual, **self.read(given, f"{at}." if at else "")})

    def write(self, value: Struct, apart: Mapping[str, Document] | None = None) -> dict[str, Any]:
        """Return every field in the API's spelling; `apart` has those of groups without a writer, by attribute."""
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

    def written(self, value: Struct, apart: Mapping[str, Document] | None = None) -> dict[str, Any]:
        """Return the fields that differ from their defaults, in the API's spelling."""
        return {name: part for name, part in self.write(value, apart).items() if part != self.usual[name]}


def _reader(group: Group | Row, rows: tuple[Row, ...]) -> tuple[tuple[str, ...], bool, str, Any]:
    """Return the fields that one reader reads, whether it is always asked, and the attribute it makes if it is one."""
    names = tuple(row.name for row in rows)
    if isinstance(group, Row):
        return names, False, group.attribute, group.kind.read
    return names, any(row.default is NODEFAULT for row in rows), "", group.read


def _writer(row: Row) -> Callable[[Any], Any] | None:
    """Return how a field is written; None if it is stored as it is written, or written by its group."""
    if row.group is not None or not row.is_spelled:
        return None
    return row.kind.writes if isinstance(row.kind, Custom) else row.kind.write


def _values(attributes: list[str]) -> Callable[[Any], Iterable[Any]]:
    """Return a function that gives the values of attributes; one call for all of them is faster than one for each."""
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
