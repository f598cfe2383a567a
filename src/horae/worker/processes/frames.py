"""Messages between a worker and its child processes, as length-prefixed JSON over a socket.

"Down" means from the worker to the child, "up" from the child to the worker.
"""

import struct
from typing import Any

import msgspec
from msgspec import Raw, Struct

from horae.model.fleet.protocol import Awaited, LogStream
from horae.worker.code.context import AttemptFacts
from horae.worker.code.execution_requests import (
    ArtifactReceipt,
    ChildReceipt,
    ExecutionRequest,
    ReadServerTime,
    RecallSteps,
    RememberStep,
    ShortSleep,
    SubmitExecutions,
    UploadArtifact,
    WaitForSignal,
)
from horae.worker.holding import ItemOutcome

HEADER = struct.Struct("<I")


class HelloFrame(Struct, frozen=True, tag="Hello"):
    """Down, once: the user's module path, and the variables that must not appear in /proc."""

    path: list[str]
    env: dict[str, str]


class OrderFrame(Struct, frozen=True, tag="Order"):
    """Down: run this function now."""

    module: str
    function: str
    facts: AttemptFacts
    secrets: dict[str, str] = {}  # the secrets that the function may read


class StopFrame(Struct, frozen=True, tag="Stop"):
    """Down: the present execution should stop."""

    kind: str


class AnswerFrame(Struct, frozen=True, tag="Reply"):
    """Down: the answer to a request."""

    id: int
    answer: Raw = Raw(b"null")
    error: str | None = None


class ReadyFrame(Struct, frozen=True, tag="Ready"):
    """Up, once: the child can take orders."""


class HeartbeatFrame(Struct, frozen=True, tag="Alive"):
    """Up: a sign of life."""


class ProgressFrame(Struct, frozen=True, tag="Progressed"):
    """Up: the progress of the execution."""

    percent: float
    message: str


class LogFrame(Struct, frozen=True, tag="Logged"):
    """Up: a log line."""

    stream: LogStream
    text: str


class RequestFrame(Struct, frozen=True, tag="Asked"):
    """Up: a request to the server."""

    id: int
    ask: ExecutionRequest


class EndFrame(Struct, frozen=True, tag="Ended"):
    """Up: the order is done. `fate` is set if the outcome is more than a result."""

    result: bytes = b"null"
    fate: ItemOutcome | None = None


Down = HelloFrame | OrderFrame | StopFrame | AnswerFrame
Up = ReadyFrame | HeartbeatFrame | ProgressFrame | LogFrame | RequestFrame | EndFrame


def encode_frame(message: Down | Up) -> bytes:
    """Encode a message for the socket."""
    body = msgspec.json.encode(message)
    return HEADER.pack(len(body)) + body


decode_down = msgspec.json.Decoder(Down).decode
decode_up = msgspec.json.Decoder(Up).decode


ANSWERS: dict[type, msgspec.json.Decoder[Any]] = {
    SubmitExecutions: msgspec.json.Decoder(list[ChildReceipt]),
    RememberStep: msgspec.json.Decoder(Raw),
    RecallSteps: msgspec.json.Decoder(dict[str, Raw]),
    ReadServerTime: msgspec.json.Decoder(int),
    ShortSleep: msgspec.json.Decoder(None),
    WaitForSignal: msgspec.json.Decoder(Awaited),
    UploadArtifact: msgspec.json.Decoder(ArtifactReceipt),
}


def reply_to(request_id: int, answer: object) -> AnswerFrame:
    """Wrap the server's answer to a request."""
    return AnswerFrame(request_id, Raw(msgspec.json.encode(answer)))


def decode_answer(ask: ExecutionRequest, reply: AnswerFrame) -> Any:
    """Decode the answer to a request by the kind of the request."""
    return ANSWERS[type(ask)].decode(bytes(reply.answer))
