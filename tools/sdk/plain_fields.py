"""Fields of a table as plain data, for the UI's forms."""

from typing import Any

from horae.model.fields.kinds import Choice, Integer, Kind, Number
from horae.model.fields.table import Rows


def described(table: Rows) -> list[dict[str, Any]]:
    """Return the fields as plain data, for the forms of the UI."""
    return [
        {
            "name": row.name,
            "kind": _named(row.kind),
            "default": table.defaults.get(row.name),
            "help": row.field.help,
            "example": row.field.example,
            **({"words": list(row.kind.words)} if isinstance(row.kind, Choice) else {}),
            **({"least": row.kind.least, "most": row.kind.most} if isinstance(row.kind, Integer | Number) else {}),
        }
        for row in table.rows
    ]


def _named(kind: Kind) -> str:
    """Return the name of a kind of fields; a private subclass has the name of its public base."""
    return next(one.__name__.lower() for one in type(kind).__mro__ if not one.__name__.startswith("_"))
