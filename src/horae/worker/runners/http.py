"""HTTP requests as jobs: a status outside what is expected is a failure."""

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from horae.model.job import Http
from horae.model.protocol import Failure
from horae.model.signature import BadParams
from horae.model.template import TemplateError, render, render_tree
from horae.worker.context import Context
from horae.worker.failure import clean, failed
from horae.worker.holding import Begun, Fate
from horae.worker.retry_after import retry_after
from horae.worker.runners.base import Host, Run
from horae.worker.runners.tasks import TaskRunner

if TYPE_CHECKING:
    import httpx2

MAX_BODY = 64 * 1024  # of a response that is kept
CONNECT_TIMEOUT = 10.0
READ_TIMEOUT = 300.0  # seconds of silence, for jobs without a timeout of their own


class HttpRunner(TaskRunner):
    """One request per item. Redirects are answers like any other and are not followed."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._made: httpx2.AsyncClient | None = None

    async def one(self, run: Run, begun: Begun) -> bytes | Fate:
        context = run.context_of(begun)
        try:
            request = self._request(run, begun, context)
        except (BadParams, TemplateError) as error:
            return failed("BadParams", str(error), permanent=True)
        try:
            return await self._exchange(run, request)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            return failed(type(error).__name__, f"{request.method} {_shown(request)}: {str(error) or 'no answer'}")

    async def close(self) -> None:
        await super().close()
        if self._made is not None:
            await self._made.aclose()

    @property
    def _http(self) -> "httpx2.AsyncClient":
        """Made when first used: importing httpx2 and reading certificates take a while."""
        if self._made is None:
            import httpx2

            timeout = httpx2.Timeout(READ_TIMEOUT, connect=CONNECT_TIMEOUT)
            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=32)
            self._made = httpx2.AsyncClient(follow_redirects=False, timeout=timeout, limits=limits)
        return self._made

    def _request(self, run: Run, begun: Begun, context: Context) -> "httpx2.Request":
        task = run.plan.spec.task
        assert isinstance(task, Http)
        params = run.plan.params(begun[0].item(begun[1]))
        scope = {"params": params}
        url = checked_url(render(run.plan.url, scope))
        headers = {name: _header(name, render(value, scope)) for name, value in run.plan.headers.items()}
        given = {name.lower() for name in headers}
        body = params if task.body is None else render_tree(run.plan.body, scope)
        content = body.encode() if isinstance(body, str) else msgspec.json.encode(body)
        if task.method.upper() in ("GET", "HEAD", "DELETE", "OPTIONS") and task.body is None:
            content = b""
        if content and "content-type" not in given:
            headers["Content-Type"] = "text/plain; charset=utf-8" if isinstance(body, str) else "application/json"
        if "idempotency-key" not in given:
            headers["Idempotency-Key"] = str(context.execution_id)
        if context.trace and "traceparent" not in given:
            headers["traceparent"] = context.trace
        return self._http.build_request(task.method.upper(), url, headers=headers, content=content)

    async def _exchange(self, run: Run, request: "httpx2.Request") -> bytes | Fate:
        task = run.plan.spec.task
        assert isinstance(task, Http)
        response = await self._http.send(request, stream=True)
        try:
            body, is_whole = await _read(response)
        finally:
            await response.aclose()
        if is_expected(response.status_code, task.expect):
            return kept(response.status_code, response.headers.get("content-type", ""), body, is_whole)
        said = f"{request.method} {_shown(request)} answered {response.status_code}, expected {', '.join(task.expect)}"
        words = clean(body[:500].decode(errors="replace")).strip()
        error = Failure(
            type="HttpStatus",
            message=f"{said}: {words}" if words else said,
            retry_after=retry_after(response.headers),
            status=response.status_code,
        )
        return Fate(outcome="failed", error=error)


def is_expected(status: int, expect: tuple[str, ...]) -> bool:
    """Whether a status is named, or its class is ("2xx")."""
    return any(wanted in (str(status), f"{status // 100}xx") for wanted in map(str.lower, expect))


def kept(status: int, type: str, body: bytes, is_whole: bool) -> bytes:
    """A response as a result: JSON as it is, anything else with its status."""
    if is_whole and "json" in type:
        try:
            return msgspec.json.encode(msgspec.json.decode(body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
    result: dict[str, Any] = {"status": status, "body": clean(body.decode(errors="replace"))}
    return msgspec.json.encode(result if is_whole else {**result, "truncated": True})


def checked_url(url: str) -> str:
    """A URL that may be called, or a BadParams that says why not."""
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
        raise BadParams(f"the header {name} may not hold line breaks")
    return value


async def _read(response: "httpx2.Response") -> tuple[bytes, bool]:
    """The beginning of a body, and whether it is all of it."""
    body = b""
    async for part in response.aiter_bytes():
        body += part
        if len(body) > MAX_BODY:
            return body[:MAX_BODY], False
    return body, True


def _shown(request: "httpx2.Request") -> str:
    """A URL without what may be secret in it."""
    return str(request.url.copy_with(query=None, username=None, password=None, fragment=None))
