"""The audit log: appended under one lock, so that each row follows the one before; nothing here changes a row."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from horae.model.audit_log import Entry, Head, Link, link
from horae.store.script import ColumnType, Fetch, Insert, Lock, Row, Script, Statement

Sign = Callable[[bytes], bytes]

_SHOWN = "seq, at, namespace, actor, actor_name, address, action, target, outcome, detail, begun, hash"
HEAD = Statement("audit_head", "SELECT seq, hash, signature FROM audit_head WHERE id = 1")
KEEP_HEAD = Statement(
    "keep_audit_head",
    "INSERT INTO audit_head (id, seq, hash, signature) VALUES (1, $1, $2, $3)"
    " ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, signature = excluded.signature",
)
CHAIN = Statement("audit_chain", f"SELECT {_SHOWN} FROM audit_log WHERE seq > $1 ORDER BY seq LIMIT $2")
# What was begun is shown by its outcome; without one, a server ended in between, or is still at it.
_TOLD = "(l.outcome <> 'begun' OR NOT EXISTS (SELECT 1 FROM audit_log o WHERE o.begun = l.seq))"
_NAME = "(SELECT n.name FROM namespaces n WHERE n.id = l.namespace)"
_ROWS = f"SELECT {_SHOWN}, {_NAME} FROM audit_log l WHERE l.seq < $1 AND l.at >= $2 AND l.at < $3 AND {_TOLD}"
_LAST = " ORDER BY l.seq DESC LIMIT $4"
ALL = Statement("audit_rows", _ROWS + " AND ($5 = '' OR l.action LIKE $5)" + _LAST)
OF_NAMESPACE = Statement(
    "audit_rows_of_namespace", _ROWS + " AND ($5 = '' OR l.action LIKE $5) AND l.namespace = $6" + _LAST
)
OF_ACTOR = Statement(
    "audit_rows_of_actor",
    _ROWS + " AND ($5 = '' OR l.action LIKE $5) AND l.namespace = $6 AND l.actor = $7" + _LAST,
)
OF_TARGET = Statement(
    "audit_rows_of_target",
    _ROWS + " AND ($5 = '' OR l.action LIKE $5) AND l.namespace = $6 AND l.target = $7" + _LAST,
)
COLUMNS: tuple[tuple[str, ColumnType], ...] = (
    ("seq", "bigint"), ("at", "bigint"), ("namespace", "int"), ("actor", "text"), ("actor_name", "text"),
    ("address", "text"), ("action", "text"), ("target", "text"), ("outcome", "text"), ("detail", "text"),
    ("begun", "bigint"), ("hash", "bytea"),
)  # fmt: skip


class Asked(Struct, frozen=True, kw_only=True):
    """Which rows, newest first."""

    before: int
    since: int
    until: int
    limit: int
    action: str = ""  # "jobs.edit", or "jobs." for all that begin so
    namespace: int | None = None
    actor: str = ""
    target: str = ""


def append(entries: Sequence[Entry], sign: Sign) -> Script[list[int]]:
    """Put entries at the end; tells their places."""
    yield Lock(("audit-log",))
    end = yield from head()
    links: list[Link] = []
    for entry in entries:
        links.append(link(entry, end))
        end = Head(links[-1].seq, links[-1].hash)
    yield Insert("audit_log", COLUMNS, [_row(one) for one in links])
    yield Fetch(KEEP_HEAD, (end.seq, end.hash, sign(end.said)))
    return [one.seq for one in links]


def head() -> Script[Head]:
    """Where the log ends."""
    rows = yield Fetch(HEAD)
    return Head(*rows[0]) if rows else Head()


def chain(after: int, limit: int) -> Script[tuple[Head, list[Link]]]:
    """The next links, and where the log ends."""
    end = yield from head()
    return end, [_link(row) for row in (yield Fetch(CHAIN, (after, limit)))]


def rows(asked: Asked) -> Script[list[tuple[Link, str]]]:
    """What was done, newest first, with the name of its namespace."""
    params = (asked.before, asked.since, asked.until, asked.limit, asked.action and _beginning(asked.action))
    if asked.namespace is None:
        found = yield Fetch(ALL, params)
    elif asked.actor:
        found = yield Fetch(OF_ACTOR, (*params, asked.namespace, asked.actor))
    elif asked.target:
        found = yield Fetch(OF_TARGET, (*params, asked.namespace, asked.target))
    else:
        found = yield Fetch(OF_NAMESPACE, (*params, asked.namespace))
    return [(_link(row), row[-1] or "") for row in found]


def _beginning(action: str) -> str:
    return f"{action}%" if action.endswith(".") else action


def _row(one: Link) -> Row:
    said = one.entry
    return (
        one.seq, said.at, said.namespace, said.actor, said.actor_name, said.address, said.action, said.target,
        said.outcome, said.detail, said.begun, one.hash,
    )  # fmt: skip


def _link(row: Row) -> Link:
    entry = Entry(
        at=row[1], namespace=row[2], actor=row[3], actor_name=row[4], address=row[5], action=row[6], target=row[7],
        outcome=row[8], detail=row[9], begun=row[10],
    )  # fmt: skip
    return Link(row[0], entry, bytes(row[11]))
