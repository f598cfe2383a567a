"""The part of a server that archives executions."""

from collections.abc import Collection, Sequence

from msgspec import structs

from horae.engine.parts.part import ServerPart
from horae.engine.server_node import ServerNode
from horae.engine.service import Service
from horae.engine.storage.file_storage import open_storage
from horae.features.archive.engine.archiver import Archiver
from horae.features.archive.engine.reader import ArchiveReader
from horae.model.base.store_view import StoreView


class ArchivePart(ServerPart):
    """Writes executions past their retention to files, and reads them from there."""

    def __init__(self, node: ServerNode) -> None:
        place, retention = open_storage(node.settings.artifacts), node.settings.retention
        self.reader = ArchiveReader(node.env, node.store, place)
        self.archiver = Archiver(
            node.env, node.store, node.id, retention, node.base.clock, node.work.executions, place
        )  # fmt: skip

    async def complete_report(self, report: StoreView) -> StoreView:
        return structs.replace(report, archive_problem=await self.archiver.trouble())

    def services(self, roles: Collection[str]) -> Sequence[Service]:
        return [self.archiver] if "scheduler" in roles else ()
