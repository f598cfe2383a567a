"""The part of a server that counts and reads statistics."""

from collections.abc import Collection, Sequence

from horae.engine.parts.optional import JobStatisticsPart
from horae.engine.server_node import ServerNode
from horae.engine.service import Service
from horae.features.statistics.engine.job_statistics import JobStatistics
from horae.features.statistics.engine.overview import Overview
from horae.features.statistics.engine.recount import Recounter
from horae.features.statistics.engine.statistics import Statistics
from horae.model.definitions.job_view import JobView
from horae.model.definitions.listed_job_view import ListedJobView


class StatisticsPart(JobStatisticsPart):
    """The part that counts outcomes by minute, hour and day, and reads them."""

    def __init__(self, node: ServerNode) -> None:
        env, store, topics = node.env, node.store, node.base.topics
        self.statistics = Statistics(env, store, node.id, topics)
        self.recounter = Recounter(env, store, node.id, topics)
        self.job_statistics = JobStatistics(env, store)
        self.overview = Overview(
            env, store, node.base.directory, node.work.gauges, node.firing.forecasts, node.fleet.workers
        )  # fmt: skip

    async def listed(self, jobs: Sequence[JobView]) -> list[ListedJobView]:
        return await self.job_statistics.listed(jobs)

    async def prepare(self) -> None:
        await self.recounter.prepare()

    def services(self, roles: Collection[str]) -> Sequence[Service]:
        return [self.statistics, self.recounter] if "scheduler" in roles else [self.statistics]

    async def flush(self) -> None:
        await self.statistics.close()
