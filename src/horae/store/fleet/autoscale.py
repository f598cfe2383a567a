"""What a queue holds and what became of its executions lately, for those who decide how many workers there are."""

from msgspec import Struct

from horae.env import Instant
from horae.store.script import Fetch, Script, Statement

MOST = 100_000  # slices of a lane that are counted
# In the lane's order: the oldest is among them, unless so many later ones are more urgent.
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
MINUTES = 5  # of statistics that count


class QueueActivity(Struct, frozen=True, kw_only=True):
    """What a queue holds, how long its running executions have run, and what ended by minute: how many, how long."""

    backlog: int
    oldest: Instant | None
    running: int
    run_so_far: int  # microseconds, all together
    ended: dict[int, tuple[int, int]]


def queue_activity(queue: int, lanes: list[int], now: Instant) -> Script[QueueActivity]:
    """How a queue stands now."""
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
