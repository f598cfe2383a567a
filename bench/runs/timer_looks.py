"""What a store tells of the fires of a run: how many, when they were decided, and how late their executions came."""

from msgspec import Struct

from bench.runs.timer_fill import TEMPLATE
from horae.engine.server_node import ServerNode
from horae.env import SECOND, Env, Instant
from horae.errors import HoraeError
from horae.model.base.duration import HOUR
from horae.model.tenancy.principal import DEFAULT_NAMESPACE
from horae.store.driver import one
from horae.store.script import Statement

FIRED = Statement(
    "bench_fired",
    "SELECT decided_at, count(*) FROM fires WHERE decided_at >= $1 AND disposition = 'fired'"
    " GROUP BY decided_at ORDER BY decided_at",
)
# Without priorities and retries a rank is when the execution was due, and a constant.
QUEUED = Statement("bench_queued", "SELECT queued_at, rank, hi - lo FROM queued WHERE queued_at >= $1 AND job <> $2")
COMMITTED = Statement(
    "bench_committed",
    "SELECT CAST(extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000000 AS bigint), rank, hi - lo"
    " FROM queued WHERE queued_at >= $1 AND job <> $2",
)
# What a run leaves behind would be late in the next; those that rest are not due for days.
FORGET = Statement("bench_forget", "UPDATE timers SET next_fire_at = NULL WHERE next_fire_at <= $1")
TOLD = Statement("bench_told", "SELECT current_setting('track_commit_timestamp')")


class Looked(Struct, frozen=True, kw_only=True):
    """The fires of a run."""

    fired: int
    executions: int
    batches: list[Instant]  # when each was decided, in order
    lags: list[int]  # from the nominal instant to the commit, or to where it was queued: one of each slice
    committed: bool

    @property
    def first(self) -> Instant:
        return self.batches[0]

    @property
    def gap(self) -> int:
        """The longest time between two batches."""
        return max((after - before for before, after in zip(self.batches, self.batches[1:], strict=False)), default=0)

    def took(self, at: Instant) -> float:
        """Seconds from an instant until all were queued; where no commit is told the last batch took as others did."""
        if self.committed:
            return max(self.lags) / SECOND
        each = (self.batches[-1] - self.batches[0]) / max(1, len(self.batches) - 1)
        return (self.batches[-1] + each - at) / SECOND


async def look(env: Env, url: str, since: Instant) -> Looked:
    """Read it while no server has the store open; what has not fired by then never does."""
    node = await ServerNode.open(env, url, owner="(horae bench)")
    try:
        await node.prepare()
        noop = await node.base.directory.job(DEFAULT_NAMESPACE, TEMPLATE)
        lead = node.base.directory.lead(noop.queue, noop.job.spec.priority, noop.job.id)
        await node.store.write(one(FORGET, env.now() + HOUR))
        batches = await node.store.read(one(FIRED, since - SECOND))
        if not batches:
            raise HoraeError("Nothing was fired.", "Is this machine busy with other things?")
        tells = node.store.driver.dialect == "postgresql" and (await node.store.read(one(TOLD)))[0][0] == "on"
        slices = await node.store.read(one(COMMITTED if tells else QUEUED, since - SECOND, noop.job.id))
        return Looked(
            fired=sum(row[1] for row in batches),
            executions=sum(row[2] for row in slices),
            batches=[row[0] for row in batches],
            committed=tells,
            lags=[queued - rank - lead for queued, rank, _ in slices],
        )
    finally:
        await node.stop()
