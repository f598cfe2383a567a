"""The part of a server that stores artifacts."""

from collections.abc import AsyncIterable, Collection, Sequence

from horae.engine.parts.optional import ArtifactStoragePart, ArtifactUpload
from horae.engine.server_node import ServerNode
from horae.engine.service import Service
from horae.engine.storage.file_storage import open_storage
from horae.features.artifacts.engine import Artifacts, ArtifactSweeper
from horae.model.executions.output.artifact import Artifact


class ArtifactsPart(ArtifactStoragePart):
    """The part that stores files of executions, and deletes them after their executions."""

    def __init__(self, node: ServerNode) -> None:
        place, most = open_storage(node.settings.artifacts), node.settings.artifact_limit
        self.artifacts = Artifacts(node.env, node.store, node.fleet.sessions, node.work.executions, place, most)
        self.sweeper = ArtifactSweeper(node.env, node.store, node.id, place)

    async def put(self, namespace: int, upload: ArtifactUpload, pieces: AsyncIterable[bytes]) -> Artifact:
        return await self.artifacts.put(namespace, upload, pieces)

    def services(self, roles: Collection[str]) -> Sequence[Service]:
        return [self.sweeper] if "scheduler" in roles else ()
