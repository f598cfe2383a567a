"""The transport interface: the only connection between a worker and the servers."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

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
from horae.worker.code.execution_requests import ArtifactReceipt, ChildReceipt, UploadArtifact


class Transport(Protocol):
    """Carries a session's calls to a server that answers.

    If the server answers with an error, the call raises the class of `horae.errors` that represents it. `Busy` or a
    subclass of it means that the call should be repeated, perhaps on another server; it is raised if no answer arrives,
    too. Every call except `register` may be repeated without harm.
    """

    async def register(self, body: Register) -> Registered: ...

    async def exchange(self, session: UUID, body: Exchange) -> Answer:
        """Wait for the answer for the time that the server may hold it back (`body.wait`), and 3 s more."""
        ...

    async def reattach(self, session: UUID, body: Reattach) -> Reattached: ...

    async def submit_children(self, session: UUID, body: ChildSubmit) -> list[ChildReceipt]: ...

    async def remember(self, session: UUID, body: Remember) -> Remembered: ...

    async def known_steps(self, session: UUID, parcel: UUID, item: int, after: str) -> KnownSteps: ...

    async def wait_for_signal(self, session: UUID, body: Await) -> Awaited: ...

    async def upload_artifact(
        self, session: UUID, parcel: UUID, item: int, attempt: int, file: UploadArtifact
    ) -> ArtifactReceipt:
        """Upload a file of a running item to the artifact store; a repetition replaces it by the same file."""
        ...

    async def close_session(self, session: UUID) -> None:
        """End the session after a drain, when it holds no items any more."""
        ...

    def add_servers(self, servers: Sequence[str]) -> None:
        """Remember further servers to use."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
