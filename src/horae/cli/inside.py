"""The embedded worker's way to its server: the gateway of the same process, without HTTP between."""

from collections.abc import Sequence
from uuid import UUID

import msgspec
from msgspec import Raw

from horae.engine.keys import DEFAULT_NAMESPACE
from horae.engine.node import Node
from horae.model.protocol import Answer, ChildSubmit, Exchange, Register, Registered, Step, StepRemembered
from horae.worker.context import Submitted

_ANSWER = msgspec.json.Decoder(Answer)


class InsideTransport:
    """A worker's transport that calls the gateway."""

    def __init__(self, node: Node, namespace: int = DEFAULT_NAMESPACE) -> None:
        self._gateway, self._namespace = node.gateway, namespace

    async def register(self, body: Register) -> Registered:
        return await self._gateway.register(self._namespace, body)

    async def exchange(self, session: UUID, body: Exchange) -> Answer:
        return _ANSWER.decode(await self._gateway.exchange(self._namespace, session, body))

    async def submit_children(self, session: UUID, body: ChildSubmit) -> list[Submitted]:
        receipts = await self._gateway.submit_children(self._namespace, session, body)
        return [Submitted(execution_id=receipt.execution_id, deduplicated=receipt.deduplicated) for receipt in receipts]

    async def remember_step(self, session: UUID, body: Step) -> StepRemembered:
        return await self._gateway.remember(self._namespace, session, body)

    async def known_steps(self, session: UUID, parcel: UUID, item: int) -> dict[str, Raw]:
        return dict(await self._gateway.steps(self._namespace, session, parcel, item))

    async def close_session(self, session: UUID) -> None:
        await self._gateway.close(self._namespace, session)

    def learn(self, servers: Sequence[str]) -> None:
        """There is one server, and it is here."""

    async def close(self) -> None:
        """There are no connections."""
