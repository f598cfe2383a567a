"""Tables of executions: parcels, the four shelves, and all rows that belong to a parcel, an execution or a join.

Columns that are explained nowhere here have the name and the meaning of a field in `horae.model.executions`.
"""

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
    """Return the columns of a slice that all shelves have: items `lo` to `hi - 1` of a parcel, with their counters."""
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
    opt("keys", TEXT),  # JSON of the EnvelopeKeys: limits, a sequence, a trigger's turn, ...
    opt("parent", ID),  # the execution that submitted these or of which they are steps
    col("delivery", SMALL),  # 0: at least once, 1: at most once
    col("n", INT),  # the number of items
    col("ends", BYTES),  # the end of each item in `items`
    col("items", BYTES),  # the params of the items, one after another
    opt("extras", BYTES),
    col("submitted_at", BIG),
    partial("parcels_parent", "parent", "id", where="parent IS NOT NULL"),
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
    col("rank", BIG, "0"),  # the order of the slices that wait at the same gate
    partial("waiting_wake_at", "wake_at", where="wake_at IS NOT NULL"),
    partial("waiting_gate", "gate", "rank", "parcel", "lo", where="gate IS NOT NULL"),
    partial("waiting_woken", "gate", where="gate IS NOT NULL AND wake_at IS NOT NULL"),
    partial("waiting_circuit", "gate", where="reason = 'circuit'"),
    partial("waiting_turn", "gate", where="reason = 'overlap'"),
    # Executions that have begun and are suspended; users see them as running.
    partial("waiting_begun", "parcel", "lo", where="reason IN ('children', 'signal', 'sleep')"),
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
    # A rescue reads the slices of one session in batches, in this order.
    Index("running_session", "session", "parcel", "lo"),
    # These indexes serve to count the use of limits. They have only slices with the flag LIMITED.
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
    # These indexes find unsuccessful executions by state, in a namespace or of a job, even if the job ran a million
    # times and failed twice. Successful executions are not in them and so cost nothing.
    partial("history_rare", "namespace", "state", "parcel", "lo", where="state <> 'success'"),
    partial("history_rare_job", "job", "state", "parcel", "lo", where="state <> 'success'"),
    # With this index, lists of a small namespace do not scan the rows of large ones. The first namespace, which is
    # often the only one, is not in it and so costs nothing.
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

# One row for each stored piece of the log of an item's attempt.
logs = table(
    "logs",
    key("parcel", ID),
    key("item", INT),
    key("attempt", INT),
    key("seq", INT),
    col("count", INT),
    # the number of lines of earlier attempts; the first line of this row has the number base + seq + 1, which is final
    col("base", BIG),
    col("upto", BIG),  # the size in bytes of all lines of the execution up to and including these
    opt("left_lines", INT),  # the number of lines that the worker dropped before these, because of a limit
    opt("left_bytes", BIG),  # the size of these dropped lines
    col("lines", BYTES),
    partial("logs_cut", "parcel", "item", where="left_lines IS NOT NULL"),
    by="parcel",
)

progress = table(
    "progress",
    key("parcel", ID),
    key("item", INT),
    col("attempt", INT),
    opt("percent", FLOAT),  # NULL for a heartbeat without progress
    col("message", TEXT),
    col("at", BIG),
    small=True,
)

# Dead letters (failed executions) that users retried or discarded; `execution` is the new one of a retry.
marks = table(
    "marks",
    key("parcel", ID),
    key("item", INT),
    col("kind", TEXT),
    opt("execution", ID),
    col("at", BIG),
    small=True,
)

# Requests to the sessions that hold running items, such as cancellations.
requests = table(
    "requests",
    key("parcel", ID),
    key("item", INT),
    col("attempt", INT),
    key("kind", TEXT),
    col("session", ID),
    col("reason", TEXT),  # the reason that the requester gave
    col("created_at", BIG),
    Index("requests_session", "session"),
    small=True,
)

# One row for each parcel whose executions have a limit on their waiting time or total time.
timeouts = table(
    "timeouts",
    key("parcel", ID),
    col("at", BIG),  # the earliest time at which an execution of the parcel can exceed its limit
    col("due_at", BIG),
    opt("queue_for", BIG),
    opt("total_for", BIG),
    Index("timeouts_at", "at", "parcel"),
    small=True,
    storage=BUSY,
)

# The parcels that hold the key of a limit or of a sequence, or the turn of a trigger.
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
    # empty for the join of the job itself; else the id of a waiting execution: several may wait for one interval
    key("step", TEXT),
    key("interval_start", BIG),  # -1 without an interval
    opt("interval_end", BIG),
    col("state", TEXT),  # open, started, skipped or ended
    opt("execution", ID),  # the execution that the join started, or that waits for it
    opt("deadline", BIG),  # when the wait for the upstreams ends
    opt("wake_at", BIG),  # when a server has to check the join even if no upstream has ended
    col("made_at", BIG),
    partial("joins_wake_at", "wake_at", where="wake_at IS NOT NULL"),
    partial("joins_open", "dependent", "interval_start", "step", where="state = 'open'"),
    Index("joins_made_at", "made_at"),
    small=True,
)

# The ended upstreams of a join.
join_parts = table(
    "join_parts",
    key("dependent", ID),
    key("step", TEXT),
    key("interval_start", BIG),
    key("upstream", ID),
    col("met", BOOL),  # whether this end meets the condition of the dependency
    col("state", TEXT),  # the final state of the upstream's execution
    col("execution", ID),
    col("at", BIG),
    small=True,
)

# Starts and skips that dependencies led to. `at` is the instant of the decision, because there is no nominal time.
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


# The keys of unique, debounced, batched and cached jobs, each with the execution that answers further submissions.
meetings = table(
    "meetings",
    key("job", ID),
    key("kind", TEXT),  # unique, debounce, batch or cache
    key("key", TEXT),
    col("execution", ID),
    col("opened_at", BIG),
    opt("until", BIG),  # the end of the key's period; NULL if the key depends on the state of its execution instead
    opt("span", BIG),  # how long a result is cached
    col("count", INT),  # the number of submissions that this execution answers
    partial("meetings_until", "until", where="until IS NOT NULL"),
    small=True,
)


# One row for each step that waits for a signal, in a durable execution or in the workflow that an execution runs.
awaits = table(
    "awaits",
    key("parcel", ID),
    key("item", INT),
    key("step", TEXT),
    col("name", TEXT),  # the name of the signal
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
