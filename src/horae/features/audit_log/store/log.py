"""Scripts of the audit log.

Rows are appended under one lock, so that each row can be linked to the previous one. No script changes a row.
"""

from collections.abc import Callable, Sequence

from horae.features.audit_log.model import ChainHead, IsSigned, Link, RowFilter, link
from horae.model.tenancy.audit import AuditEntry
from horae.store.script import ColumnType, Fetch, Insert, Lock, Row, Script, Statement
from horae.store.tenancy.holdings import Holdings

Sign = Callable[[bytes], bytes]
WHOLE = 1000  # more characters than any action has

_SHOWN = "seq, at, namespace, actor, actor_name, address, action, target, outcome, detail, begun, hash"
END, SIGNED = 1, 2  # ids of rows in `audit_head`
HEAD = Statement(
    "audit_head",
    "SELECT h.seq, h.hash, h.signature, l.hash FROM audit_head h LEFT JOIN audit_log l ON l.seq = h.seq ORDER BY h.id",
)
KEEP_HEAD = Statement(
    "keep_audit_head",
    "INSERT INTO audit_head (id, seq, hash, signature) VALUES ($1, $2, $3, $4)"
    " ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, signature = excluded.signature",
)
FORGET_SIGNED = Statement("forget_signed_audit_head", f"DELETE FROM audit_head WHERE id = {SIGNED}")
CHAIN = Statement("audit_chain", f"SELECT {_SHOWN} FROM audit_log WHERE seq > $1 ORDER BY seq LIMIT $2")
# A row "begun" is shown only if no row has the outcome of its action: the action is in progress, or its server ended.
_LATEST_OF_ACTION = "(l.outcome <> 'begun' OR NOT EXISTS (SELECT 1 FROM audit_log o WHERE o.begun = l.seq))"
_NAME = "(SELECT n.name FROM namespaces n WHERE n.id = l.namespace)"
_ROWS = (
    f"SELECT {_SHOWN}, {_NAME} FROM audit_log l WHERE l.namespace = $5 AND l.seq < $1 AND l.at >= $2 AND l.at < $3"
    f" AND substr(l.action, 1, $7) = $6 AND {_LATEST_OF_ACTION}"
)
_LAST = " ORDER BY l.seq DESC LIMIT $4"
OF_NAMESPACE = Statement("audit_rows", _ROWS + _LAST)
OF_ACTOR = Statement("audit_rows_of_actor", _ROWS + " AND l.actor = $8" + _LAST)
_BY = " AND ($8 = '' OR l.actor = $8)"
_BELOW = "l.target >= $10 AND l.target < $11"
# The rows about all objects of a kind are a large part of the log, so it is read from its end until enough are found.
OF_NOUN = Statement("audit_rows_of_noun", f"{_ROWS}{_BY} AND (l.target = $9 OR {_BELOW}){_LAST}")
# An index has an object's own rows in order. Rows about its parts are not in order there, but they are few. `+ 0` keeps
# the planner from reading the log in order, so that it finds them all by the same index and sorts them.
OF_THING = Statement(
    "audit_rows_of_thing",
    f"SELECT * FROM ({_ROWS}{_BY} AND l.target = $9{_LAST}) AS own UNION ALL"
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


def append(entries: Sequence[AuditEntry], sign: Sign, is_signed: IsSigned) -> Script[list[int]]:
    """Append entries to the log; return their positions.

    `sign` signs the new head if the last signature is valid. If it is not valid, or this server has no key to sign
    with, the place with the last signature is kept beside the new head.
    """
    yield Lock(("audit-log",))
    before, signed = yield from head()
    end = before
    links: list[Link] = []
    for entry in entries:
        links.append(link(entry, end))
        end = ChainHead(links[-1].seq, links[-1].hash)
    yield Insert("audit_log", COLUMNS, [_row(one) for one in links])
    signature = sign(end.signed_bytes) if signed.is_signed_by(is_signed) else b""
    yield Fetch(KEEP_HEAD, (END, end.seq, end.hash, signature))
    if not signature and signed.signature:
        yield Fetch(KEEP_HEAD, (SIGNED, signed.seq, signed.hash, signed.signature))
    elif signed.seq < before.seq:
        yield Fetch(FORGET_SIGNED)
    return [one.seq for one in links]


def sign_first(sign: Sign) -> Script[None]:
    """Sign the end of a log that has never been signed."""
    yield Lock(("audit-log",))
    end, signed = yield from head()
    if end.seq and not signed.signature:
        yield Fetch(KEEP_HEAD, (END, end.seq, end.hash, sign(end.signed_bytes)))


def head() -> Script[tuple[ChainHead, ChainHead]]:
    """Return the end of the log, and the last place that was signed, with the hash that its row has now.

    This place is before the end if servers without the master key have appended rows.
    """
    rows = yield Fetch(HEAD)
    if not rows:
        return ChainHead(), ChainHead()
    seq, end, signature, _ = rows[0]
    signed_seq, _, signed, found = rows[0] if signature else rows[-1]
    return ChainHead(seq, bytes(end), bytes(signature)), ChainHead(signed_seq, bytes(found or b""), bytes(signed))


def chain(after: int, limit: int) -> Script[tuple[ChainHead, ChainHead, list[Link]]]:
    """Return the end of the log, the last place that was signed, and the links after a position."""
    end, signed = yield from head()
    return end, signed, [_link(row) for row in (yield Fetch(CHAIN, (after, limit)))]


def rows(filters: RowFilter) -> Script[list[tuple[Link, str]]]:
    """Return rows, newest first, each with the name of its namespace."""
    action = filters.action
    compared = len(action) if action.endswith(".") or not action else WHOLE
    params = (filters.before, filters.since, filters.until, filters.limit, filters.namespace, action, compared)
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
