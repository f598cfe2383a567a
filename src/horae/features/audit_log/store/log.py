"""Scripts of the audit log.

Rows are appended under one lock, so that each row can be linked to the previous one. No script changes a row.
"""

from collections.abc import Callable, Sequence

from horae.features.audit_log.model import ChainHead, Link, RowFilter, link
from horae.model.tenancy.audit import AuditEntry
from horae.store.script import ColumnType, Fetch, Insert, Lock, Row, Script, Statement
from horae.store.tenancy.holdings import Holdings

Sign = Callable[[bytes], bytes]

_SHOWN = "seq, at, namespace, actor, actor_name, address, action, target, outcome, detail, begun, hash"
HEAD = Statement("audit_head", "SELECT seq, hash, signature FROM audit_head WHERE id = 1")
KEEP_HEAD = Statement(
    "keep_audit_head",
    "INSERT INTO audit_head (id, seq, hash, signature) VALUES (1, $1, $2, $3)"
    " ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, signature = excluded.signature",
)
CHAIN = Statement("audit_chain", f"SELECT {_SHOWN} FROM audit_log WHERE seq > $1 ORDER BY seq LIMIT $2")
# A row "begun" is shown only if no row has the outcome of its action: the action is in progress, or its server ended.
_LATEST_OF_ACTION = "(l.outcome <> 'begun' OR NOT EXISTS (SELECT 1 FROM audit_log o WHERE o.begun = l.seq))"
_NAME = "(SELECT n.name FROM namespaces n WHERE n.id = l.namespace)"
_ROWS = (
    f"SELECT {_SHOWN}, {_NAME} FROM audit_log l WHERE l.namespace = $5 AND l.seq < $1 AND l.at >= $2 AND l.at < $3"
    f" AND ($6 = '' OR l.action LIKE $6) AND {_LATEST_OF_ACTION}"
)
_LAST = " ORDER BY l.seq DESC LIMIT $4"
OF_NAMESPACE = Statement("audit_rows", _ROWS + _LAST)
OF_ACTOR = Statement("audit_rows_of_actor", _ROWS + " AND l.actor = $7" + _LAST)
_BY = " AND ($7 = '' OR l.actor = $7)"
_BELOW = "l.target >= $9 AND l.target < $10"
# The rows about all objects of a kind are a large part of the log, so it is read from its end until enough are found.
OF_NOUN = Statement("audit_rows_of_noun", f"{_ROWS}{_BY} AND (l.target = $8 OR {_BELOW}){_LAST}")
# An index has an object's own rows in order. Rows about its parts are not in order there, but they are few. `+ 0` keeps
# the planner from reading the log in order, so that it finds them all by the same index and sorts them.
OF_THING = Statement(
    "audit_rows_of_thing",
    f"SELECT * FROM ({_ROWS}{_BY} AND l.target = $8{_LAST}) AS own UNION ALL"
    f" SELECT * FROM ({_ROWS}{_BY} AND {_BELOW} ORDER BY l.seq + 0 DESC LIMIT $4) AS held ORDER BY seq DESC LIMIT $4",
)
COLUMNS: tuple[tuple[str, ColumnType], ...] = (
    ("seq", "bigint"), ("at", "bigint"), ("namespace", "int"), ("actor", "text"), ("actor_name", "text"),
    ("address", "text"), ("action", "text"), ("target", "text"), ("outcome", "text"), ("detail", "text"),
    ("begun", "bigint"), ("hash", "bytea"),
)  # fmt: skip
HOLDINGS = Holdings(
    kept={
        "audit_log": "actions must stay provable; it contains no params, results or secrets",
        "audit_head": "the end of that log",
    }
)


def append(entries: Sequence[AuditEntry], sign: Sign) -> Script[list[int]]:
    """Append entries to the log; return their positions. `sign` signs the new head."""
    yield Lock(("audit-log",))
    end = yield from head()
    links: list[Link] = []
    for entry in entries:
        links.append(link(entry, end))
        end = ChainHead(links[-1].seq, links[-1].hash)
    yield Insert("audit_log", COLUMNS, [_row(one) for one in links])
    yield Fetch(KEEP_HEAD, (end.seq, end.hash, sign(end.signed_bytes)))
    return [one.seq for one in links]


def head() -> Script[ChainHead]:
    """Return the end of the log."""
    rows = yield Fetch(HEAD)
    return ChainHead(*rows[0]) if rows else ChainHead()


def chain(after: int, limit: int) -> Script[tuple[ChainHead, list[Link]]]:
    """Return the links after a position, and the end of the log."""
    end = yield from head()
    return end, [_link(row) for row in (yield Fetch(CHAIN, (after, limit)))]


def rows(filters: RowFilter) -> Script[list[tuple[Link, str]]]:
    """Return rows, newest first, each with the name of its namespace."""
    action = f"{filters.action}%" if filters.action.endswith(".") else filters.action
    params = (filters.before, filters.since, filters.until, filters.limit, filters.namespace, action)
    target = filters.target.strip("/")
    if target:
        below = (f"{target}/", f"{target}0")  # "0" follows "/"
        found = yield Fetch(OF_THING if "/" in target else OF_NOUN, (*params, filters.actor, target, *below))
    elif filters.actor:
        found = yield Fetch(OF_ACTOR, (*params, filters.actor))
    else:
        found = yield Fetch(OF_NAMESPACE, params)
    return [(_link(row), row[-1] or "") for row in found]


def _row(one: Link) -> Row:
    said = one.entry
    return (
        one.seq, said.at, said.namespace, said.actor, said.actor_name, said.address, said.action, said.target,
        said.outcome, said.detail, said.begun, one.hash,
    )  # fmt: skip


def _link(row: Row) -> Link:
    entry = AuditEntry(
        at=row[1], namespace=row[2], actor=row[3], actor_name=row[4], address=row[5], action=row[6], target=row[7],
        outcome=row[8], detail=row[9], begun=row[10],
    )  # fmt: skip
    return Link(row[0], entry, bytes(row[11]))
