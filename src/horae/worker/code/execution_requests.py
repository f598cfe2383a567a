"""Requests of a running execution to its session, and the port that carries them."""

from concurrent.futures import Future
from typing import Any, Protocol
from uuid import UUID

from msgspec import Raw, Struct

from horae.env import Micros
from horae.model.fleet.protocol import LogStream
from horae.model.fleet.submit import Submit


class ChildReceipt(Struct, frozen=True, kw_only=True, rename="camel"):
    """An execution that a running execution submitted."""

    execution_id: UUID
    deduplicated: bool = False

    @property
    def id(self) -> str:
        """Return the id as the client writes it."""
        return str(self.execution_id)


class SubmitExecutions(Struct, frozen=True, tag="Submissions"):
    """Submit executions; a repeated call of the same execution returns the same executions."""

    call: str
    submissions: list[Submit]


class RememberStep(Struct, frozen=True, tag="Keep"):
    """Remember a step's result, and return the result that counts."""

    name: str
    result: Raw


class RecallSteps(Struct, frozen=True, tag="Recall"):
    """Return the steps that earlier attempts remembered, by name."""


class ReadServerTime(Struct, frozen=True, tag="Now"):
    """Return the server's time."""


class ShortSleep(Struct, frozen=True, tag="Nap"):
    """Return after a short time."""

    span: Micros


class WaitForSignal(Struct, frozen=True, tag="WaitFor"):
    """Return the `Awaited` of a step that waits for a signal."""

    step: str
    signal: str
    filter: str | None
    timeout: Micros | None


class UploadArtifact(Struct, frozen=True, tag="Bring"):
    """Store a file as an artifact, and return its receipt."""

    name: str
    path: str
    media: str
    owner: int | None = None  # the required owner of the file, if the worker may read more files than its writer


class ArtifactReceipt(Struct, frozen=True, kw_only=True, rename="camel"):
    """A stored artifact."""

    name: str
    url: str
    size: int
    type: str
    sha256: str


ExecutionRequest = (
    SubmitExecutions | RememberStep | RecallSteps | ReadServerTime | ShortSleep | WaitForSignal | UploadArtifact
)


class ExecutionPort(Protocol):
    """The connection from an execution to its session. Safe to use from any thread."""

    @property
    def interrupted(self) -> str | None:
        """Return the reason why the execution should stop, if it should."""
        ...

    def heartbeat(self) -> None: ...

    def progress(self, percent: float, message: str) -> None: ...

    def log(self, stream: LogStream, text: str) -> None: ...

    def hide(self, text: str) -> str:
        """Return the text with the execution's secrets masked."""
        ...

    def ask(self, ask: ExecutionRequest) -> "Future[Any]":
        """Send a request to the server; the future fails with the server's error."""
        ...
