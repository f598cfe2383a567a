"""What only one database needs: PostgreSQL's default partitions, and the view that unfolds slices in each dialect."""

from horae.store.tables import PARTITIONED

_PARTS = "namespace, queue, job, attempt, failures, losses"
_SHELVES = f"""
    SELECT parcel, lo, hi, {_PARTS},
           CASE WHEN reason IN ('children', 'sleep', 'signal') THEN 'running' ELSE 'waiting' END AS state,
           reason, wake_at, CAST(NULL AS BIGINT) AS queued_at,
           CAST(NULL AS BIGINT) AS started_at, CAST(NULL AS BIGINT) AS completed_at
    FROM waiting
    UNION ALL SELECT parcel, lo, hi, {_PARTS}, 'queued', '', NULL, queued_at, NULL, NULL FROM queued
    UNION ALL SELECT parcel, lo, hi, {_PARTS}, 'running', '', NULL, queued_at, started_at, NULL FROM running
    UNION ALL SELECT parcel, lo, hi, {_PARTS}, state, reason, NULL, queued_at, started_at, completed_at FROM history"""
_COLUMNS = f"{_PARTS}, state, reason, wake_at, queued_at, started_at, completed_at"

POSTGRES_VIEW = f"""
CREATE VIEW executions AS
SELECT left(parcel::text, 32) || lpad(to_hex(item), 4, '0') AS id, parcel, item, {_COLUMNS}
FROM ({_SHELVES}) AS slices CROSS JOIN LATERAL generate_series(lo, hi - 1) AS item"""

# SQLite has no lateral series: slices meet a list of all indexes an item can have.
SQLITE_VIEW = f"""
CREATE VIEW executions AS
WITH RECURSIVE indexes(item) AS (SELECT 0 UNION ALL SELECT item + 1 FROM indexes WHERE item < 1023),
slices AS ({_SHELVES})
SELECT lower(substr(hex(parcel), 1, 8) || '-' || substr(hex(parcel), 9, 4) || '-' || substr(hex(parcel), 13, 4) || '-'
       || substr(hex(parcel), 17, 4) || '-' || substr(hex(parcel), 21, 8)) || printf('%04x', item) AS id,
       parcel, item, {_COLUMNS}
FROM slices JOIN indexes ON item >= lo AND item < hi"""
# Rows come in the order in which executions end, so a range of times is a range of pages; on SQLite one of rowids.
POSTGRES_ENDED = "CREATE INDEX history_ended ON history USING brin (completed_at) WITH (autosummarize = on)"


def extras(dialect: str) -> list[str]:
    """The statements that complete the tables of `schema/` for a dialect."""
    if dialect == "sqlite":
        return [SQLITE_VIEW]
    partitioned = (*PARTITIONED, "fires")
    defaults = [f"CREATE TABLE {name}_default PARTITION OF {name} DEFAULT" for name in partitioned]
    return [*defaults, POSTGRES_ENDED, POSTGRES_VIEW]
