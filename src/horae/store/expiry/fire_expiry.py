"""Deletion of old rows of the ledger. On PostgreSQL it deletes rows in DEFAULT partitions; days are dropped as a whole.

The retention of a row begins with its last fire or with its decision, whichever is later. So the fires of a backfill
are retained after the backfill for as long as the fires of that day.
"""

from horae.env import SECOND, Instant
from horae.store.expiry.expiry import in_default
from horae.store.script import ColumnType, Fetch, ForEach, Script, ScriptFactory, Statement
from horae.store.triggers.ledger import forget_before

LATE_BY: Instant = 86_400 * SECOND  # the index `fires_late` has the rows that were decided this long after their fires

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
    """Return a script that deletes up to `batch` rows whose fires and decision are before an instant.

    Earlier calls have deleted the rows with fires before `low`, except rows that were decided late, so the script
    selects only such rows there.
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
