"""TLS with private certificates, and workers that must show one."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from horae.cli.remote import CliOverrides, connect
from horae.client.client import Client
from horae.client.problems import Unreachable
from horae.client.transport.http import HttpClientTransport
from horae.client.transport.trust import trust
from horae.config.load import load
from horae.config.settings import Settings
from horae.engine.server_node import ServerNode
from horae.env import VirtualClock, system_env, virtual_env
from horae.errors import BadInput, Busy, Forbidden
from horae.model.fleet.protocol import PROTOCOL, Register
from horae.server.http.connection_limits import ConnectionLimits
from horae.server.http.listener import HttpListener
from horae.server.http.tls import LOOK, Tls
from horae.server.reply import Response
from horae.server.run import Serving, serve
from horae.worker.http_transport import HttpTransport
from tests.server.http.certificates import Authority
from tests.waiting import eventually

PRESENCE = Register(protocol=PROTOCOL, worker="w", queues=("default",), concurrency=1)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def serving_with(tls: Tls) -> tuple[ServerNode, Serving, str]:
    node = await ServerNode.open(system_env(), "sqlite://")
    serving = await serve(node, "127.0.0.1", 0, tls=tls)
    key = await node.tenancy.keys.ensure_admin_key()
    assert key is not None
    return node, serving, key


@pytest.fixture
async def private(authority: Authority) -> AsyncIterator[tuple[Serving, str]]:
    _, serving, key = await serving_with(Tls(*authority.sign("server")))
    yield serving, key
    await serving.stop()


@pytest.fixture
async def strict(authority: Authority) -> AsyncIterator[tuple[Serving, str]]:
    _, serving, key = await serving_with(Tls(*authority.sign("server"), authority.certificate))
    yield serving, key
    await serving.stop()


async def test_clients_that_trust_the_authority_connect_over_tls(private: tuple[Serving, str], authority: Authority):
    serving, key = private
    assert serving.url.startswith("https://")
    settings = Settings(ca=str(authority.certificate))
    client = Client(key=key, transport=HttpClientTransport([serving.url], lambda: trust(settings)))
    await client.jobs.create("etl", command=["true"])
    assert [job.name for job in await client.jobs.list()] == ["etl"]
    await client.close()


async def test_commands_trust_the_authority_that_their_settings_file_names(
    private: tuple[Serving, str], authority: Authority, tmp_path: Path
):
    serving, key = private
    file = tmp_path / "own.toml"
    file.write_text(f'ca = "{authority.certificate}"\n')
    client = connect(CliOverrides(), system_env(), load({"url": serving.url, "key": key}, file=file).settings)
    assert await client.jobs.list() == []
    await client.close()


async def test_answers_over_tls_ask_to_stay_there(private: tuple[Serving, str], authority: Authority):
    serving, _ = private
    async with httpx2.AsyncClient(verify=trust(Settings(ca=str(authority.certificate)))) as client:
        answer = await client.get(f"{serving.url}/healthz")
    assert answer.headers["strict-transport-security"].startswith("max-age=")


async def test_clients_that_do_not_trust_the_authority_send_nothing(private: tuple[Serving, str]):
    async with httpx2.AsyncClient() as client:
        with pytest.raises(httpx2.ConnectError, match=r"(?i)certificate"):
            await client.get(f"{private[0].url}/healthz")


async def test_commands_that_do_not_speak_the_servers_tls_print_a_remedy(private: tuple[Serving, str]):
    serving, key = private
    for url, remedy in ((serving.url, "HORAE_CA"), (serving.url.replace("https:", "http:"), "https://")):
        client = connect(CliOverrides(), system_env(), load({"url": url, "key": key}).settings)
        with pytest.raises(Unreachable) as told:
            await client.jobs.list()
        assert remedy in told.value.remedy
        await client.close()


async def test_plain_http_is_not_answered_on_a_port_of_tls(private: tuple[Serving, str]):
    reader, writer = await asyncio.open_connection("127.0.0.1", private[0].port)
    writer.write(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
    assert b"200" not in await reader.read()
    writer.close()


async def test_a_worker_works_over_tls(private: tuple[Serving, str], authority: Authority):
    serving, key = private
    env = system_env()
    transport = HttpTransport([serving.url], key, trust(Settings(ca=str(authority.certificate))), rng=env.rng)
    assert (await transport.register(PRESENCE)).session_id
    await transport.close()


async def test_workers_must_show_a_certificate_if_the_server_requires_one(
    strict: tuple[Serving, str], authority: Authority
):
    serving, key = strict
    env, ca = system_env(), str(authority.certificate)
    bare = HttpTransport([serving.url], key, trust(Settings(ca=ca)), rng=env.rng)
    with pytest.raises(Forbidden, match="certificate"):
        await bare.register(PRESENCE)
    certificate, private_key = map(str, authority.sign("worker"))
    shown = trust(Settings(ca=ca, client_cert=certificate, client_key=private_key))
    admitted = HttpTransport([serving.url], key, shown, rng=env.rng)
    assert (await admitted.register(PRESENCE)).session_id
    for transport in (bare, admitted):
        await transport.close()


async def test_a_certificate_of_another_authority_is_refused(
    strict: tuple[Serving, str], authority: Authority, tmp_path: Path
):
    serving, key = strict
    (tmp_path / "other").mkdir()
    certificate, private_key = map(str, Authority(tmp_path / "other", "other").sign("worker"))
    shown = trust(Settings(ca=str(authority.certificate), client_cert=certificate, client_key=private_key))
    transport = HttpTransport([serving.url], key, shown, rng=system_env().rng)
    with pytest.raises(Busy):
        await transport.register(PRESENCE)
    await transport.close()


async def test_users_need_no_certificate(strict: tuple[Serving, str], authority: Authority):
    serving, key = strict
    async with httpx2.AsyncClient(verify=trust(Settings(ca=str(authority.certificate)))) as client:
        answer = await client.get(f"{serving.url}/api/v1/jobs", headers={"authorization": f"Bearer {key}"})
    assert answer.status_code == 200


def test_a_renewed_certificate_is_used_and_a_broken_one_is_not(authority: Authority, tmp_path: Path):
    certificate, key = authority.sign("server")
    tls = Tls(certificate, key)
    loaded = tls.context.cert_store_stats
    certificate.write_text("broken")
    tls.follow(LOOK + 1)  # is logged, and the old one stays
    assert tls.context.cert_store_stats == loaded
    authority.sign("server")
    tls.follow(2 * LOOK + 2)


@pytest.mark.parametrize("wrong", ["missing", "mixed"])
def test_files_without_a_certificate_are_refused_with_a_remedy(wrong: str, authority: Authority, tmp_path: Path):
    certificate, _ = authority.sign("a")
    _, key = authority.sign("b")
    with pytest.raises(BadInput) as refused:
        Tls(tmp_path / "none.pem" if wrong == "missing" else certificate, key)
    assert refused.value.fields["field"] == "tls_cert"


async def test_a_connection_counts_before_its_tls_handshake(authority: Authority):
    listener = HttpListener(
        virtual_env(clock=VirtualClock()), answers, Tls(*authority.sign("server")), ConnectionLimits(most=2)
    )
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    await listener.start(sock)
    trusted = ssl.create_default_context(cafile=str(authority.certificate))
    silent = [await asyncio.open_connection(*sock.getsockname()) for _ in range(2)]
    await eventually(lambda: len(listener.handshakes or ()) == 2)

    reader, refused = await asyncio.open_connection(*sock.getsockname())
    with suppress(ConnectionError):
        assert await reader.read() == b""
    silent[0][1].close()
    await eventually(lambda: len(listener.handshakes or ()) == 1)
    _, private = await asyncio.open_connection(*sock.getsockname(), ssl=trusted, server_hostname="localhost")
    await eventually(lambda: len(listener._connections) == 1)

    await listener.stop(0.1)
    with suppress(ConnectionError):
        assert await silent[1][0].read() == b"", "a handshake ends with its server"
    for writer in (refused, private, silent[1][1]):
        writer.close()


async def answers(scope: Any, receive: Any) -> Response:
    return Response(200)


def test_old_tls_versions_are_refused(authority: Authority):
    assert Tls(*authority.sign("server")).context.minimum_version >= ssl.TLSVersion.TLSv1_2
