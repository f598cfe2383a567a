"""What a worker and its child processes say to each other, as length-prefixed JSON over a socket."""

import struct
from typing import Any

import msgspec
from msgspec import Raw, Struct

from horae.model.fleet.protocol import Awaited, LogStream
from horae.worker.code.asks import (
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
from horae.worker.code.context import AttemptFacts
from horae.worker.holding import ItemOutcome

HEADER = struct.Struct("<I")


class HelloFrame(Struct, frozen=True, tag="Hello"):
    """Down, once: where the child finds the user's modules, and the variables that /proc is not to show."""

    path: list[str]
    env: dict[str, str]


class OrderFrame(Struct, frozen=True, tag="Order"):
    """Down: run this function now."""

    module: str
    function: str
    facts: AttemptFacts
    secrets: dict[str, str] = {}  # that it may ask for


class StopFrame(Struct, frozen=True, tag="Stop"):
    """Down: the present execution should stop."""

    kind: str


class AnswerFrame(Struct, frozen=True, tag="Reply"):
    """Down: what an ask was answered with."""

    id: int
    answer: Raw = Raw(b"null")
    error: str | None = None


class ReadyFrame(Struct, frozen=True, tag="Ready"):
    """Up, once: the child can take orders."""


class HeartbeatFrame(Struct, frozen=True, tag="Alive"):
    """Up: a sign of life."""


class ProgressFrame(Struct, frozen=True, tag="Progressed"):
    """Up: how far the execution is."""

    percent: float
    message: str


class LogFrame(Struct, frozen=True, tag="Logged"):
    """Up: a log line."""

    stream: LogStream
    text: str


class RequestFrame(Struct, frozen=True, tag="Asked"):
    """Up: a question to the server."""

    id: int
    ask: ExecutionRequest


class EndFrame(Struct, frozen=True, tag="Ended"):
    """Up: the order is done; `fate` when it is more than a result."""

    result: bytes = b"null"
    fate: ItemOutcome | None = None


Down = HelloFrame | OrderFrame | StopFrame | AnswerFrame
Up = ReadyFrame | HeartbeatFrame | ProgressFrame | LogFrame | RequestFrame | EndFrame


def framed(message: Down | Up) -> bytes:
    """A message as it goes over the socket."""
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


def reply_to(id: int, answer: object) -> AnswerFrame:
    """Wrap the server's answer to an ask."""
    return AnswerFrame(id, Raw(msgspec.json.encode(answer)))


def answer_of(ask: ExecutionRequest, reply: AnswerFrame) -> Any:
    """The answer to an ask, as its kind has it."""
    return ANSWERS[type(ask)].decode(bytes(reply.answer))
