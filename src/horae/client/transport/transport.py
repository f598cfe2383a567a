"""The client's interface to transports, which send a call to a server and return the answer.

`http` uses the network, `embedded` calls a server in the same process; tests have their own.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from msgspec import Struct


class ApiRequest(Struct, frozen=True, kw_only=True):
    """One request; `path` begins at the server's root and includes the query."""

    method: str
    path: str
    headers: dict[str, str] = {}
    body: bytes = b""
    timeout: float = 60.0  # seconds of silence before the request counts as unanswered


class ApiResponse(Struct, frozen=True, kw_only=True):
    """A complete answer; header names are in lower case."""

    status: int
    headers: dict[str, str] = {}
    body: bytes = b""


class StreamedResponse(Struct, frozen=True, kw_only=True):
    """An answer whose body arrives in chunks."""

    status: int
    headers: dict[str, str]
    chunks: AsyncIterator[bytes]


class Unanswered(Exception):
    """There was no answer. Unless `sent` is false, the server may have processed the request."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sent = sent


class ClientTransport(Protocol):
    """A way to send calls to a server."""

    @property
    def place(self) -> str:
        """The server of the next call, for messages."""
        ...

    async def send(self, call: ApiRequest) -> ApiResponse:
        """Send one call and return its answer, whatever its status. Raises Unanswered and nothing else."""
        ...

    def open(self, call: ApiRequest) -> AbstractAsyncContextManager[StreamedResponse]:
        """Send one call and stream the answer's body as it arrives. Raises Unanswered, also at any chunk."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
