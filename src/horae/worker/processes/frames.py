"""What a worker and its child processes say to each other, as length-prefixed JSON over a socket."""

import struct
from typing import Any

import msgspec
from msgspec import Raw, Struct

from horae.model.fleet.protocol import Awaited, LogStream
from horae.worker.code.asks import Ask, Bring, Keep, Kept, Nap, Now, Recall, Submissions, Submitted, WaitFor
from horae.worker.code.context import Facts
from horae.worker.holding import Fate

HEADER = struct.Struct("<I")


class Hello(Struct, frozen=True, tag=True):
    """Down, once: where the child finds the user's modules, and the variables that /proc is not to show."""

    path: list[str]
    env: dict[str, str]


class Order(Struct, frozen=True, tag=True):
    """Down: run this function now."""

    module: str
    function: str
    facts: Facts
    secrets: dict[str, str] = {}  # that it may ask for


class Stop(Struct, frozen=True, tag=True):
    """Down: the present execution should stop."""

    kind: str


class Reply(Struct, frozen=True, tag=True):
    """Down: what an ask was answered with."""

    id: int
    answer: Raw = Raw(b"null")
    error: str | None = None


class Ready(Struct, frozen=True, tag=True):
    """Up, once: the child can take orders."""


class Alive(Struct, frozen=True, tag=True):
    """Up: a sign of life."""


class Progressed(Struct, frozen=True, tag=True):
    """Up: how far the execution is."""

    percent: float
    message: str


class Logged(Struct, frozen=True, tag=True):
    """Up: a log line."""

    stream: LogStream
    text: str


class Asked(Struct, frozen=True, tag=True):
    """Up: a question to the server."""

    id: int
    ask: Ask


class Ended(Struct, frozen=True, tag=True):
    """Up: the order is done; `fate` when it is more than a result."""

    result: bytes = b"null"
    fate: Fate | None = None


Down = Hello | Order | Stop | Reply
Up = Ready | Alive | Progressed | Logged | Asked | Ended


def framed(message: Down | Up) -> bytes:
    """A message as it goes over the socket."""
    body = msgspec.json.encode(message)
    return HEADER.pack(len(body)) + body


decode_down = msgspec.json.Decoder(Down).decode
decode_up = msgspec.json.Decoder(Up).decode


ANSWERS: dict[type, msgspec.json.Decoder[Any]] = {
    Submissions: msgspec.json.Decoder(list[Submitted]),
    Keep: msgspec.json.Decoder(Raw),
    Recall: msgspec.json.Decoder(dict[str, Raw]),
    Now: msgspec.json.Decoder(int),
    Nap: msgspec.json.Decoder(None),
    WaitFor: msgspec.json.Decoder(Awaited),
    Bring: msgspec.json.Decoder(Kept),
}


def reply_to(id: int, answer: object) -> Reply:
    """Wrap the server's answer to an ask."""
    return Reply(id, Raw(msgspec.json.encode(answer)))


def answer_of(ask: Ask, reply: Reply) -> Any:
    """The answer to an ask, as its kind has it."""
    return ANSWERS[type(ask)].decode(bytes(reply.answer))
