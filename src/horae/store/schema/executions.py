"""Executions: parcels, the four shelves, signals, deduplication, and other rows that belong to an execution."""

from typing import Any

from sqlalchemy import Column, Index

from horae.store.schema.columns import (
    BIG,
    BOOL,
    BUSY,
    BYTES,
    BYTEWISE,
    FLOAT,
    ID,
    INT,
    SMALL,
    TEXT,
    col,
    key,
    opt,
    partial,
    table,
)


def _slice() -> list[Column[Any]]:
    """Return the columns of a slice, the same on every shelf."""
    return [
        key("parcel", ID),
        key("lo", INT),
        col("hi", INT),
        col("job", ID),
        col("queue", INT),
        col("namespace", INT),
        col("attempt", INT),
        col("failures", INT),
        col("losses", INT),
    ]


parcels = table(
    "parcels",
    key("id", ID),
    col("namespace", INT),
    col("job", ID),
    col("version", INT),
    col("queue", INT),
    col("lane", INT),
    col("priority", SMALL),
    opt("deadline", BIG),
    col("due_at", BIG),
    opt("keys", TEXT),
    opt("parent", ID),
    col("delivery", SMALL),
    col("n", INT),
    col("ends", BYTES),
    col("items", BYTES),
    opt("extras", BYTES),
    col("submitted_at", BIG),
    partial(
        "parcels_parent", "parent", "id", where="parent IS NOT NULL"
    ),  # executions submitted by executions, and steps
    partial("parcels_deadline", "deadline", "id", where="deadline IS NOT NULL"),
    by="id",
)

waiting = table(
    "waiting",
    *_slice(),
    col("alone", SMALL, "0"),
    col("width", INT),
    col("flags", SMALL, "0"),
    opt("wake_at", BIG),
    col("reason", TEXT),
    opt("gate", TEXT),
    col("rank", BIG, "0"),  # the order at its gate
    partial("waiting_wake_at", "wake_at", where="wake_at IS NOT NULL"),
    partial("waiting_gate", "gate", "rank", "parcel", "lo", where="gate IS NOT NULL"),
    partial("waiting_woken", "gate", where="gate IS NOT NULL AND wake_at IS NOT NULL"),
    partial("waiting_circuit", "gate", where="reason = 'circuit'"),
    partial("waiting_turn", "gate", where="reason = 'overlap'"),
    partial(
        "waiting_begun", "parcel", "lo", where="reason IN ('children', 'signal', 'sleep')"
    ),  # these read as running
    partial("waiting_limited", "queue", where="(flags & 2) <> 0"),
    Index("waiting_job", "job", "reason"),
    Index("waiting_queue", "queue"),  # to count the waiting executions of a bounded queue
    small=True,
    storage=BUSY,
)

queued = table(
    "queued",
    *_slice(),
    col("alone", SMALL, "0"),
    col("width", INT),
    col("flags", SMALL, "0"),
    col("lane", INT),
    col("rank", BIG),
    col("queued_at", BIG),
    opt("expires_at", BIG),
    Index("queued_order", "lane", "rank", "parcel", "lo"),
    Index("queued_job", "job"),
    partial("queued_preempting", "lane", "rank", where="(flags & 16) <> 0"),
    small=True,
    storage=BUSY,
)

running = table(
    "running",
    *_slice(),
    col("alone", SMALL, "0"),
    col("width", INT),
    col("flags", SMALL, "0"),
    col("session", ID),
    col("channel", SMALL),
    col("n", BIG),
    col("lane", INT),
    col("rank", BIG),
    col("queued_at", BIG),
    col("granted_at", BIG),
    opt("started_at", BIG),
    # In the order of the shelf: a rescue reads one session's slices in batches.
    Index("running_session", "session", "parcel", "lo"),
    # For counting the use of limits; slices without a limit are in none of these indexes.
    partial("running_limited_job", "job", where="(flags & 2) <> 0"),
    partial("running_limited_queue", "queue", where="(flags & 2) <> 0"),
    partial("running_limited_namespace", "namespace", where="(flags & 2) <> 0"),
    partial("running_preemptible", "namespace", where="(flags & 32) <> 0"),
    small=True,
    storage=BUSY,
)

history = table(
    "history",
    *_slice(),
    col("state", TEXT),
    col("reason", TEXT),
    col("worker", TEXT),
    opt("queued_at", BIG),
    opt("started_at", BIG),
    col("completed_at", BIG),
    opt("exit_code", INT),
    opt("ends", BYTES),
    opt("results", BYTES),
    opt("timings", BYTES),
    opt("error", TEXT),
    col("flags", SMALL, "0"),
    Index("history_job", "job", "parcel"),
    # For searches of unsuccessful executions by state, in a namespace, or of a job that ran a million times and
    # failed twice. Successful executions cost nothing here.
    partial("history_rare", "namespace", "state", "parcel", "lo", where="state <> 'success'"),
    partial("history_rare_job", "job", "state", "parcel", "lo", where="state <> 'success'"),
    # So lists of a small namespace do not scan the rows of large ones; the first, often only, namespace costs nothing.
    partial("history_tenant", "namespace", "parcel", "lo", where="namespace <> 1"),
    by="parcel",
)

attempts = table(
    "attempts",
    key("parcel", ID),
    key("attempt", INT),
    key("lo", INT),
    col("hi", INT),
    col("worker", TEXT),
    col("session", ID),
    col("outcome", TEXT),
    col("kind", TEXT, "''"),  # the kind of failure: error, timeout, lost or platform
    opt("started_at", BIG),
    col("ended_at", BIG),
    opt("exit_code", INT),
    opt("error", TEXT),
    by="parcel",
)

logs = table(
    "logs",
    key("parcel", ID),
    key("item", INT),
    key("attempt", INT),
    key("seq", INT),
    col("count", INT),
    col("base", BIG),  # lines of earlier attempts: a line's number is base + seq + 1, and never changes
    col("upto", BIG),  # bytes of the execution's lines up to and including these
    opt("left_lines", INT),  # lines that the worker left out before these, over the limit
    opt("left_bytes", BIG),
    col("lines", BYTES),
    partial("logs_cut", "parcel", "item", where="left_lines IS NOT NULL"),
    by="parcel",
)

progress = table(
    "progress",
    key("parcel", ID),
    key("item", INT),
    col("attempt", INT),
    opt("percent", FLOAT),  # NULL: only a sign of life
    col("message", TEXT),
    col("at", BIG),
    small=True,
)

marks = table(
    "marks",
    key("parcel", ID),
    key("item", INT),
    col("kind", TEXT),
    opt("execution", ID),
    col("at", BIG),
    small=True,
)

requests = table(
    "requests",
    key("parcel", ID),
    key("item", INT),
    col("attempt", INT),
    key("kind", TEXT),
    col("session", ID),
    col("reason", TEXT),  # the reason given with the request
    col("created_at", BIG),
    Index("requests_session", "session"),
    small=True,
)

# One row for each parcel whose executions have a limit on their waiting time or total time.
timeouts = table(
    "timeouts",
    key("parcel", ID),
    col("at", BIG),  # the earliest time at which an execution of it may be over its limit
    col("due_at", BIG),
    opt("queue_for", BIG),
    opt("total_for", BIG),
    Index("timeouts_at", "at", "parcel"),
    small=True,
    storage=BUSY,
)

holders = table("holders", key("key", BYTEWISE), key("parcel", ID), key("lo", INT), small=True)

unique_keys = table(
    "unique_keys",
    key("namespace", INT),
    key("scope", TEXT),
    key("key", TEXT),
    col("execution", ID),
    col("until", BIG),
    Index("unique_keys_until", "until"),
    small=True,
)

idempotency = table(
    "idempotency",
    key("namespace", INT),
    key("route", TEXT),
    key("key", TEXT),
    col("body_hash", BYTES),
    opt("status", INT),
    opt("answer", BYTES),
    col("until", BIG),
    col("created_at", BIG),
    Index("idempotency_until", "until"),
)

steps = table(
    "steps",
    key("parcel", ID),
    key("item", INT),
    key("name", TEXT),
    col("attempt", INT),
    col("result", BYTES),
    col("at", BIG),
)

blobs = table("blobs", key("parcel", ID), key("item", INT), col("content", BYTES))

joins = table(
    "joins",
    key("dependent", ID),
    key("step", TEXT),  # empty for the job's own join; the waiting execution, when several wait for one interval
    key("interval_start", BIG),  # -1 without an interval
    opt("interval_end", BIG),
    col("state", TEXT),  # open, started, skipped or ended
    opt("execution", ID),  # the execution that was started or waits
    opt("deadline", BIG),  # the end of the wait
    opt("wake_at", BIG),  # when a server has to check it, even if no upstream ends
    col("made_at", BIG),
    partial("joins_wake_at", "wake_at", where="wake_at IS NOT NULL"),
    partial("joins_open", "dependent", "interval_start", "step", where="state = 'open'"),
    Index("joins_made_at", "made_at"),
    small=True,
)

join_parts = table(
    "join_parts",
    key("dependent", ID),
    key("step", TEXT),
    key("interval_start", BIG),
    key("upstream", ID),
    col("met", BOOL),
    col("state", TEXT),  # the final state of the upstream's execution
    col("execution", ID),
    col("at", BIG),
    small=True,
)

# Starts and skips by dependencies, at the instant of the decision: there is no nominal instant.
dependency_fires = table(
    "dependency_fires",
    key("at", BIG),
    key("execution", ID),
    col("job", ID),
    col("disposition", TEXT),
    col("cause", TEXT),
    Index("dependency_fires_job", "job", "at", "execution"),
    small=True,
)


meetings = table(
    "meetings",
    key("job", ID),
    key("kind", TEXT),  # unique, debounce, batch or cache
    key("key", TEXT),
    col("execution", ID),
    col("opened_at", BIG),
    opt("until", BIG),  # for a key with a period; others hold as long as the state of their execution requires
    opt("span", BIG),  # how long a result is cached
    col("count", INT),  # submissions that this execution stands for
    partial("meetings_until", "until", where="until IS NOT NULL"),
    small=True,
)


# One row for each waiting step of a durable execution, or of the workflow that this execution runs.
awaits = table(
    "awaits",
    key("parcel", ID),
    key("item", INT),
    key("step", TEXT),
    col("name", TEXT),  # the signal's name
    opt("filter", TEXT),
    opt("deadline", BIG),
    col("at", BIG),
    small=True,
)

signals = table(
    "signals",
    key("parcel", ID),
    key("item", INT),
    key("id", ID),
    col("name", TEXT),
    col("payload", BYTES),
    col("seq", INT),  # the order of arrival
    opt("taken_by", TEXT),  # the step to which it was delivered
    col("at", BIG),
)
