"""The transport of the embedded worker: direct calls to the gateway of the same process, without HTTP."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from horae.engine.parts.optional import ArtifactStoragePart, ArtifactUpload
from horae.engine.server_node import ServerNode
from horae.model.base.ids import execution_id
from horae.model.executions.output.artifact import url_of
from horae.model.fleet.protocol import (
    Answer,
    Await,
    Awaited,
    Exchange,
    KnownSteps,
    Reattach,
    Reattached,
    Register,
    Registered,
    Remember,
    Remembered,
)
from horae.model.fleet.submit import ChildSubmit
from horae.model.tenancy.principal import DEFAULT_NAMESPACE
from horae.worker.code.artifacts import read_pieces
from horae.worker.code.execution_requests import ArtifactReceipt, ChildReceipt, UploadArtifact

_ANSWER = msgspec.json.Decoder(Answer)


class GatewayTransport:
    """A worker's transport that calls the gateway."""

    def __init__(self, node: ServerNode) -> None:
        self._node = node
        self._gateway, self._memory = node.gateway, node.gateway.durable_steps

    async def register(self, body: Register) -> Registered:
        return await self._gateway.register(DEFAULT_NAMESPACE, body)

    async def exchange(self, session: UUID, body: Exchange) -> Answer:
        return _ANSWER.decode(await self._gateway.exchange(DEFAULT_NAMESPACE, session, body))

    async def reattach(self, session: UUID, body: Reattach) -> Reattached:
        return await self._gateway.reattach(DEFAULT_NAMESPACE, session, body)

    async def submit_children(self, session: UUID, body: ChildSubmit) -> list[ChildReceipt]:
        receipts = await self._gateway.submit_children(DEFAULT_NAMESPACE, session, body)
        return [
            ChildReceipt(execution_id=receipt.execution_id, deduplicated=receipt.deduplicated) for receipt in receipts
        ]

    async def remember(self, session: UUID, body: Remember) -> Remembered:
        return await self._memory.remember(DEFAULT_NAMESPACE, session, body)

    async def known_steps(self, session: UUID, parcel: UUID, item: int, after: str) -> KnownSteps:
        return await self._memory.known(DEFAULT_NAMESPACE, session, parcel, item, after)

    async def wait_for_signal(self, session: UUID, body: Await) -> Awaited:
        return await self._memory.wait(DEFAULT_NAMESPACE, session, body)

    async def upload_artifact(
        self, session: UUID, parcel: UUID, item: int, attempt: int, file: UploadArtifact
    ) -> ArtifactReceipt:
        upload = ArtifactUpload(
            session=session, parcel=parcel, item=item, attempt=attempt, name=file.name, type=file.media
        )
        stored = await self._node.require(ArtifactStoragePart).put(DEFAULT_NAMESPACE, upload, read_pieces(file))
        url = url_of(execution_id(parcel, item), stored.name)
        return ArtifactReceipt(name=stored.name, url=url, size=stored.size, type=stored.type, sha256=stored.sha256)

    async def close_session(self, session: UUID) -> None:
        await self._gateway.close(DEFAULT_NAMESPACE, session)

    def add_servers(self, servers: Sequence[str]) -> None:
        """Do nothing: there is only the server of this process."""

    async def close(self) -> None:
        """Do nothing: there are no connections."""
