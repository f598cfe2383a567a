"""Edits of SQL statements by their names; a condition is named by its column."""

import re
from collections.abc import Callable, Iterator

from msgspec import Struct

_LOCK = re.compile(r"\s+FOR (?:NO KEY UPDATE|UPDATE|KEY SHARE|SHARE)(?: OF (?P<of>\w+))?(?: SKIP LOCKED)?")
_TOKEN = re.compile(r"'(?:[^']|'')*'|[A-Za-z_][\w.]*|\$?\d+|[()]|[^\s\w()']+")
_ENDS = {"CROSS", "DO", "FOR", "GROUP", "INNER", "JOIN", "LEFT", "LIMIT", "ORDER", "RETURNING", "SET", "UNION"}


class TextEdit(Struct, frozen=True):
    """An edit of the text of a statement."""

    statement: str
    change: Callable[[str], str]


def without_locks(text: str) -> str:
    """Return a query that locks no rows."""
    assert _LOCK.search(text), f"it locks nothing: {text}"
    return _LOCK.sub("", text)


def unlock(statement: str, table: str = "") -> TextEdit:
    """Remove the lock on the rows of a table; without a name, of the only rows that the statement locks."""
    return _locks(statement, table, lambda clause: "")


def wait(statement: str) -> TextEdit:
    """Make the statement wait for rows that other transactions have locked."""
    return _locks(statement, "", lambda clause: clause[0].removesuffix(" SKIP LOCKED"))


def lock_joined(statement: str) -> TextEdit:
    """Make the statement lock the rows of all its tables."""
    return _locks(statement, "", lambda clause: clause[0].replace(f" OF {clause['of']}", ""))


def _locks(statement: str, table: str, new: Callable[[re.Match[str]], str]) -> TextEdit:
    def change(text: str) -> str:
        aliases = re.findall(rf"\b(?:FROM|JOIN) {table} (\w+)", text)
        clauses = [clause for clause in _LOCK.finditer(text) if not table or clause["of"] in aliases]
        if not table and len(clauses) > 1:
            clauses = [clause for clause in clauses if clause["of"] is None]
        assert len({clause[0] for clause in clauses}) == 1, f"{statement} has {len(clauses)} such locks"
        changed = _cut(text, [(*clause.span(), new(clause)) for clause in clauses])
        assert changed != text, f"{statement} has no such lock"
        return changed

    return TextEdit(statement, change)


def drop(statement: str, *conditions: str, instead: str = "true") -> TextEdit:
    """Remove these conditions.

    A condition is named by its beginning: a column, `table.column`, or a column with its operator.
    """
    return TextEdit(statement, lambda text: without_conditions(text, *conditions, instead=instead))


def without_conditions(text: str, *conditions: str, instead: str = "true") -> str:
    for name in conditions:
        begins = re.compile(rf"(?:\w+\.)?{re.escape(name)}(?!\w)")
        spans = [(start, end) for start, end in _conditions(text) if begins.match(_plain(text, start, end))]
        assert spans, f"there is no condition {name} in {text}"
        text = _cut(text, [(*span, instead) for span in _outermost(spans)])
    return text


def drop_exists(statement: str, table: str, instead: str = "true") -> TextEdit:
    """Remove the condition that a table has no such row."""

    def change(text: str) -> str:
        looks = re.compile(rf"\b(?:FROM|JOIN) {table}\b")
        starts = [found.start() for found in re.finditer(r"NOT EXISTS \(", text)]
        spans = [(start, _closed(text, start)) for start in starts]
        spans = [(start, end) for start, end in spans if looks.search(text[start:end])]
        assert spans, f"{statement} does not look into {table}"
        return _cut(text, [(*span, instead) for span in spans])

    return TextEdit(statement, change)


def _closed(text: str, start: int) -> int:
    """Return the position at which the first parenthesis after a place is closed."""
    deep = 0
    for token in _TOKEN.finditer(text, start):
        deep += {"(": 1, ")": -1}.get(token[0], 0)
        if token[0] == ")" and deep == 0:
            return token.end()
    raise AssertionError(f"a parenthesis is not closed in {text}")


def drop_setting(statement: str, column: str, instead: str = "") -> TextEdit:
    """Remove the assignment of a column."""
    given = rf"{column} = [\w.$]+"
    pattern = rf"{given}" if instead else rf",\s*{given}|(?<=SET )\s*{given},\s*"
    return _sub(statement, pattern, instead)


def unordered(statement: str) -> TextEdit:
    """Make the statement process its rows in any order."""
    return _sub(statement, r"\s+ORDER BY [\w., ]+?(?= FOR | LIMIT |$)", "")


def descending(statement: str, column: str) -> TextEdit:
    """Reverse the order of a column."""
    return _sub(statement, rf"(ORDER BY [\w., ]*?\b{column})\b", r"\1 DESC")


def must_be_new(statement: str) -> TextEdit:
    """Make an existing row an error."""
    return _sub(statement, r"\s+ON CONFLICT(?: \([\w, ]+\))? DO NOTHING", "")


def reword(statement: str, text: str) -> TextEdit:
    """Replace a part of the statement."""
    return TextEdit(statement, lambda _: text)


def _sub(statement: str, pattern: str, new: str) -> TextEdit:
    def change(text: str) -> str:
        changed, count = re.subn(pattern, new, text)
        assert count == 1, f"{statement} has {count} places like {pattern}: {text}"
        return changed

    return TextEdit(statement, change)


def outer_conditions(text: str) -> list[str]:
    """Return the conditions of a statement, without those nested in others."""
    return [text[start:end] for start, end in _outermost(list(_conditions(text)))]


def _conditions(text: str) -> Iterator[tuple[int, int]]:
    """Return the positions of conditions that must all hold: the parts between ANDs of a WHERE, an ON or a group."""
    begins: list[int | None] = [None]  # the start of the present condition, in each open parenthesis
    between, before, end = False, "", 0
    for token in _TOKEN.finditer(text):
        word, begin = token[0].upper(), begins[-1]
        stops = word in _ENDS or word in ("WHERE", "ON", ")") or (word == "AND" and not between)
        if begin is not None and stops:
            yield _trimmed(text, begin, end)
            begins[-1] = token.end() if word == "AND" else None
        if word in ("WHERE", "ON") and not text[token.end() :].startswith(" CONFLICT"):
            begins[-1] = token.end()
        elif word == "(":
            grouped = begins[-1] is not None and before in ("AND", "OR", "NOT", "WHERE", "ON", "(")
            begins.append(token.end() if grouped else None)
        elif word == ")":
            begins.pop()
        between = word == "BETWEEN" or (between and word != "AND")
        before, end = word, token.end()
    if begins[-1] is not None:
        yield _trimmed(text, begins[-1], end)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    return start + len(text[start:end]) - len(text[start:end].lstrip()), end


def _plain(text: str, start: int, end: int) -> str:
    """Return a condition without leading parentheses, with the full names of its tables."""
    tables = {alias: table for table, alias in re.findall(r"\b(?:FROM|JOIN) (\w+) ([a-z]\w*)", text)}
    condition = " ".join(text[start:end].split()).lstrip("(")
    return re.sub(r"\b([a-z_]\w*)\.(?=\w)", lambda found: f"{tables.get(found[1], found[1])}.", condition)


def _outermost(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [span for span in spans if not any(o != span and o[0] <= span[0] and span[1] <= o[1] for o in spans)]


def _cut(text: str, changes: list[tuple[int, int, str]]) -> str:
    for start, end, new in sorted(changes, reverse=True):
        text = text[:start] + new + text[end:]
    return text
