"""What a worker and its child processes say to each other, as length-prefixed JSON over a socket."""

import struct

import msgspec
from msgspec import Raw, Struct

from horae.worker.context import Facts, KnownSteps, Remember, Submissions, Submitted
from horae.worker.holding import Fate

HEADER = struct.Struct("<I")


class Hello(Struct, frozen=True, tag=True):
    """Down, once: where the child finds the user's modules."""

    path: list[str]


class Order(Struct, frozen=True, tag=True):
    """Down: run this function now."""

    module: str
    function: str
    facts: Facts


class Stop(Struct, frozen=True, tag=True):
    """Down: the present execution should stop."""

    kind: str


class Reply(Struct, frozen=True, tag=True):
    """Down: what an ask was answered with."""

    id: int
    submitted: list[Submitted] | None = None
    remembered: bytes | None = None
    steps: dict[str, bytes] | None = None
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

    stream: str
    text: str


class Asked(Struct, frozen=True, tag=True):
    """Up: a question to the server."""

    id: int
    ask: Submissions | Remember | KnownSteps


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


def reply_to(id: int, answer: object) -> Reply:
    """Wrap the server's answer to an ask."""
    if isinstance(answer, Raw):
        return Reply(id, remembered=bytes(answer))
    if isinstance(answer, dict):
        return Reply(id, steps={name: bytes(result) for name, result in answer.items()})
    return Reply(id, submitted=answer if isinstance(answer, list) else [])
