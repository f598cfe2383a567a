"""Tables of outcomes by spans of time. Each writer has its own rows, which only it rewrites with its counts so far.

A server takes a new writer id whenever it drops its counts from memory. Reads add up the rows of all writers.
"""

from typing import Any

from sqlalchemy import Column, Index

from horae.store.schema.columns import BIG, BYTES, ID, INT, col, key, opt, table


def _counts() -> list[Column[Any]]:
    return [
        *(col("success", INT), col("failed", INT), col("cancelled", INT), col("skipped", INT)),
        *(col("retried", INT), col("lost", INT), col("busy_micros", BIG)),
    ]


job_spans = table(
    "job_spans",
    key("job", ID),
    key("span", INT),  # seconds: an hour or a day
    key("at", BIG),  # its beginning
    key("writer", ID),
    *_counts(),
    opt("durations", BYTES),  # histogram
    opt("waits", BYTES),  # from the queue to the start
    Index("job_spans_at", "span", "at"),
    small=True,
)

namespace_spans = table(
    "namespace_spans",
    key("namespace", INT),
    key("span", INT),  # seconds: a minute, ten or an hour
    key("at", BIG),
    key("writer", ID),
    *_counts(),
    opt("lags", BYTES),  # of fires: from the nominal time to the fire
    opt("lag_max", BIG),
    opt("waits", BYTES),  # from the queue to the start
    opt("queued", INT),  # the greatest number that was seen
    Index("namespace_spans_at", "span", "at"),
    small=True,
)
