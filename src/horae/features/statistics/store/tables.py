"""Tables of counts by spans of time. Each writer has rows of its own, which it overwrites with its counts so far.

A writer is an id that a server has chosen. A server chooses a new one whenever it drops its counts from memory. Reads
add up the rows of all writers.
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
    key("at", BIG),  # the beginning of the span
    key("writer", ID),
    *_counts(),
    opt("durations", BYTES),  # histogram of durations
    opt("waits", BYTES),  # histogram of the time from the queue to the start
    Index("job_spans_at", "span", "at"),
    small=True,
)

namespace_spans = table(
    "namespace_spans",
    key("namespace", INT),
    key("span", INT),  # seconds: a minute, ten minutes or an hour
    key("at", BIG),
    key("writer", ID),
    *_counts(),
    opt("lags", BYTES),  # histogram of the time from the nominal instant of a fire to its start
    opt("lag_max", BIG),  # the longest of these times
    opt("waits", BYTES),  # histogram of the time from the queue to the start
    opt("queued", INT),  # the greatest number of queued executions that was sampled
    Index("namespace_spans_at", "span", "at"),
    small=True,
)
