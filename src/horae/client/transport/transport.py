"""The one seam of the client: how a call reaches a server and an answer comes back.

`http` goes over the network, `embedded` calls a server in the same process; tests bring their own.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from msgspec import Struct


class ApiRequest(Struct, frozen=True, kw_only=True):
    """One request; `path` begins at the server's root and carries its query."""

    method: str
    path: str
    headers: dict[str, str] = {}
    body: bytes = b""
    timeout: float = 60.0  # seconds of silence after which nobody is expected to answer


class ApiResponse(Struct, frozen=True, kw_only=True):
    """An answer, read to its end; header names are in lower case."""

    status: int
    headers: dict[str, str] = {}
    body: bytes = b""


class StreamedResponse(Struct, frozen=True, kw_only=True):
    """An answer whose body arrives little by little."""

    status: int
    headers: dict[str, str]
    chunks: AsyncIterator[bytes]


class Unanswered(Exception):
    """No answer came. Unless `sent` is false, the server may have done what was asked."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sent = sent


class ClientTransport(Protocol):
    """Carries calls to a server."""

    @property
    def place(self) -> str:
        """Whom the next call goes to, for people."""
        ...

    async def send(self, call: ApiRequest) -> ApiResponse:
        """Carry one call and bring its answer, whatever its status. Raises Unanswered and nothing else."""
        ...

    def open(self, call: ApiRequest) -> AbstractAsyncContextManager[StreamedResponse]:
        """Carry one call and hand out the answer's body as it arrives. Raises Unanswered, at any chunk too."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
