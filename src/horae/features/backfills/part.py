"""The backfills part of a server."""

from collections.abc import Collection, Sequence

from horae.engine.parts.part import ServerPart
from horae.engine.server_node import ServerNode
from horae.engine.service import Service
from horae.features.backfills.engine.backfiller import Backfiller
from horae.features.backfills.engine.backfills import Backfills


class BackfillsPart(ServerPart):
    """The part that runs the fires of a past range, a bounded number at a time."""

    def __init__(self, node: ServerNode) -> None:
        self.backfiller = Backfiller(node.env, node.store, node.base.directory, node.base.hints)
        self.backfills = Backfills(
            node.env, node.store, wake=self.backfiller.alarm.ring, cancel=node.work.executions.cancel,
            fire_due=node.firing.scheduler.step,
        )  # fmt: skip

    def services(self, roles: Collection[str]) -> Sequence[Service]:
        return [self.backfiller] if "scheduler" in roles else ()
