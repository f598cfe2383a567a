"""What a running execution may ask of its session, and the way there."""

from concurrent.futures import Future
from typing import Any, Protocol
from uuid import UUID

from msgspec import Raw, Struct

from horae.env import Micros
from horae.model.fleet.protocol import LogStream
from horae.model.fleet.submit import Submit


class ChildReceipt(Struct, frozen=True, kw_only=True, rename="camel"):
    """An execution that a running one submitted."""

    execution_id: UUID
    deduplicated: bool = False

    @property
    def id(self) -> str:
        """As the client spells it."""
        return str(self.execution_id)


class SubmitExecutions(Struct, frozen=True, tag="Submissions"):
    """Submit executions; the same call of the same execution answers with the same ones."""

    call: str
    submissions: list[Submit]


class RememberStep(Struct, frozen=True, tag="Keep"):
    """Remember a step's result, and answer with the one that counts."""

    name: str
    result: Raw


class RecallSteps(Struct, frozen=True, tag="Recall"):
    """Answer with the steps that earlier attempts had remembered, by name."""


class ReadServerTime(Struct, frozen=True, tag="Now"):
    """Answer with the server's time."""


class ShortSleep(Struct, frozen=True, tag="Nap"):
    """Answer after a while."""

    span: Micros


class WaitForSignal(Struct, frozen=True, tag="WaitFor"):
    """A step waits for a signal: answer with its `Awaited`."""

    step: str
    signal: str
    filter: str | None
    timeout: Micros | None


class UploadArtifact(Struct, frozen=True, tag="Bring"):
    """Have a file kept as an artifact, and answer with what is `Kept`."""

    name: str
    path: str
    media: str
    owner: int | None = None  # the user whose file it has to be, if the worker may read more than who wrote it


class ArtifactReceipt(Struct, frozen=True, kw_only=True, rename="camel"):
    """An artifact as it is kept."""

    name: str
    url: str
    size: int
    type: str
    sha256: str


ExecutionRequest = (
    SubmitExecutions | RememberStep | RecallSteps | ReadServerTime | ShortSleep | WaitForSignal | UploadArtifact
)


class ExecutionPort(Protocol):
    """The way from an execution to its session. Safe to use from any thread."""

    @property
    def interrupted(self) -> str | None:
        """Why the execution should stop, if it should."""
        ...

    def heartbeat(self) -> None: ...

    def progress(self, percent: float, message: str) -> None: ...

    def log(self, stream: LogStream, text: str) -> None: ...

    def hide(self, text: str) -> str:
        """The text without the values of secrets that the execution was given."""
        ...

    def ask(self, ask: ExecutionRequest) -> "Future[Any]":
        """Ask the server; the future fails with the server's error."""
        ...
