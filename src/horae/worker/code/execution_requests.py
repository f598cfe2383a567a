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
    deduplicated: bool = False  # the submission's key was taken: this is the existing execution

    @property
    def id(self) -> str:
        """Return the id as a string, as the SDK's client does."""
        return str(self.execution_id)


class SubmitExecutions(Struct, frozen=True, tag="Submissions"):
    """Submit executions. A repeated request with the same `call` returns the executions of the first request.

    `call` identifies the request among all submissions of the running execution.
    """

    call: str
    submissions: list[Submit]


class RememberStep(Struct, frozen=True, tag="Keep"):
    """Remember the result of a step and return the remembered result: an earlier one, if there is one already."""

    name: str
    result: Raw


class RecallSteps(Struct, frozen=True, tag="Recall"):
    """Return the results of the steps that earlier attempts remembered, by name of the step."""


class ReadServerTime(Struct, frozen=True, tag="Now"):
    """Return the server's time."""


class ShortSleep(Struct, frozen=True, tag="Nap"):
    """Return after a short time."""

    span: Micros


class WaitForSignal(Struct, frozen=True, tag="WaitFor"):
    """Let a step wait for a signal. Return an `Awaited`: the signal if it has arrived, otherwise the deadline."""

    step: str
    signal: str
    filter: str | None
    timeout: Micros | None


class UploadArtifact(Struct, frozen=True, tag="Bring"):
    """Store a file as an artifact, and return its receipt."""

    name: str
    path: str
    media: str
    owner: int | None = None  # the user id that must own the file: that of the command, if it is not the worker's own


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
        """Send a request to the session. If it is refused, the future has the server's error."""
        ...
