"""What happened, added up by spans of time: a row for each writer, which it alone rewrites with what it counted so far.

A writer is a server for as long as it remembers: what is read is the sum over all of them.
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
    key("at", BIG),  # when it begins
    key("writer", ID),
    *_counts(),
    opt("durations", BYTES),  # of those that a worker ran: a histogram
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
    opt("lags", BYTES),  # of fires, after they were due
    opt("lag_max", BIG),
    opt("waits", BYTES),  # from the queue to the start
    opt("queued", INT),  # the most that was seen
    Index("namespace_spans_at", "span", "at"),
    small=True,
)
