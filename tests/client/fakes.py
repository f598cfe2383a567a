"""A transport with scripted answers, and a clock that advances with every sleep."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from horae.client.client import Client
from horae.client.transport.calls import RequestRetryPolicy
from horae.client.transport.transport import ApiRequest, ApiResponse, StreamedResponse, Unanswered
from horae.env import SECOND, Env, VirtualClock, virtual_env

Answer = ApiResponse | Unanswered | Callable[[ApiRequest], ApiResponse]


class QuickClock(VirtualClock):
    """A clock whose sleeps advance the time at once and are recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(int(seconds * SECOND))
        await asyncio.sleep(0)


class Scripted:
    """A transport that gives its answers in order and repeats the last one."""

    place = "http://scripted"

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.calls: list[ApiRequest] = []
        self.closed = False

    async def send(self, call: ApiRequest) -> ApiResponse:
        self.calls.append(call)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Unanswered):
            raise answer
        return answer(call) if callable(answer) else answer

    @asynccontextmanager
    async def open(self, call: ApiRequest) -> AsyncIterator[StreamedResponse]:
        reply = await self.send(call)

        async def chunks() -> AsyncIterator[bytes]:
            for i in range(0, len(reply.body), 7):
                yield reply.body[i : i + 7]

        yield StreamedResponse(status=reply.status, headers=reply.headers, chunks=chunks())

    async def close(self) -> None:
        self.closed = True


def ok(document: Any, status: int = 200) -> ApiResponse:
    return ApiResponse(status=status, body=msgspec.json.encode(document))


def problem(status: int, slug: str, detail: str = "No.", retry_after: int | None = None, **fields: Any) -> ApiResponse:
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    document = {"type": f"urn:horae:{slug}", "status": status, "detail": detail, "remedy": "Do this.", **fields}
    return ApiResponse(status=status, headers=headers, body=msgspec.json.encode(document))


def client_of(*answers: Answer, patience: RequestRetryPolicy | None = None) -> tuple[Client, Scripted, QuickClock]:
    transport, clock = Scripted(*answers), QuickClock()
    env: Env = virtual_env(7, clock)
    return Client(key="hk_test", transport=transport, env=env, patience=patience), transport, clock
