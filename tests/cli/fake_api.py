"""A small API to run commands against: routes answer with documents, and every request is recorded."""

import re
from collections.abc import Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
from click.testing import CliRunner, Result

from horae.cli.main import cli
from horae.cli.remote import CliOverrides
from horae.client.transport.transport import ApiRequest, ApiResponse
from horae.env import virtual_env
from horae.errors import HoraeError
from tests.client.fakes import QuickClock

Handler = Callable[..., Any]


class Request:
    """A request that a command sent."""

    def __init__(self, call: ApiRequest) -> None:
        parts = urlsplit(call.path)
        self.method, self.path = call.method, parts.path.removeprefix("/api/v1")
        self.query = dict(parse_qsl(parts.query))
        self.body = msgspec.json.decode(call.body) if call.body else None
        self.headers = call.headers

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"


class FakeApi:
    """A transport that answers by a table of "METHOD /path" -> document, error, or function of the request."""

    place = "http://fake"

    def __init__(self, routes: Mapping[str, Any]) -> None:
        self.routes = dict(routes)
        self.requests: list[Request] = []

    async def send(self, call: ApiRequest) -> ApiResponse:
        request = Request(call)
        self.requests.append(request)
        for pattern, answer in self.routes.items():
            if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", pattern), request.line):
                return self._reply(answer(request) if callable(answer) else answer)
        return problem(404, "not-found", f"The fake has no {request.line}.")

    def _reply(self, answer: Any) -> ApiResponse:
        if isinstance(answer, ApiResponse):
            return answer
        if isinstance(answer, HoraeError):
            return problem(answer.status, answer.slug, answer.detail, answer.remedy)
        return ApiResponse(status=200, body=b"" if answer is None else msgspec.json.encode(answer))

    @asynccontextmanager
    async def open(self, call: ApiRequest):
        raise NotImplementedError
        yield

    async def close(self) -> None:
        pass

    @property
    def lines(self) -> list[str]:
        return [request.line for request in self.requests]


class Applying(FakeApi):
    """A fake API that answers `POST /apply` and stores the applied documents by kind and name."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], dict[str, Any]] = {}
        super().__init__({"POST /apply": self.apply})

    def apply(self, request: Request) -> dict[str, Any]:
        body = request.body or {}
        items = [self.put(kind, one) for kind in ("calendar", "template", "job") for one in body[f"{kind}s"]]
        return {"items": items, "dryRun": request.query.get("dryRun") == "true"}

    def put(self, kind: str, one: dict[str, Any]) -> dict[str, Any]:
        before = self.kept.get((kind, one["name"]))
        self.kept[kind, one["name"]] = one
        outcome = "created" if before is None else "unchanged" if before == one else "changed"
        changes = [{"path": name, "kind": "changed"} for name in one if before and before.get(name) != one[name]]
        told = changes if kind == "job" else []
        return {"kind": kind, "name": one["name"], "outcome": outcome, "version": 1, "changes": told, "affected": []}


def problem(status: int, slug: str, detail: str, remedy: str = "", **fields: Any) -> ApiResponse:
    document = {"type": f"urn:horae:{slug}", "status": status, "detail": detail, "remedy": remedy, **fields}
    return ApiResponse(status=status, body=msgspec.json.encode(document))


def run(api: FakeApi | None, *args: str, input: str | bytes | None = None, env: dict[str, str] | None = None) -> Result:
    """Run a command line; raise its exceptions, except for an exit."""
    world = CliOverrides(api, virtual_env(1, QuickClock()))
    result = CliRunner().invoke(cli, list(args), obj=world, input=input, env=env)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def page(*items: Any, next_cursor: str | None = None) -> dict[str, Any]:
    return {"items": list(items), "nextCursor": next_cursor}
