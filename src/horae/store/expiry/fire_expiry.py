"""Forgetting old rows of the ledger by deleting them: all of them on SQLite, on PostgreSQL what DEFAULT holds.

A row is kept for its retention after its last fire, and after it was decided: what a backfill ran of long ago is
remembered for as long as what fired today.
"""

from horae.env import SECOND, Instant
from horae.store.expiry.expiry import in_default
from horae.store.script import ColumnType, Fetch, ForEach, Script, ScriptFactory, Statement
from horae.store.triggers.ledger import forget_before

LATE_BY: Instant = 86_400 * SECOND  # what was decided this long after its fires has an index of its own: `fires_late`

_KEY: tuple[tuple[str, ColumnType], ...] = (("trigger_id", "uuid"), ("last", "bigint"))
_OLD = in_default(
    Statement(
        "old_fires",
        "SELECT trigger_id, last FROM fires_default WHERE last >= $1 AND last < $2 AND decided_at < $2"
        " ORDER BY last LIMIT $3",
    )
)
_LATE = in_default(
    Statement(
        "old_late_fires",
        f"SELECT trigger_id, last FROM fires_default WHERE decided_at > last + {LATE_BY} AND decided_at < $1"
        " AND last < $1 ORDER BY decided_at LIMIT $2",
    )
)
_DELETE = in_default(
    Statement(
        "expire_fires",
        "DELETE FROM fires_default USING given WHERE fires_default.trigger_id = given.trigger_id"
        " AND fires_default.last = given.last",
    )
)


def expire_fires(low: Instant, before: Instant, batch: int) -> ScriptFactory[int]:
    """Delete up to `batch` rows whose fires, and whose decision, lie before an instant.

    Of those before `low` only late ones are looked for: the others went in an earlier step.
    """

    def script() -> Script[int]:
        old = yield Fetch(_OLD, (low, before, batch))
        if old:
            yield from forget_before(before)
        else:
            old = yield Fetch(_LATE, (before, batch))
        if old:
            yield ForEach(_DELETE, _KEY, old)
        return len(old)

    return script
