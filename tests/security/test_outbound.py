"""Server-side request forgery: requests made for users never reach private addresses."""

import asyncio
import gzip
import os
import socket
import ssl
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from ipaddress import ip_address
from itertools import count
from urllib.parse import urlsplit

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from horae.cli.fleet.worker import worker_settings
from horae.config.load import load
from horae.env import SECOND, system_env
from horae.errors import BadInput
from horae.model.definitions.tasks import HttpTask
from horae.outbound import fetch
from horae.outbound.addresses import reason_not_public, target_addresses
from horae.outbound.allow import AllowedAddresses
from horae.outbound.backend import Refused
from horae.outbound.fetch import Outbound
from tests.security.names import lying
from tests.worker.local import result, shop
from tests.worker.web import web

PUBLIC = "93.184.215.14"
METADATA = "169.254.169.254"
NEAR = AllowedAddresses.read(["127.0.0.1"])
TRIES = 10_000 if os.environ.get("HORAE_PROVE") else 200

REFUSED = (
    *("127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", METADATA, "169.254.170.2"),
    "168.63.129.16",
    *("100.64.0.1", "100.100.100.200", "0.0.0.0", "0.1.2.3", "192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.7"),
    *("203.0.113.9", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "192.88.99.1"),
    *("::", "::1", "fe80::1", "fe80::1%lo", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1", "3fff::1"),
    *("::ffff:127.0.0.1", "::ffff:a9fe:a9fe", "::ffff:10.0.0.1", "::127.0.0.1", "::ffff:0:127.0.0.1"),
    *(
        "64:ff9b::a9fe:a9fe",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "2002:c0a8:101::",
    ),
    *("2001:0:4136:e378:8000:63bf:3fff:fdd2", "2a00:1450:4001::5efe:10.0.0.1", "2a00::200:5efe:127.0.0.1", "100::1"),
    *("4000::1", "5f00::1"),
)
FINE = (PUBLIC, "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1")


@pytest.mark.parametrize("address", REFUSED)
def test_private_addresses_are_refused(address):
    assert AllowedAddresses().refusal_of(ip_address(address))


@pytest.mark.parametrize("address", [*FINE, "2002:101:101::1"])
def test_public_addresses_are_called(address):
    assert AllowedAddresses().refusal_of(ip_address(address)) is None


@given(st.ip_addresses())
def test_every_address_that_the_standard_library_calls_private_is_refused(address):
    for meant in target_addresses(address):
        if reason_not_public(meant) is None:
            assert meant.is_global or str(meant).startswith("192.")  # anycast, listed as reserved in the table
            assert not any((meant.is_private, meant.is_loopback, meant.is_link_local, meant.is_multicast))


def test_the_private_setting_allows_internal_hosts_but_no_metadata_service():
    private = AllowedAddresses.read(["private"])

    assert [
        private.refusal_of(ip_address(own)) for own in ("10.1.1.1", "127.0.0.1", "::1", "fd12::1", "::ffff:10.1.1.1")
    ] == [None] * 5
    for secret in (
        METADATA,
        f"::ffff:{METADATA}",
        "fd00:ec2::254",
        "100.100.100.200",
        "192.0.0.192",
        "0.0.0.0",
        "224.0.0.1",
    ):
        assert private.refusal_of(ip_address(secret)), secret
    assert AllowedAddresses.read([METADATA]).refusal_of(ip_address(METADATA)) is None


def test_hosts_are_allowed_by_name_and_by_suffix():
    allowed = AllowedAddresses.read(["DB.internal.", "*.corp.example", "10.0.0.0/8"])

    assert [allowed.has_host(host) for host in ("db.internal", "a.corp.example", "A.B.Corp.Example.")] == [True] * 3
    assert [allowed.has_host(host) for host in ("corp.example", "evilcorp.example", "xdb.internal", "")] == [False] * 4


@pytest.mark.parametrize("entry", ["", "10.0.0.0/99", "http://a", "a b", "*", "*.*", "256.1.1.1", "a:80"])
def test_an_invalid_setting_is_refused(entry):
    with pytest.raises(BadInput, match="outbound_allow"):
        AllowedAddresses.read([entry])


@pytest.fixture
async def outbound():
    made = Outbound()
    yield made
    await made.close()


@pytest.fixture
async def near():
    """Return a client that may call this machine."""
    made = Outbound(NEAR)
    yield made
    await made.close()


# Notations of addresses used in known attacks. Each must end without a connection.
FORMS = (
    *("127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "017700000001", "0177.0.0.01", "0x7F.0x0.0x0.0x1"),
    *("2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "0xa9.0xfe.0xa9.0xfe", "169.254.43518", "0", "0.0", "0x0"),
    *(
        "localhost",
        "LOCALHOST",
        "localhost.",
        "127.0.0.1.",
        "\u2488\u24ea\u24ea.1",
        "\uff11\uff12\uff17.\uff10.\uff10.\uff11",
        "127。0。0。1",
        "①⑥⑨.②⑤④.①⑥⑨.②⑤④",
    ),
    *(
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:a9fe:a9fe]",
        "[fe80::1%25lo]",
        "[::1%25lo]",
    ),
    *("[64:ff9b::7f00:1]", "[2002:7f00:1::]", "user@127.0.0.1", "example.com@127.0.0.1", "127.0.0.1#@example.com"),
    *("127.0.0.1?.example.com", "127.0.0.1\\@example.com", "example.com\\@127.0.0.1", "127.0.0.1%2eexample.com"),
    *("127.0.0.1%00.example.com", "0000::1", "1.1.1.1 @127.0.0.1", "mixed.test", "inside.test", "mapped.test"),
    *("127.0.0.1:80:80", "[127.0.0.1]", "[::1", "::1", "%31%32%37.0.0.1", "0300.0250.1.1", "3232235777"),
)
ANSWERS = {"mixed.test": [PUBLIC, "10.0.0.7"], "inside.test": ["10.0.0.7"], "mapped.test": [f"::ffff:{METADATA}"]}


async def test_errors_do_not_quote_parts_of_an_invalid_url(outbound):
    for url in ("canary" * 100, "https://user:canary#ss@example.com/", "canary://" + "x" * 500):
        with pytest.raises(Refused) as refused:
            await outbound.fetch("GET", url)
        assert "canary" not in str(refused.value)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_no_notation_of_a_private_address_is_called(monkeypatch, outbound, scheme):
    ended = {}
    with lying(monkeypatch, lambda name: ANSWERS[name], PUBLIC) as (server, sockets):
        for form in FORMS:
            with pytest.raises(Exception) as error:
                await outbound.fetch("GET", f"{scheme}://{form}/latest/meta-data/")
            ended[form] = error.type.__name__
        assert server.asked >= 3
        assert sockets.reached == []
    assert sum(name == "Refused" for name in ended.values()) > len(FORMS) * 0.6, ended


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://1.1.1.1/",
        "gopher://127.0.0.1:70/_x",
        "unix:///run/docker.sock",
        "//1.1.1.1/",
        "http:///x",
        "data:,x",
    ],
)
async def test_only_http_is_spoken(outbound, url):
    with pytest.raises(Refused, match="not an http or https URL"):
        await outbound.fetch("GET", url)


async def test_dns_rebinding_never_reaches_a_private_address(monkeypatch, outbound):
    """The name server alternates between a public address and the metadata service; every connection is a new one."""
    turn = count()
    answered = refused = 0
    async with web(lambda asked: (200, {"connection": "close"}, b"fine")) as site:
        with lying(monkeypatch, lambda name: [[PUBLIC, METADATA][next(turn) % 2]], PUBLIC) as (server, sockets):
            sockets.site = ("127.0.0.1", urlsplit(site.url).port)
            for _ in range(TRIES):
                try:
                    answer = await outbound.fetch("GET", "http://rebound.test/latest/meta-data/iam/")
                    answered += answer.body == b"fine"
                except Refused as error:
                    refused += METADATA in str(error)
    assert (answered, refused) == (TRIES // 2, TRIES // 2), "both were hit"
    assert server.asked == TRIES, "a name is resolved once for each connection"
    assert sockets.outside() == set()
    assert {asked.headers["host"] for asked in site.asked} == {"rebound.test"}


async def test_a_client_that_resolves_twice_is_vulnerable(monkeypatch):
    """The same attack on a client that checks a name and then resolves it again: the record of sockets shows it."""
    turn = count()
    with lying(monkeypatch, lambda name: [[PUBLIC, METADATA][next(turn) % 2]], PUBLIC) as (_, sockets):
        seen = socket.getaddrinfo("rebound.test", 80)[0][4][0]
        assert AllowedAddresses().refusal_of(ip_address(seen)) is None
        async with httpx2.AsyncClient(trust_env=False) as client:
            with pytest.raises(httpx2.ConnectError):
                await client.get("http://rebound.test/")
        assert sockets.outside() == {METADATA}


async def test_tls_verifies_the_host_name(monkeypatch, tmp_path):
    tls, told = certificate(tmp_path, "secure.test"), []
    tls.sni_callback = lambda connection, name, context: told.append(name)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))

    async def answer(reader, writer):
        told.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nfine")
        await closed(writer)

    outbound = Outbound()
    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls) as server:
        with lying(monkeypatch, lambda name: [PUBLIC], PUBLIC) as (_, sockets):
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
            sockets.site = server.sockets[0].getsockname()
            assert (await outbound.fetch("GET", "https://secure.test/")).body == b"fine"
            assert (told[0], "host: secure.test\r\n" in told[1]) == ("secure.test", True)
            with pytest.raises(Exception, match="certificate"):
                await outbound.fetch("GET", "https://other.test/")
        await outbound.close()


def certificate(folder, name):
    """Create a certificate for a name in a folder; return a server's context with it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime(2026, 1, 1, tzinfo=UTC)
    built = x509.CertificateBuilder(subject, subject, key.public_key(), 1, now, now.replace(year=2126))
    signed = built.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), False).sign(key, hashes.SHA256())
    (folder / "cert.pem").write_bytes(signed.public_bytes(Encoding.PEM))
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").write_bytes(secret)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


async def test_a_name_with_any_private_address_is_refused(monkeypatch, outbound):
    with lying(monkeypatch, lambda name: [PUBLIC, "10.0.0.7"], PUBLIC) as (_, sockets):
        with pytest.raises(Refused, match=r"mixed\.test is 10\.0\.0\.7, which is private.*outbound_allow"):
            await outbound.fetch("GET", "http://mixed.test/")
        assert sockets.reached == []


@pytest.mark.parametrize(
    "place",
    [
        "http://127.0.0.1:1/",
        f"http://{METADATA}/",
        "http://inside.test/",
        "//[::1]/",
        "http://2130706433/",
        "file:///etc/passwd",
    ],
)
async def test_each_redirect_is_checked_like_the_first_request(monkeypatch, outbound, place):
    hops = {"/": "/a", "/a": "http://other.test/b", "/b": place}

    async with web(lambda asked: (302, {"location": hops[asked.path], "connection": "close"}, b"")) as site:
        names = {"start.test": [PUBLIC], "other.test": [PUBLIC], "inside.test": ["10.0.0.7"]}
        with lying(monkeypatch, names.__getitem__, PUBLIC) as (_, sockets):
            sockets.site = ("127.0.0.1", urlsplit(site.url).port)
            with pytest.raises(Refused):
                await outbound.fetch("GET", "http://start.test/", redirects=5)
        assert [asked.path for asked in site.asked] == ["/", "/a", "/b"]
        assert sockets.outside() == set()


async def followed(
    monkeypatch, hops, *, method="GET", content=b"", redirects=5, headers=None, url="http://start.test/"
):
    """Return the requests that a site received on the way, and the last answer."""

    def answer(asked):
        status, place = hops.get(asked.path, (200, ""))
        return status, {"location": place, "connection": "close"} if place else {}, b"end"

    given = headers or {"Authorization": "Bearer secret", "X-Api-Key": "secret", "Cookie": "a=secret", "Accept": "a/b"}
    async with web(answer) as site:
        with lying(monkeypatch, lambda name: [PUBLIC], PUBLIC) as (_, sockets):
            sockets.site = ("127.0.0.1", urlsplit(site.url).port)
            outbound = Outbound()
            got = await outbound.fetch(method, url, headers=given, content=content, redirects=redirects)
            await outbound.close()
        return got, site.asked


async def test_credentials_stay_with_their_origin(monkeypatch):
    hops = {"/": (302, "/near"), "/near": (302, "http://user:pass@other.test/far")}
    got, asked = await followed(
        monkeypatch, hops, url="http://me:secret@start.test/", headers={"X-Api-Key": "secret", "Accept": "a/b"}
    )

    assert (got.status, got.url) == (200, "http://other.test/far")
    near, far = asked[1].headers, asked[2].headers
    assert near["x-api-key"] == "secret"
    assert near["authorization"].startswith("Basic ")
    assert (far["host"], far["accept"]) == ("other.test", "a/b")
    assert "secret" not in str(far)
    assert not far.keys() & {"authorization", "x-api-key", "cookie"}


async def test_redirects_are_followed_only_on_request_and_counted(monkeypatch):
    hops = {"/": (302, "/a"), "/a": (302, "/b"), "/b": (302, "/c")}

    assert [(await followed(monkeypatch, hops, redirects=n))[0].status for n in (0, 2, 3)] == [302, 302, 200]


async def test_a_body_is_resent_only_within_its_origin(monkeypatch):
    body = {"method": "POST", "content": b"card=1"}
    _, asked = await followed(monkeypatch, {"/": (307, "/a"), "/a": (303, "/b")}, **body)
    assert [(one.method, one.body) for one in asked] == [("POST", b"card=1"), ("POST", b"card=1"), ("GET", b"")]

    with pytest.raises(Refused, match=r"redirects a request with a body to other\.test"):
        await followed(monkeypatch, {"/": (307, "http://other.test/")}, **body)


async def test_proxies_and_cookies_of_the_environment_are_ignored(monkeypatch, near):
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with web(lambda asked: (200, {"set-cookie": "who=first; Path=/"}, b"")) as site:
        for _ in range(2):
            assert (await near.fetch("GET", site.url)).status == 200
        assert "cookie" not in site.asked[1].headers


async def test_a_compressed_body_is_not_expanded_beyond_the_limit(near):
    bomb = gzip.compress(b"\0" * 50_000_000)
    async with web(lambda asked: (200, {"content-encoding": "gzip"}, bomb)) as site:
        answer = await near.fetch("GET", site.url, most=1000)

        assert (len(answer.body), answer.is_whole) == (1000, False)
    packed = gzip.compress(b"hello")
    async with web(lambda asked: (200, {"content-encoding": "gzip"}, packed)) as site:
        assert (await near.fetch("GET", site.url)).body == b"hello"


@asynccontextmanager
async def dripping():
    """Serve a site that sends a byte now and then, until the client leaves."""
    left = asyncio.Event()
    left.set()

    async def drip(reader, writer):
        left.clear()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
        with suppress(ConnectionError):
            while not writer.is_closing():
                writer.write(b".")
                await writer.drain()
                await system_env().clock.sleep(0.01)
        await closed(writer)
        left.set()

    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        await left.wait()


async def closed(writer):
    """Close a connection in any state."""
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


async def test_a_dripping_response_times_out(monkeypatch):
    monkeypatch.setattr(fetch, "WHOLE", 0.5)
    async with dripping() as url, shop(outbound=NEAR) as it:
        error = (await it.run(HttpTask(url=url))).error

        assert (error.type, error.permanent) == ("TimeoutError", False)
        assert "no complete answer within 0.5 seconds" in error.message


# As jobs


async def test_an_http_job_to_a_private_address_fails_permanently_and_names_the_setting():
    async with web(lambda asked: (200, {}, b"the secrets of a private service")) as site, shop() as it:
        error = (await it.run(HttpTask(url=site.url))).error

        assert (error.type, error.permanent, site.asked) == ("OutboundRefused", True, [])
        assert "127.0.0.1 is this machine itself (loopback)" in error.message
        assert "HORAE_OUTBOUND_ALLOW=127.0.0.1" in error.message
        assert "secrets" not in error.message


async def test_an_http_job_follows_redirects_when_configured():
    hops = {"/": (302, {"location": "/end"}, b""), "/end": (200, {"content-type": "application/json"}, b"7")}
    async with web(lambda asked: hops[asked.path]) as site, shop(outbound=NEAR) as it:
        assert result(await it.run(HttpTask(url=site.url, redirects=1, method="GET"))) == 7
        refused = (await it.run(HttpTask(url=site.url, method="GET"), name="other")).error
        assert (refused.type, refused.status) == ("HttpStatus", 302)


def test_a_worker_with_an_invalid_setting_does_not_start():
    with pytest.raises(BadInput, match="outbound_allow"):
        worker_settings(load(environ={"HORAE_OUTBOUND_ALLOW": "not a host"}).settings)
    assert worker_settings(load(environ={"HORAE_OUTBOUND_ALLOW": "127.0.0.1"}).settings).outbound == NEAR


async def test_params_cannot_redirect_a_request_to_a_private_address():
    async with web(lambda asked: (200, {}, b"")) as site, shop(timeout=15.0) as it:
        error = (await it.run(HttpTask(url="${params.url}"), {"url": f"{site.url}/x"}, timeout=5 * SECOND)).error

        assert error.type == "OutboundRefused"
        assert not site.asked
