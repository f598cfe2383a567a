"""Alerts by e-mail: a hostile mail server costs neither memory nor a thread."""

import asyncio
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from horae.features.alerts.engine import senders
from horae.features.alerts.engine.chats import Undeliverable
from horae.features.alerts.engine.delivery import OF_SERVER
from horae.features.alerts.engine.senders import OutgoingNotice, send
from horae.features.alerts.model.channel import Email
from horae.features.alerts.model.notification import encode_content, read_content, summarize
from horae.outbound.allow import AllowedAddresses
from horae.outbound.fetch import Outbound

SAID = encode_content(
    "test", [summarize("a\r\nBcc: x@y.z", "late", 0)], rule="r", alert_kind="lag", severity="warning", at=0
)
LETTER = OutgoingNotice(UUID(int=7), read_content(SAID), SAID.encode(), "default", 0)


@asynccontextmanager
async def mail_server(talk):
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()
            over.set_result(None)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], over


def sending(port: int, *more: str):
    channel = Email(host="127.0.0.1", port=port, tls="none", sender="horae@b.c", to=("ops@b.c", *more))
    return send(Outbound(AllowedAddresses.read(["127.0.0.1"])), channel, LETTER)


async def test_a_mail_is_sent_and_no_subject_can_end_a_header():
    heard: list[bytes] = []

    async def talk(reader, writer):
        writer.write(b"220 mail\r\n")
        while line := await reader.readline():
            heard.append(line)
            if line.startswith(b"data"):
                writer.write(b"354 go on\r\n")
                heard.append(await reader.readuntil(b"\r\n.\r\n"))
            writer.write(b"221 bye\r\n" if line.startswith(b"quit") else b"250 yes\r\n")

    async with mail_server(talk) as (port, over):
        await sending(port)
        await over
    text = b"".join(heard)
    assert b"Subject: [TEST] a Bcc: x@y.z: r\r\n" in text
    assert text.count(b"rcpt TO:") == 1


async def test_recipients_that_a_mail_server_refuses_are_reported():
    async def talk(reader, writer):
        writer.write(b"220 mail\r\n")
        while line := await reader.readline():
            if line.startswith(b"data"):
                writer.write(b"354 go on\r\n")
                await reader.readuntil(b"\r\n.\r\n")
            writer.write(b"550 nobody\r\n" if b"gone@b.c" in line else b"250 yes\r\n")

    async with mail_server(talk) as (port, over):
        assert await sending(port, "gone@b.c") == "the mail server refused gone@b.c"
        await over


async def test_the_event_loop_waits_for_no_certificates_and_for_no_name_of_this_host(monkeypatch):
    threads: list[threading.Thread] = []
    name, trusted = socket.getfqdn(), ssl.create_default_context()
    monkeypatch.setattr(socket, "getfqdn", lambda: threads.append(threading.current_thread()) or name)
    monkeypatch.setattr(ssl, "create_default_context", lambda: threads.append(threading.current_thread()) or trusted)
    with pytest.raises(OSError):
        await sending(1)
    assert len(threads) == 2
    assert threading.current_thread() not in threads


@pytest.mark.parametrize("last_words", [b"", b"421 busy\r\n", b"nonsense\r\n"])
async def test_an_accepted_mail_is_delivered_however_the_server_disconnects(last_words: bytes):
    async def talk(reader, writer):
        writer.write(b"220 mail\r\n")
        while not (line := await reader.readline()).startswith(b"quit"):
            if line.startswith(b"data"):
                writer.write(b"354 go on\r\n")
                await reader.readuntil(b"\r\n.\r\n")
            writer.write(b"250 yes\r\n")
        writer.write(last_words)

    async with mail_server(talk) as (port, over):
        assert await sending(port) == ""
        await over


async def test_mail_servers_are_contacted_concurrently_up_to_the_limit(monkeypatch):
    trusted = ssl.create_default_context()  # to make one of these takes longer than all the rest
    monkeypatch.setattr(ssl, "create_default_context", lambda: trusted)
    greeted: list[asyncio.Task[None] | None] = []
    all_of_them = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        greeted.append(asyncio.current_task())
        if len(greeted) == OF_SERVER:
            all_of_them.set()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    async with server:
        tasks = [asyncio.create_task(sending(server.sockets[0].getsockname()[1])) for _ in range(OF_SERVER)]
        async with asyncio.timeout(senders.WITHIN):
            await all_of_them.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, *greeted, return_exceptions=True)


async def test_a_mail_server_with_an_endless_answer_is_disconnected():
    async def talk(reader, writer):
        while True:
            writer.write(b"220-" + b"x" * 1000 + b"\r\n")
            await writer.drain()

    async with mail_server(talk) as (port, over):
        with pytest.raises(Undeliverable, match="more than 65536 bytes"):
            await sending(port)
        await over


async def test_a_silent_mail_server_holds_no_thread_after_the_timeout(monkeypatch):
    greeted, threads = asyncio.Event(), ThreadPoolExecutor(1)
    monkeypatch.setattr(senders, "MAIL_THREADS", threads)

    async def talk(reader, writer):
        writer.write(b"2")
        greeted.set()
        assert await reader.read() == b""  # until the other side ends

    async with mail_server(talk) as (port, over):
        task = asyncio.create_task(sending(port))
        await greeted.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await over
        await asyncio.to_thread(threads.shutdown)  # hangs while a thread is held


async def test_unresolvable_names_block_nothing_else(monkeypatch):
    answered, asked = threading.Event(), threading.Semaphore(0)

    def never(*_: Any, **__: Any) -> Any:
        asked.release()
        answered.wait()
        raise OSError("no answer")

    monkeypatch.setattr(socket, "getaddrinfo", never)
    tasks = [asyncio.create_task(Outbound().addresses(f"{n}.test", 25, 60.0)) for n in range(64)]
    await asyncio.to_thread(asked.acquire)
    assert await asyncio.gather(*(asyncio.to_thread(int) for _ in range(64))) == [0] * 64
    answered.set()
    assert {type(one).__name__ for one in await asyncio.gather(*tasks, return_exceptions=True)} == {"ConnectError"}
