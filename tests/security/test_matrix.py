"""The matrix of roles over all routes and methods, through the real application; no notation of a path bypasses it.

Attacks on other products: an API open by default; authentication skipped for paths that end with `/health` or
`/configs`.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import unquote

import pytest

from horae.model.tenancy.principal import NESTED, ROLES, Role
from horae.server.route import Route
from horae.server.routes.table import ROUTES
from horae.server.streaming.download import Download
from tests.security.people import People, opened

ID = "0198c5a0-0000-7000-8000-000000000000"
NUMBERS = ("version", "other")
TAILS = (
    *("/healthz", "/readyz", "/ready", "/health", "/configs", "//healthz", "/ui/styles/base.css", "/openapi.json"),
    *(
        ".json",
        "/../healthz",
        "/%2e%2e/healthz",
        "/..%2fhealthz",
        ";x",
        ";/healthz",
        "?/healthz",
        "%3f/healthz",
        "#/healthz",
    ),
    *(".", "/.", "/", "//", "%2f", "%2e", "%00", "%20", "%0d%0a"),
)
HEADS = ("/", "//", "/.", "/%2e", "/healthz/..", "/healthz/%2e%2e", "/ui/..", "/ui/..%2f", "/x/..", "/api/v1/..")


@pytest.fixture
async def people() -> AsyncIterator[People]:
    async with opened() as people:
        yield people


def path_of(route: Route) -> str:
    """Return a matching path to objects that do not exist."""
    parts = []
    for part in route.path.split("/"):
        name = part[1:-1] if part.startswith("{") else ""
        parts.append(part if not name else ID if name == "id" else "1" if name in NUMBERS else "none")
    return "/".join(parts)


def closed() -> Iterator[Route]:
    return (route for route in ROUTES if not route.is_public)


async def status_of(people: People, method: str, path: str, key: str = "") -> int:
    """Return the status for a raw path, which no client has normalized."""
    bare, _, query = path.partition("?")
    headers = [(b"authorization", f"Bearer {key}".encode())] if key else []
    scope = {
        "type": "http", "method": method, "path": unquote(bare), "raw_path": bare.encode(), "scheme": "http",
        "query_string": query.encode(), "headers": headers, "client": ("10.0.0.1", 1),
    }  # fmt: skip

    coming = iter(({"type": "http.request", "body": b"", "more_body": False},))

    async def receive() -> dict[str, Any]:
        return next(coming, {"type": "http.disconnect"})

    async def send(message: dict[str, Any]) -> None:
        """Nobody reads it."""

    reply = await people.app.answer(scope, receive)
    if isinstance(reply, Download):  # an open file
        await reply(scope, receive, send)
    return reply.status


async def key_of(people: People, role: Role, *permissions: Any) -> str:
    return (await people.node.tenancy.keys.create(1, f"a {role}", role, permissions=permissions)).text


def test_a_higher_role_includes_the_lower_ones():
    for route in ROUTES:
        admitted = [role in route.access.roles for role in NESTED]
        assert admitted == sorted(admitted)


@pytest.mark.parametrize("role", ROLES)
async def test_each_role_is_admitted_exactly_by_the_matrix(people: People, role: Role):
    """An admitted request finds nothing, or is incomplete, but is processed; any other gets 403."""
    bearers = [(await key_of(people, role), False)]
    if role != "worker":
        bearers.append((await key_of(people, role, "installation"), True))
    for route in closed():
        may = route.access
        for key, has_more in bearers:
            status = await status_of(people, route.method, path_of(route), key)
            admitted = role in may.roles and (may.permission is None or has_more)
            assert (status not in (401, 403)) is admitted, (route.name, role, has_more, status)
            assert status < 500, (route.name, role, status)


async def test_no_key_and_a_wrong_key_are_admitted_nowhere(people: People):
    for key in ("", "hk_0000_" + "0" * 64):
        for route in closed():
            assert await status_of(people, route.method, path_of(route), key) == 401, route.name


def spellings(path: str) -> Iterator[str]:
    """Yield other notations of a path that proxies and careless servers would accept."""
    yield from (path + tail for tail in TAILS)
    yield from (head + path for head in HEADS)
    yield from (path.upper(), path.swapcase(), path.replace("/", "%2f", 1), path.replace("/", "\\", 1))
    for part in {part for part in path.split("/") if part}:
        yield path.replace(f"/{part}", f"//{part}")
        yield path.replace(f"/{part}", f"/%2e/{part}")
        yield path.replace(f"/{part}", f"/{part};x")
        yield path.replace(f"/{part}", f"/%{ord(part[0]):02x}{part[1:]}")


def is_in_truth_public(people: People, path: str) -> bool:
    """Return whether a notation is the path of something public, such as a missing file of the UI."""
    found = people.app._router.find(unquote(path.partition("?")[0]))
    return found is not None and all(route.is_public for route in found[0].values())


async def test_no_spelling_of_any_path_opens_it(people: People):
    tried = 0
    for route in closed():
        for path in spellings(path_of(route)):
            status = await status_of(people, route.method, path)
            tried += 1
            if status != 401:
                assert is_in_truth_public(people, path), (route.name, path, status)
                assert status in (404, 405), (route.name, path, status)
    assert tried > 5000


async def test_no_spelling_lets_a_viewer_do_more(people: People):
    """With a credential, a trick finds nothing (404, 405), or the route itself, which refuses."""
    key = await key_of(people, "viewer")
    for route in closed():
        may = route.access
        if "viewer" in may.roles and may.permission is None:
            continue
        for path in spellings(path_of(route)):
            status = await status_of(people, route.method, path, key)
            assert status in (403, 404, 405), (route.name, path, status)
