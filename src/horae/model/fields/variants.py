"""Tables of objects whose fields depend on their kind: a tagged struct with a table for each kind."""

from collections import Counter
from collections.abc import Container
from dataclasses import replace
from inspect import getdoc
from typing import Any, get_args

from msgspec import NODEFAULT, Struct, structs

from horae.errors import BadInput
from horae.model.fields.kinds import Choice
from horae.model.fields.table import Field, Row, Rows, Table, rows_of
from horae.model.fields.values import an_object, one_of

FEW = 3  # the help of a field names its kinds when there are at most this many
_FIELD = "kind"  # the tag of the structs, and its name in requests


class Variants(Rows):
    """The tables of a union of structs, by kind.

    The rows are the fields of all kinds. A field with several help texts has all of them, each with the names of its
    kinds. Fields of the same name have the same type in requests. `kind_help` describes the field `kind`, and `remedy`
    shows a whole document. `head` declares fields that all requests have, such as the name.
    """

    def __init__(self, union: Any, what: str, kind_help: str, remedy: str, head: type[Struct] | None = None) -> None:
        self.remedy = remedy
        self.structs: dict[str, type[Struct]] = {_tag(one): one for one in get_args(union)}
        self.tables = {kind: Table(one, f"{what} of kind {kind}") for kind, one in self.structs.items()}
        words = Field(Choice(tuple(self.structs)), kind_help, name=_FIELD)
        kind = Row(name=_FIELD, attribute=_FIELD, field=words, default=NODEFAULT, group=None)
        self._head = (*(rows_of(head) if head else ()), kind)
        names = dict.fromkeys(name for table in self.tables.values() for name in table.names)
        super().__init__((*self._head, *(self._merged(name, what) for name in names)), what)

    @property
    def defaults(self) -> dict[str, Any]:
        """The defaults in API form of those fields that have the same default in all their kinds."""
        of = {
            row.name: [t.defaults[row.name] for t in self.tables.values() if row.name in t.defaults]
            for row in self.rows
        }
        return {name: values[0] for name, values in of.items() if values and all(one == values[0] for one in values)}

    def read(self, body: Any) -> Any:
        """Return the struct for a body, or raise BadInput. A null field counts as left out."""
        given = {n: value for n, value in an_object(body, "body", self.remedy).items() if value is not None}
        if _FIELD not in given:
            raise BadInput(f"{self.what} needs a kind.", f"Choose one of: {', '.join(self.tables)}.", field=_FIELD)
        table = self.tables[one_of(given[_FIELD], _FIELD, self.tables)]
        Rows((*self._head, *table.rows), table.what).refuse_unknown(given)
        return table.make({name: value for name, value in given.items() if name in table.names})

    def write(self, value: Struct) -> dict[str, Any]:
        """Return every field in API form."""
        kind = _tag(type(value))
        return {_FIELD: kind, **self.tables[kind].write(value)}

    def kind_of(self, given: Container[str]) -> dict[str, Any]:
        """Return {"kind": KIND} if one of the given fields belongs to only that kind, else an empty dict."""
        fields = [(kind, name) for kind, table in self.tables.items() for name in table.names if name in given]
        kinds = Counter(name for _, name in fields)
        return next(({_FIELD: kind} for kind, name in fields if kinds[name] == 1), {})

    def own(self, kind: str) -> list[Row]:
        """Return the fields of a kind that not all kinds have."""
        shared = {row.name for row in self.shared}
        return [row for row in self.tables[kind].rows if row.name not in shared]

    @property
    def shared(self) -> list[Row]:
        """The fields that all kinds have."""
        tables = list(self.tables.values())
        return [row for row in tables[0].rows if all(row.name in table.names for table in tables)]

    def about(self, kind: str) -> str:
        """Return the description of a kind."""
        return getdoc(self.structs[kind]) or ""

    def _merged(self, name: str, what: str) -> Row:
        """Return one row for the field of this name in all kinds."""
        having = {kind: row for kind, table in self.tables.items() for row in table.rows if row.name == name}
        rows = list(having.values())
        if any(row.kind.given != rows[0].kind.given for row in rows):
            raise TypeError(f"{what} has fields {name} of several forms")
        helps: dict[str, list[str]] = {}
        for kind, row in having.items():
            helps.setdefault(row.field.help, []).append(kind)
        if len(helps) == 1 and (len(having) == len(self.tables) or len(having) > FEW):
            return rows[0]
        joined = " ".join(f"{', '.join(kinds)}: {text[:1].lower()}{text[1:]}" for text, kinds in helps.items())
        return structs.replace(rows[0], field=replace(rows[0].field, help=joined))


def _tag(struct: type[Struct]) -> str:
    return str(struct.__struct_config__.tag)
