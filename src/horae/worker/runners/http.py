"""HTTP requests as jobs: an unexpected status is a failure."""

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from horae.env import SECOND
from horae.model.definitions.function_signature import BadParams
from horae.model.definitions.tasks import HttpTask
from horae.model.expressions.meter import shared_budget
from horae.model.expressions.template import TemplateError, render, render_tree
from horae.model.fleet.protocol import ReportedFailure
from horae.worker.code.context import Context
from horae.worker.code.failure import clean, failed, retry_after
from horae.worker.holding import ItemOutcome, StartedItem
from horae.worker.runners.base import ChunkRun, RunnerHost
from horae.worker.runners.tasks import TaskRunner
from horae.worker.secrets import HeldSecrets

if TYPE_CHECKING:
    from horae.outbound.fetch import Outbound, OutboundAnswer

LATER = 60.0  # seconds after the job's own timeout at which the HTTP client gives up


class RenderedRequest(Struct, frozen=True):
    """A request with its templates filled in."""

    method: str
    url: str
    headers: dict[str, str]
    content: bytes


class HttpRunner(TaskRunner):
    """Sends one request per item, to allowed addresses. A redirect counts as the answer unless the job follows it."""

    def __init__(self, host: RunnerHost) -> None:
        super().__init__(host)
        self._made: Outbound | None = None

    async def run_item(self, run: ChunkRun, begun: StartedItem) -> bytes | ItemOutcome:
        context = run.context_of(begun)
        try:
            with shared_budget():
                request = self._request(run, begun, context)
        except (BadParams, TemplateError) as error:
            return failed("BadParams", str(error), permanent=True)
        try:
            return await self._exchange(run, begun, request)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            message = f"{request.method} {public_url(request.url)}: {str(error) or 'no answer'}"
            if type(error).__name__ == "Refused":
                return failed("OutboundRefused", message, permanent=True)
            return failed(type(error).__name__, message)

    async def close(self) -> None:
        await super().close()
        if self._made is not None:
            await self._made.close()

    @property
    def _outbound(self) -> "Outbound":
        """Return the client, created at its first use: importing httpx2 and reading certificates take a while."""
        if self._made is None:
            from horae.outbound.fetch import Outbound

            self._made = Outbound(self.host.settings.outbound)
        return self._made

    def _request(self, run: ChunkRun, begun: StartedItem, context: Context) -> RenderedRequest:
        task = run.plan.spec.task
        assert isinstance(task, HttpTask)
        plan = run.plan_of(begun)
        params = plan.params(begun[0].item(begun[1]))
        scope = {"params": params}
        url = checked_url(render(plan.url, scope))
        headers = {name: _header(name, render(value, scope)) for name, value in plan.headers.items()}
        given = {name.lower() for name in headers}
        body = params if task.body is None else render_tree(plan.body, scope)
        content = body.encode() if isinstance(body, str) else msgspec.json.encode(body)
        if task.method.upper() in ("GET", "HEAD", "DELETE", "OPTIONS") and task.body is None:
            content = b""
        if content and "content-type" not in given:
            headers["Content-Type"] = "text/plain; charset=utf-8" if isinstance(body, str) else "application/json"
        if "idempotency-key" not in given:
            headers["Idempotency-Key"] = str(context.execution_id)
        if context.trace and "traceparent" not in given:
            headers["traceparent"] = context.trace
            if context.trace_state and "tracestate" not in given:
                headers["tracestate"] = context.trace_state
        return RenderedRequest(task.method.upper(), url, headers, content)

    async def _exchange(self, run: ChunkRun, begun: StartedItem, request: RenderedRequest) -> bytes | ItemOutcome:
        task, timeout = run.plan.spec.task, run.plan.spec.timeout
        assert isinstance(task, HttpTask)
        response = await self._outbound.fetch(
            request.method,
            request.url,
            headers=request.headers,
            content=request.content,
            redirects=task.redirects,
            within=None if timeout is None else timeout / SECOND + LATER,
        )
        return response_outcome(task, request, response, begun[0].secrets)


def response_outcome(
    task: HttpTask, request: RenderedRequest, response: "OutboundAnswer", secrets: HeldSecrets | None
) -> bytes | ItemOutcome:
    """Return the outcome of a request by its answer.

    Secrets are masked before the body is cut: half a secret would not be recognised.
    """
    if secrets is not None and not response.is_whole:
        response = replace(response, body=secrets.mask_start(response.body))
    if is_expected(response.status, task.expect):
        return response_result(
            response.status, response.headers.get("content-type", ""), response.body, response.is_whole
        )
    message = (
        f"{request.method} {public_url(request.url)} answered {response.status}, expected {', '.join(task.expect)}"
    )
    body = response.body[:500] if secrets is None else secrets.redactor.data(response.body)[:500]
    words = clean(body.decode(errors="replace")).strip()
    error = ReportedFailure(
        type="HttpStatus",
        message=f"{message}: {words}" if words else message,
        retry_after=retry_after(response.headers),
        status=response.status,
    )
    return ItemOutcome(outcome="failed", error=error)


def is_expected(status: int, expect: tuple[str, ...]) -> bool:
    """Return whether a status, or its class ("2xx"), is listed."""
    return any(wanted in (str(status), f"{status // 100}xx") for wanted in map(str.lower, expect))


def response_result(status: int, media_type: str, body: bytes, is_whole: bool) -> bytes:
    """Return a response as a result: JSON unchanged, any other body with its status."""
    if is_whole and "json" in media_type:
        try:
            return msgspec.json.encode(msgspec.json.decode(body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
    result: dict[str, Any] = {"status": status, "body": clean(body.decode(errors="replace"))}
    return msgspec.json.encode(result if is_whole else {**result, "truncated": True})


def checked_url(url: str) -> str:
    """Return a URL that may be requested. Raises BadParams with the reason otherwise."""
    try:
        at = urlsplit(url)
        is_fine = at.scheme in ("http", "https") and bool(at.hostname) and at.port != 0
    except ValueError as error:
        raise BadParams(f"{url!r} is not a URL: {error}") from None
    if not is_fine or any(char <= " " for char in url):
        raise BadParams(f"{url!r} is not a URL of http or https")
    return url


def _header(name: str, value: str) -> str:
    if any(char in value for char in "\r\n\0"):
        raise BadParams(f"the header {name} must not contain line breaks or null characters")
    return value


def public_url(url: str) -> str:
    """Return a URL without parts that may be secret."""
    at = urlsplit(url)
    return f"{at.scheme}://{at.netloc.rpartition('@')[2]}{at.path}"
