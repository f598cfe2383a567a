"""PostgreSQL's text as SQLite's: parameters, casts and row locks; and `given` rows as parameters."""

import re
from functools import cache

from msgspec import Struct

from horae.store.script import ColumnType
from horae.store.text import with_given

Columns = tuple[tuple[str, ColumnType], ...]

_PARAMETER = re.compile(r"\$(\d+)")
_CAST = re.compile(r"::\s*[a-z_]\w*(\[\])?", re.IGNORECASE)
_ROW_LOCK = re.compile(
    r"\bFOR\s+(NO\s+KEY\s+UPDATE|UPDATE|KEY\s+SHARE|SHARE)(\s+OF\s+\w+(\s*,\s*\w+)*)?(\s+(SKIP\s+LOCKED|NOWAIT))?\b",
    re.IGNORECASE,
)
_USING_GIVEN = re.compile(r"\bUSING\s+given\b(?:\s+(?:AS\s+)?(?!WHERE\b)(\w+))?", re.IGNORECASE)
_RETURNS_ROWS = re.compile(r"^\s*SELECT\b|\bRETURNING\b|^\s*VALUES\b", re.IGNORECASE)


class Plan(Struct, frozen=True):
    """A statement ready for SQLite."""

    text: str
    returns: bool  # rows come back, so it runs row by row and not by executemany
    uuids: tuple[int, ...] = ()  # which given columns are ids, to be bound as 16 bytes


@cache
def translate(text: str) -> str:
    """Rewrite a statement for SQLite, whose single writer is every row's lock."""
    return _PARAMETER.sub(r"?\1", _CAST.sub("", _ROW_LOCK.sub("", text)))


@cache
def for_each(text: str, columns: Columns) -> Plan:
    """Plan a statement that runs once per given row, the row's values as its first parameters."""
    names = [name for name, _ in columns]
    using = _USING_GIVEN.search(text)
    body = translate(_without_using(text, names, using) if using else _with_given(text, names))
    return Plan(body, bool(_RETURNS_ROWS.search(text)) or _selects(text), _uuids(columns))


@cache
def insert(table: str, columns: Columns, conflict: str, returning: str) -> Plan:
    """Plan an insert that runs once per row."""
    names = ", ".join(f'"{name}"' for name, _ in columns)
    places = ", ".join(f"?{place}" for place in range(1, len(columns) + 1))
    text = f"INSERT INTO {table} ({names}) VALUES ({places}) {translate(conflict)}"
    return Plan(f"{text} RETURNING {returning}" if returning else text, bool(returning), _uuids(columns))


def _with_given(text: str, names: list[str]) -> str:
    places = ", ".join(f"${place}" for place in range(1, len(names) + 1))
    given = f"WITH given({', '.join(names)}) AS (VALUES ({places}))"
    return with_given(given, text)


def _without_using(text: str, names: list[str], using: re.Match[str]) -> str:
    """SQLite has no DELETE ... USING: the one given row's columns become parameters."""
    place = {name: f"${at}" for at, name in enumerate(names, 1)}
    column = re.compile(rf"\b{using[1] or 'given'}\.({'|'.join(names)})\b")
    return column.sub(lambda found: place[found[1]], text[: using.start()] + text[using.end() :])


def _selects(text: str) -> bool:
    return text.lstrip()[:4].upper() == "WITH" and not re.search(r"\b(INSERT|UPDATE|DELETE)\b", text, re.IGNORECASE)


def _uuids(columns: Columns) -> tuple[int, ...]:
    return tuple(place for place, (_, kind) in enumerate(columns) if kind == "uuid")
