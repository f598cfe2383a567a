"""Translate statements from PostgreSQL's SQL to SQLite's.

Parameters are renamed, casts and row locks are removed, and `given` rows become parameters.
"""

import re
from functools import cache

from msgspec import Struct

from horae.store.script import ColumnType, with_given

Columns = tuple[tuple[str, ColumnType], ...]

_PARAMETER = re.compile(r"\$(\d+)")
_BOUND = re.compile(r"\?(\d+)")
_BOUND_LIMIT = re.compile(r"\bLIMIT\s+(\?\d+)", re.IGNORECASE)
_CAST = re.compile(r"::\s*[a-z_]\w*(\[\])?", re.IGNORECASE)
_AS_BYTES = re.compile(r"\bAS\s+bytea\b", re.IGNORECASE)
_ANY = re.compile(r"=\s*ANY\s*\(\s*\$1\s*\)", re.IGNORECASE)
_ROW_LOCK = re.compile(
    r"\bFOR\s+(NO\s+KEY\s+UPDATE|UPDATE|KEY\s+SHARE|SHARE)(\s+OF\s+\w+(\s*,\s*\w+)*)?(\s+(SKIP\s+LOCKED|NOWAIT))?\b",
    re.IGNORECASE,
)
_ALIAS = r"(?:\s+(?:AS\s+)?(?!WHERE\b)(?P<alias>\w+))?"
_BESIDE = re.compile(rf"\b(?:USING|FROM)\s+given\b{_ALIAS}\s*(?=\bWHERE\b)", re.IGNORECASE)
_AMONG = re.compile(r"\(?([\w., ]+)\)?\s+IN\s+\(\s*SELECT\s+([\w., ]+?)\s+FROM\s+given\s*\)", re.IGNORECASE)
_EXISTS = re.compile(rf"\bEXISTS\s*\(\s*SELECT\s+1\s+FROM\s+given\b{_ALIAS}\s+WHERE\b", re.IGNORECASE)
_GIVEN_TABLE = re.compile(r"\b(FROM|JOIN|USING|,)\s+given\b", re.IGNORECASE)
_LATERAL = re.compile(r"^SELECT\s+\w+\.\*\s+FROM\s+given\s+CROSS\s+JOIN\s+LATERAL\s+\(", re.IGNORECASE)
_PROBE = re.compile(r"JOIN LATERAL \(SELECT \* FROM (\w+) x WHERE x\.(\w+) = ([\w.]+) OFFSET 0\) (\w+) ON TRUE")
_SUBQUERY = re.compile(r"\(\s*SELECT\b", re.IGNORECASE)
_RETURNING = re.compile(r"\bRETURNING\b", re.IGNORECASE)
_CHANGES = re.compile(r"\b(INSERT|UPDATE|DELETE)\b", re.IGNORECASE)


class TranslatedStatement(Struct, frozen=True):
    """A statement ready for SQLite, which runs once for each given row."""

    text: str
    returns: bool  # it returns rows, so it cannot be run by executemany
    uuids: tuple[int, ...]  # positions of given columns that are ids; ids are bound as 16 bytes
    count: int  # number of values to bind; columns after these are not in the text and are left out


@cache
def translate(text: str) -> str:
    """Rewrite a statement for SQLite, whose single writer makes row locks unnecessary.

    If a limit is a bare parameter, SQLite's planner uses its value, and so compiles the statement again whenever it is
    run. That was two thirds of the cost of picking slices for a claim. So the limit becomes an expression. A lateral
    join, which makes PostgreSQL look up one row after another, becomes an ordinary join.
    """
    text = _PROBE.sub(r"JOIN \1 \4 ON \4.\2 = \3", text)
    text = _PARAMETER.sub(r"?\1", _CAST.sub("", _AS_BYTES.sub("AS BLOB", _ROW_LOCK.sub("", text))))
    return _BOUND_LIMIT.sub(r"LIMIT (\1 + 0)", text)


def among(text: str, count: int) -> tuple[str, int]:
    """Return a statement over a set of ids, and the number of ids that it takes.

    This number is a power of two, so that only few texts must be prepared; the caller pads the set.
    """
    size = 1 << max(0, count - 1).bit_length()
    return _among(text, size), size


@cache
def _among(text: str, size: int) -> str:
    """Replace the set of ids by one parameter for each id, and renumber the parameters that follow the set."""
    places = ", ".join(f"?{place}" for place in range(1, size + 1))
    text = translate(_ANY.sub("IN (:set)", text))
    moved = _BOUND.sub(lambda found: f"?{int(found[1]) + size - 1}", text)
    return moved.replace(":set", places)


@cache
def for_each(text: str, columns: Columns) -> TranslatedStatement:
    """Translate a statement that runs once for each given row, with the values of this row as its first parameters."""
    text = _without_lateral(text, columns)
    changes = bool(_CHANGES.search(_ROW_LOCK.sub("", text)))
    body = _in_place(text, columns) if changes else text
    if _GIVEN_TABLE.search(body):
        names, places = _names(columns), ", ".join(f"${place}" for place in range(1, len(columns) + 1))
        body = with_given(f"WITH given({names}) AS (VALUES ({places}))", body)
    return _plan(translate(body), not changes or bool(_RETURNING.search(text)), columns)


@cache
def for_many(text: str, columns: Columns, rows: int) -> str:
    """Return a statement that reads for `rows` given rows at once; its parameters are their values, row after row.

    This saves time, because running a statement costs four times as much as one more row, mostly for its columns.
    """
    width = len(columns)
    values = (", ".join(f"${at}" for at in range(row * width + 1, (row + 1) * width + 1)) for row in range(rows))
    lines = ", ".join(f"({places})" for places in values)
    return translate(with_given(f"WITH given({_names(columns)}) AS (VALUES {lines})", text))


@cache
def insert(table: str, columns: Columns, conflict: str, returning: str) -> TranslatedStatement:
    """Translate an insert that runs once for each row."""
    places = ", ".join(f"?{place}" for place in range(1, len(columns) + 1))
    text = f"INSERT INTO {table} ({_names(columns)}) VALUES ({places}) {translate(conflict)}"
    return _plan(f"{text} RETURNING {returning}" if returning else text, bool(returning), columns)


def _plan(text: str, returns: bool, columns: Columns) -> TranslatedStatement:
    uuids = tuple(place for place, (_, kind) in enumerate(columns) if kind == "uuid")
    return TranslatedStatement(text, returns, uuids, max(int(place) for place in _BOUND.findall(text)))


def _in_place(text: str, columns: Columns) -> str:
    """Replace references to columns of `given`, which has one row, by the parameters of this row.

    SQLite has no DELETE ... USING. With EXISTS it would scan the changed table, and in other places it would create a
    temporary table for the one row.
    """
    place = {name: f"${at}" for at, (name, _) in enumerate(columns, 1)}
    text = _AMONG.sub(lambda found: _equal(found[1], found[2], place), text)
    text = _without_exists(text, place)
    beside = _BESIDE.search(text)
    if beside and not _SUBQUERY.search(text, 0, beside.start()):
        text = _columns_placed(text[: beside.start()] + text[beside.end() :], beside["alias"], place)
    return text


def _without_lateral(text: str, columns: Columns) -> str:
    """Replace a lateral join of `given`, which has one row, by its inner query, with parameters for that row."""
    found = _LATERAL.search(text)
    if found is None:
        return text
    inner = text[found.end() : _closing(text, found.end())]
    return _columns_placed(inner, None, {name: f"${at}" for at, (name, _) in enumerate(columns, 1)})


def _equal(ours: str, theirs: str, place: dict[str, str]) -> str:
    pairs = zip(ours.split(","), theirs.split(","), strict=True)
    return "(" + " AND ".join(f"{mine.strip()} = {_placed(other, place)}" for mine, other in pairs) + ")"


def _without_exists(text: str, place: dict[str, str]) -> str:
    found = _EXISTS.search(text)
    if found is None:
        return text
    end = _closing(text, found.end())
    inner = _columns_placed(text[found.end() : end], found["alias"], place)
    return f"{text[: found.start()]}({inner}){text[end + 1 :]}"


def _closing(text: str, at: int) -> int:
    """Return the position of the parenthesis that closes the one that is open at position `at`."""
    depth = 1
    while depth:
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return at - 1


def _columns_placed(text: str, alias: str | None, place: dict[str, str]) -> str:
    return re.sub(rf"\b{alias or 'given'}\.(\w+)\b", lambda found: place[found[1]], text)


def _placed(column: str, place: dict[str, str]) -> str:
    return place[column.strip().rpartition(".")[2]]


def _names(columns: Columns) -> str:
    return ", ".join(f'"{name}"' for name, _ in columns)
