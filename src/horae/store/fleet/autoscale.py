"""The backlog of a queue and its latest results, from which autoscalers compute a number of workers."""

from msgspec import Struct

from horae.env import Instant
from horae.store.script import Fetch, Script, Statement

MOST = 100_000  # slices of a lane that are counted at most
# Counts slices in the order of the lane. So the oldest slice is counted unless 100,000 younger ones are more urgent.
QUEUED = Statement(
    "backlog_of_lane",
    "SELECT coalesce(sum(n), 0), min(at) FROM (SELECT hi - lo AS n, queued_at AS at FROM queued WHERE lane = $1"
    f" ORDER BY rank LIMIT {MOST}) AS head",
)
RUNNING = Statement(
    "running_of_queue",
    "SELECT coalesce(sum(hi - lo), 0), coalesce(sum((hi - lo) * ($2 - coalesce(started_at, granted_at))), 0)"
    " FROM running WHERE queue = $1",
)
ENDED = Statement(
    "ended_of_queue",
    "SELECT m.minute, sum(m.success + m.failed), sum(m.busy_micros) FROM job_minutes m JOIN jobs j ON j.id = m.job"
    " JOIN job_versions v ON v.job = j.id AND v.version = j.version WHERE m.minute >= $2 AND v.queue = $1"
    " GROUP BY m.minute",
)
MINUTE = 60_000_000
MINUTES = 5  # the latest minutes whose statistics are read


class QueueActivity(Struct, frozen=True, kw_only=True):
    """The load of a queue now, and the number and total duration of executions that ended in the latest minutes."""

    backlog: int  # queued executions
    oldest: Instant | None  # when the oldest of them was queued
    running: int
    run_so_far: int  # microseconds that running executions have run, in total
    ended: dict[int, tuple[int, int]]  # minute -> ended executions, and their microseconds in total


def queue_activity(queue: int, lanes: list[int], now: Instant) -> Script[QueueActivity]:
    """Return the present load and latest results of a queue."""
    heads = []
    for lane in lanes:
        heads += yield Fetch(QUEUED, (lane,))
    ((running, run_so_far),) = yield Fetch(RUNNING, (queue, now))
    rows = yield Fetch(ENDED, (queue, now // MINUTE - MINUTES))
    return QueueActivity(
        backlog=sum(int(count) for count, _ in heads),
        oldest=min((at for _, at in heads if at is not None), default=None),
        running=int(running), run_so_far=int(run_so_far),
        ended={minute: (int(count), int(busy)) for minute, count, busy in rows},
    )  # fmt: skip
