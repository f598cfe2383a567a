"""Requests to a server: their content, their retries, and the meaning of the answers."""

import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from inspect import get_annotations
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from horae.client.encode import camel, encode
from horae.client.problems import not_horae, rebuild, retry_after, unreachable, with_all_places
from horae.client.transport.streamed import ResponseStream
from horae.client.transport.transport import ApiRequest, ApiResponse, ClientTransport, StreamedResponse, Unanswered
from horae.client.views import HealthInfo
from horae.env import SECOND, Env
from horae.errors import BadInput, HoraeError
from horae.model.base.trace import UNTRACED, TraceContext, TraceHeaders, checked_state, checked_trace

BASE = "/api/v1"
T = TypeVar("T")
PARENT, STATE = "TRACEPARENT", "TRACESTATE"  # environment variables with the trace of a command


class RequestRetryPolicy(Struct, frozen=True, kw_only=True):
    """The time for which an unanswered request is repeated, with growing, jittered pauses."""

    total: float = 30.0  # seconds since the first attempt
    pause: float = 0.1  # seconds before the first repetition
    longest: float = 5.0  # seconds of the longest pause
    refusals: int | None = None  # servers that may refuse a connection before the client gives up; None: any number

    def wait(self, tries: int, chance: float) -> float:
        """Return the pause in seconds after this many attempts; `chance` is a random number from 0 to 1."""
        return min(self.longest, self.pause * 2.0 ** min(tries - 1, 16)) * (0.5 + chance / 2)


def path_of(*parts: str) -> str:
    """Return a path under /api/v1 with each part quoted. Refuses parts that would change the path."""
    for part in parts:
        if part in ("", ".", ".."):
            raise BadInput(f"{part!r} is not a name or an id.", "Write the whole name or id.", field="name")
    return "/".join((BASE, *(quote(part, safe="") for part in parts)))


class Caller:
    """The sender of requests, which repeats them until they are answered.

    A POST or DELETE carries an Idempotency-Key, so a repetition has no second effect and gets the first answer.
    """

    def __init__(
        self, transport: ClientTransport, key: str, env: Env, patience: RequestRetryPolicy, namespace: str = ""
    ) -> None:
        self._transport = transport
        self.env = env
        self._patience = patience
        self._headers = {"accept": "application/json"}
        if key := key.strip():
            self._headers["authorization"] = f"Bearer {key}"
        if namespace:
            self._headers["horae-namespace"] = namespace

    @property
    def place(self) -> str:
        """The URL of the server that answers now."""
        return self._transport.place

    async def get(self, path: str, query: Mapping[str, Any] | None = None, *, timeout: float = 60.0) -> Any:
        return self._json(await self.ask(self._call("GET", path, query=query, timeout=timeout)))

    async def post(
        self,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        timeout: float = 60.0,
        key: str | None = None,
    ) -> Any:
        sent = b"" if body is None else encode(body)
        return self._json(await self.post_bytes(path, sent, query=query, timeout=timeout, key=key))

    async def post_bytes(
        self,
        path: str,
        body: bytes,
        *,
        query: Mapping[str, Any] | None = None,
        timeout: float = 60.0,
        key: str | None = None,
    ) -> ApiResponse:
        headers = {"idempotency-key": str(self.env.new_id()) if key is None else key}
        trace = current_trace()
        if trace.parent:
            headers["traceparent"] = trace.parent
            if trace.state:
                headers["tracestate"] = trace.state
        return await self.ask(self._call("POST", path, body, headers, query=query, timeout=timeout))

    async def edit(
        self, method: str, path: str, body: Any, if_match: str | None = None, *, query: Mapping[str, Any] | None = None
    ) -> Any:
        headers = {"if-match": if_match} if if_match else {}
        return self._json(await self.ask(self._call(method, path, encode(body), headers, query=query)))

    async def delete(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        headers = {"idempotency-key": str(self.env.new_id())}
        return self._json(await self.ask(self._call("DELETE", path, headers=headers, query=query)))

    async def health(self) -> HealthInfo:
        reply = await self.ask(self._call("GET", "/healthz"))
        offset = None
        if date := reply.headers.get("date"):
            offset = int(parsedate_to_datetime(date).timestamp() * SECOND) + SECOND // 2 - self.env.now()
        return HealthInfo.of({**self._json(reply), "clockOffset": offset})

    async def ask(self, call: ApiRequest) -> ApiResponse:
        """Send a request, repeatedly, until there is a final answer or the time for repetitions is over.

        Raises the error that the last answer contains. Every server is tried at least once.
        """
        clock = self.env.clock
        began = clock.monotonic()
        tries = 0
        tried: dict[str, None] = {}  # the URLs of the servers, in order
        while True:
            tries += 1
            tried[self._transport.place] = None
            problem, patience, requested = await self._try(call, tries)
            if isinstance(problem, ApiResponse):
                return problem
            is_known = self._transport.place in tried
            pause = max(requested if is_known else 0.0, self._patience.wait(tries, self.env.rng.random()))
            over = clock.monotonic() + pause > began + patience and is_known
            if over or not patience:
                raise with_all_places(problem, list(tried))
            await clock.sleep(pause)

    def open(self, path: str, query: Mapping[str, Any] | None, accept: str, *, timeout: float = 60.0) -> ResponseStream:
        """Open a streamed answer; the caller decides whether to reopen it when it breaks."""
        call = self._call("GET", path, query=query, headers={"accept": accept}, timeout=timeout)
        return ResponseStream(lambda: self._open(call))

    @asynccontextmanager
    async def _open(self, call: ApiRequest) -> AsyncIterator[StreamedResponse]:
        place = self._transport.place
        try:
            async with self._transport.open(call) as opened:
                if opened.status >= 300:
                    body = b"".join([chunk async for chunk in opened.chunks])
                    raise rebuild(ApiResponse(status=opened.status, headers=opened.headers, body=body), place)
                yield opened
        except Unanswered as lost:
            raise unreachable(place, lost, "GET") from lost

    async def close(self) -> None:
        await self._transport.close()

    async def _try(self, call: ApiRequest, tries: int) -> tuple[ApiResponse | HoraeError, float, float]:
        """Send a request once.

        Return the answer or the error, the seconds since the first attempt in which the request may be repeated, and
        the pause in seconds that the server requests.
        """
        place, total = self._transport.place, self._patience.total
        try:
            reply = await self._transport.send(call)
        except Unanswered as lost:
            refusals = self._patience.refusals
            again = "if-match" not in call.headers if lost.sent else refusals is None or tries < refusals
            return unreachable(place, lost, call.method), total if again else 0.0, 0.0
        if reply.status < 300:
            return reply, 0.0, 0.0
        if reply.status == 409:  # another server may still be processing our first attempt
            total = max(total, call.timeout)
        return rebuild(reply, place), total if _may_repeat(reply, call, tries) else 0.0, retry_after(reply) or 0.0

    def _call(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: dict[str, str] | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        timeout: float = 60.0,
    ) -> ApiRequest:
        own = {"content-type": "application/json"} if body else {}
        given = urlencode({camel(name): _text(value) for name, value in (query or {}).items() if value is not None})
        return ApiRequest(
            method=method,
            path=f"{path}?{given}" if given else path,
            headers=_checked({**self._headers, **own, **(headers or {})}),
            body=body,
            timeout=timeout,
        )

    def _json(self, reply: ApiResponse) -> Any:
        try:
            return msgspec.json.decode(reply.body) if reply.body else None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise not_horae(self.place) from error


class Resource:
    """A part of a client, such as `client.queues`.

    Each method sends a request. Annotated attributes are nested resources, which are created with it.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        for name, kind in get_annotations(type(self)).items():
            setattr(self, name, kind(caller))


def _may_repeat(reply: ApiResponse, call: ApiRequest, tries: int) -> bool:
    """Tell whether to repeat a request after this answer.

    It is repeated if the server is busy, if a proxy cannot reach it, or if it is still processing our first attempt.
    """
    if reply.status in (429, 503):
        return True
    if reply.status == 409:
        return tries > 1 and "retry-after" in reply.headers
    return reply.status in (502, 504) and "if-match" not in call.headers


def _checked(headers: dict[str, str]) -> dict[str, str]:
    """Return headers that HTTP can carry. The error does not show the value, which may be secret."""
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable() and value == value.strip()):
            what = {"authorization": "key", "horae-namespace": "namespace"}.get(name, f"header {name}")
            remedy = "Use printable ASCII characters, without a space at either end."
            raise BadInput(f"The {what} has characters that HTTP cannot carry.", remedy, field=name)
    return headers


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def current_trace() -> TraceHeaders:
    """Return the current OpenTelemetry span, or else the trace in which this process was started, if any.

    OpenTelemetry is not imported here: a program that has not imported it has no current span.
    """
    api = sys.modules.get("opentelemetry.trace")
    span = None if api is None else api.get_current_span().get_span_context()
    if span is not None and span.is_valid:
        own = TraceContext(f"{span.trace_id:032x}", f"{span.span_id:016x}", bool(span.trace_flags.sampled))
        return TraceHeaders(own.header, checked_state(span.trace_state.to_header()))
    parent = checked_trace(os.environ.get(PARENT))
    return UNTRACED if parent is None else TraceHeaders(parent, checked_state(os.environ.get(STATE)))
