"""The fires of a run in the store: their number, the time of their decision, and the lag of their executions."""

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
# Without priorities and retries, a rank is the due instant plus a constant.
QUEUED = Statement("bench_queued", "SELECT queued_at, rank, hi - lo FROM queued WHERE queued_at >= $1 AND job <> $2")
COMMITTED = Statement(
    "bench_committed",
    "SELECT CAST(extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000000 AS bigint), rank, hi - lo"
    " FROM queued WHERE queued_at >= $1 AND job <> $2",
)
# Triggers of a run would be late in the next one; those at rest are not due for days.
FORGET = Statement("bench_forget", "UPDATE timers SET next_fire_at = NULL WHERE next_fire_at <= $1")
TOLD = Statement("bench_told", "SELECT current_setting('track_commit_timestamp')")


class FireRecords(Struct, frozen=True, kw_only=True):
    """The fires of a run."""

    fired: int
    executions: int
    batches: list[Instant]  # the decision time of each batch, in order
    lags: list[int]  # from the nominal instant to the commit, or to the queueing time: one value per slice
    committed: bool

    @property
    def first(self) -> Instant:
        return self.batches[0]

    @property
    def gap(self) -> int:
        """The longest time between two batches."""
        return max((after - before for before, after in zip(self.batches, self.batches[1:], strict=False)), default=0)

    def took(self, at: Instant) -> float:
        """Return the seconds from an instant until all were queued.

        Without commit times, the last batch counts with the average time of the others.
        """
        if self.committed:
            return max(self.lags) / SECOND
        each = (self.batches[-1] - self.batches[0]) / max(1, len(self.batches) - 1)
        return (self.batches[-1] + each - at) / SECOND


async def read_fires(env: Env, url: str, since: Instant) -> FireRecords:
    """Read the fires while no server has the store open; missing fires are lost."""
    node = await ServerNode.open(env, url, owner="(horae bench)")
    try:
        await node.prepare()
        noop = await node.base.directory.jobs.get(DEFAULT_NAMESPACE, TEMPLATE)
        lead = node.base.directory.lead(noop.queue, noop.job.spec.priority, noop.job.id)
        await node.store.write(one(FORGET, env.now() + HOUR))
        batches = await node.store.read(one(FIRED, since - SECOND))
        if not batches:
            raise HoraeError("No trigger fired.", "Is this machine busy with other work?")
        tells = node.store.database.dialect == "postgresql" and (await node.store.read(one(TOLD)))[0][0] == "on"
        slices = await node.store.read(one(COMMITTED if tells else QUEUED, since - SECOND, noop.job.id))
        return FireRecords(
            fired=sum(row[1] for row in batches),
            executions=sum(row[2] for row in slices),
            batches=[row[0] for row in batches],
            committed=tells,
            lags=[queued - rank - lead for queued, rank, _ in slices],
        )
    finally:
        await node.stop()
