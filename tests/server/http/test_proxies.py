"""Trust in X-Forwarded-* headers, and its limits."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from horae.engine.server_node import ServerNode
from horae.env import system_env
from horae.errors import BadInput
from horae.server.app import Application
from horae.server.call import NOBODY, ApiCall
from horae.server.http.connection_limits import ConnectionLimits
from horae.server.http.proxies import Proxies
from horae.server.routes.table import ROUTES

INGRESS = ("10.0.0.0/8",)


def call(peer: str, proxies: Proxies, *headers: tuple[bytes, bytes], scheme: str = "http") -> ApiCall:
    class App:
        pass

    app: Any = App()
    app.proxies = proxies
    scope = {"app": app, "client": (peer, 1), "headers": list(headers), "scheme": scheme}
    return ApiCall(None, ROUTES[0], scope, dict(headers), NOBODY, b"", None)  # type: ignore[arg-type]


def spoken_for(*entries: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"x-forwarded-for", entry) for entry in entries]


@pytest.mark.parametrize(
    ("peer", "hops", "said", "address"),
    [
        ("192.0.2.1", 1, [b"203.0.113.9"], "192.0.2.1"),
        ("10.0.0.1", 1, [b"203.0.113.9"], "203.0.113.9"),
        ("::ffff:10.0.0.1", 1, [b"203.0.113.9"], "203.0.113.9"),
        ("::ffff:192.0.2.1", 1, [b"203.0.113.9"], "192.0.2.1"),
        ("10.0.0.1", 1, [b"6.6.6.6, 203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", 1, [b"6.6.6.6", b"203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", 1, [b"203.0.113.9, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", 2, [b"203.0.113.9, 10.0.0.2"], "203.0.113.9"),
        ("10.0.0.1", 2, [b"6.6.6.6, 203.0.113.9, 10.0.0.2"], "203.0.113.9"),
        ("10.0.0.1", 3, [b"6.6.6.6, 203.0.113.9, 10.0.0.2"], "203.0.113.9"),
        ("10.0.0.1", 9, [b"10.0.0.3"], "10.0.0.3"),
        ("10.0.0.1", 1, [b"203.0.113.9:4711"], "203.0.113.9"),
        ("10.0.0.1", 1, [b"[2001:db8::1]:4711"], "2001:db8::1"),
        ("10.0.0.1", 1, [b"203.0.113.9, unknown"], "10.0.0.1"),
        ("10.0.0.1", 1, [b"203.0.113.9,"], "10.0.0.1"),
        ("10.0.0.1", 1, [b"fe80::1%" + b"x" * 100], "10.0.0.1"),
        ("10.0.0.1", 1, [], "10.0.0.1"),
        ("127.0.0.1", 1, [b"203.0.113.9"], "127.0.0.1"),
        ("", 1, [b"203.0.113.9"], ""),
    ],
)
def test_an_address_is_believed_from_trusted_proxies_alone(peer: str, hops: int, said: list[bytes], address: str):
    assert call(peer, Proxies(INGRESS, hops), *spoken_for(*said)).address == address


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
def test_this_machine_is_trusted_unless_others_are_named(peer: str):
    assert call(peer, Proxies(), *spoken_for(b"203.0.113.9")).address == "203.0.113.9"
    assert call("10.0.0.1", Proxies(), *spoken_for(b"203.0.113.9")).address == "10.0.0.1"
    assert call(peer, Proxies(()), *spoken_for(b"203.0.113.9")).address == peer.removeprefix("::ffff:")


def test_scheme_and_host_are_believed_from_trusted_proxies_alone():
    said = ((b"host", b"inner:8420"), (b"x-forwarded-proto", b"https"), (b"x-forwarded-host", b"horae.example.com"))
    believed, not_believed = call("10.0.0.1", Proxies(INGRESS), *said), call("192.0.2.1", Proxies(INGRESS), *said)
    assert (believed.secure, believed.server_url) == (True, "https://horae.example.com")
    assert (not_believed.secure, not_believed.server_url) == (False, "http://inner:8420")
    strange = call("10.0.0.1", Proxies(INGRESS), (b"host", b"h"), (b"x-forwarded-host", b"a/b@c"))
    assert strange.server_url == "http://h"
    assert call("192.0.2.1", Proxies(()), (b"host", b"h"), scheme="https").server_url == "https://h"


@pytest.mark.parametrize("text", ["10.0.0.1/8", "proxy", "", "10.0.0.0/33"])
def test_invalid_networks_are_refused(text: str):
    with pytest.raises(BadInput) as refused:
        Proxies((text,))
    assert refused.value.fields["field"] == "trusted_proxies"


def test_connections_of_trusted_proxies_are_bounded_by_their_sum():
    crowd = ConnectionLimits(most=10, most_of_one=2, proxies=Proxies(INGRESS))
    assert [crowd.enter("10.0.0.1") for _ in range(5)] == [True] * 5
    assert [crowd.enter("127.0.0.1") for _ in range(3)] == [True, True, False]


@pytest.fixture
async def named() -> AsyncIterator[Application]:
    node = await ServerNode.open(system_env(), "sqlite://")
    await node.start()
    yield Application(node, proxies=Proxies(INGRESS, hosts=("Horae.example.com", "[::1]")))
    await node.stop()


async def test_requests_for_other_names_are_refused(named: Application):
    async def ask(host: bytes, path: str = "/api/v1/sign-in", *more: tuple[bytes, bytes]) -> int:
        scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b""}
        headers = [(b"host", host), *more]
        return (
            await named.answer({**scope, "headers": headers, "client": ("10.0.0.1", 1), "scheme": "http"}, None)
        ).status  # type: ignore[arg-type]

    assert await ask(b"horae.example.com") == 200
    assert await ask(b"HORAE.example.com:8420") == 200
    assert await ask(b"[::1]:8420") == 200
    assert await ask(b"[::1]") == 200
    assert await ask(b"evil.example.com") == 400
    assert await ask(b"") == 400
    assert await ask(b"evil.example.com", "/healthz") == 200
    assert await ask(b"inner", "/api/v1/sign-in", (b"x-forwarded-host", b"horae.example.com")) == 200
