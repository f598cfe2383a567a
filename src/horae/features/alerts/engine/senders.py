"""Functions that send a notice: by a signed webhook, by e-mail, or to a service that the library apprise supports.

Each raises an error if it fails. They call only addresses that the server may call, as for HTTP jobs.
"""

import asyncio
import contextlib
import smtplib
import socket
import ssl
from email.message import EmailMessage
from typing import BinaryIO, assert_never
from uuid import UUID

from msgspec import Struct

from horae.env import SECOND, Instant
from horae.features.alerts.engine.chats import Undeliverable, notify
from horae.features.alerts.model.channel import AnyChannel, Apprise, Email, Webhook
from horae.features.alerts.model.notification import NotificationContent, text_of, title_of
from horae.model.base.webhook_signature import sign
from horae.outbound.fetch import Outbound
from horae.outbound.threads import MAIL_THREADS, run_in

WITHIN = 20.0  # seconds for one try
MOST_ANSWER = 2048  # bytes of a webhook's answer
MOST_RECEIVED = 64 * 1024  # bytes that a mail server may send in one connection
GONE = 410  # the status by which the receiver of a Standard Webhook says that it wants no further requests


class OutgoingNotice(Struct, frozen=True):
    """A notice that is ready to be sent."""

    id: UUID  # the same in each try, so that receivers can detect repeats
    content: NotificationContent
    body: bytes  # the content as JSON
    namespace: str  # its name
    at: Instant  # the time of this try


async def send(outbound: Outbound, channel: AnyChannel, notice: OutgoingNotice) -> str:
    """Send a notice through a channel; return a remark on the delivery, which is empty in most cases.

    Raises Undeliverable, and Refused for an address that this server may not call.
    """
    async with asyncio.timeout(WITHIN):
        match channel:
            case Webhook():
                await _webhook(outbound, channel, notice)
            case Email():
                return await _email(outbound, channel, notice)
            case Apprise():
                title, text = title_of(notice.content), text_of(notice.content, notice.namespace)
                return await notify(outbound, channel.urls, title, text)
            case _:
                assert_never(channel)
    return ""


async def _webhook(outbound: Outbound, channel: Webhook, notice: OutgoingNotice) -> None:
    """Send a request according to Standard Webhooks: each try has the same id, but its own timestamp."""
    notice_id, timestamp = str(notice.id), notice.at // SECOND
    headers = {
        **channel.headers,
        "content-type": "application/json",
        "webhook-id": notice_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(channel.secret or "", notice_id, timestamp, notice.body),
    }
    answer = await outbound.fetch(
        "POST", channel.url, headers=headers, content=notice.body, most=MOST_ANSWER, within=WITHIN
    )
    if not 200 <= answer.status < 300:
        raise Undeliverable(f"the receiver answered {answer.status}", final=answer.status == GONE)


async def _email(outbound: Outbound, channel: Email, notice: OutgoingNotice) -> str:
    addresses = await outbound.addresses(channel.host, channel.server_port, WITHIN)
    message = EmailMessage()
    message["From"], message["To"] = channel.sender, ", ".join(channel.to)
    message["Subject"] = title_of(notice.content)
    message["Message-ID"] = f"<{notice.id}@horae>"  # the same at every try
    message["X-Horae-Notice"] = str(notice.id)
    message.set_content(text_of(notice.content, notice.namespace))
    client, context = await run_in(MAIL_THREADS, lambda: _client(channel, addresses))
    try:
        refused = await run_in(MAIL_THREADS, lambda: _converse(client, context, channel, message))
    finally:
        client.cut()
    return f"the mail server refused {', '.join(refused)}" if refused else ""


def _client(channel: Email, addresses: list[str]) -> tuple["_CheckedSmtp", ssl.SSLContext]:
    """Return a client and its TLS settings. This blocks: it looks up the name of this host and reads certificates."""
    context = ssl.create_default_context()
    return _CheckedSmtp(addresses) if channel.tls != "tls" else _CheckedSmtpTls(addresses, context), context


def _converse(client: "_CheckedSmtp", context: ssl.SSLContext, channel: Email, message: EmailMessage) -> list[str]:
    """Send a mail to a mail server; return the recipients that the server refused.

    The client connects to one of its checked addresses, and TLS verifies the name of the server.
    """
    try:
        client.connect(channel.host, channel.server_port)
        if channel.tls == "starttls":
            client.starttls(context=context)
        if channel.username is not None and channel.password is not None:
            client.login(channel.username, channel.password)
        refused = client.send_message(message)
        with contextlib.suppress(smtplib.SMTPException, OSError):
            client.quit()  # errors are ignored, because the server has accepted the mail already
        return sorted(refused)
    except smtplib.SMTPException as error:
        raise Undeliverable(f"the mail server said: {error}") from None
    finally:
        client.close()


class _LimitedReader:
    """A reader of a mail server's answers that fails after MOST_RECEIVED bytes, because an answer could be endless."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = MOST_RECEIVED

    def readline(self, most: int) -> bytes:
        line = self._file.readline(most)
        self._left -= len(line)
        if self._left < 0:
            raise OSError(f"the mail server sent more than {MOST_RECEIVED} bytes")
        return line

    def close(self) -> None:
        self._file.close()


class _CheckedSmtp(smtplib.SMTP):
    """An SMTP client that connects only to the given addresses, which were checked.

    It does not resolve the name of the server again, because the result could be another address.
    """

    def __init__(self, addresses: list[str]) -> None:
        super().__init__(timeout=WITHIN)
        self._addresses = addresses
        self._plain: socket.socket | None = None
        self._is_cut = False

    def cut(self) -> None:
        """Close the connection from another thread.

        This is needed because a server that sends very slowly could block the client's thread for days.
        """
        self._is_cut = True
        if self._plain is not None:
            with contextlib.suppress(OSError):
                self._plain.shutdown(socket.SHUT_RDWR)
            with contextlib.suppress(OSError):
                self._plain.close()

    def getreply(self) -> tuple[int, bytes]:
        if self.file is None and self.sock is not None:
            self.file = _LimitedReader(self.sock.makefile("rb"))
        return super().getreply()

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        self._host = host  # the name that TLS verifies
        problem: OSError = OSError(f"{host} has no address")
        for address in self._addresses:
            if self._is_cut:
                break
            try:
                connected = socket.create_connection((address, port), timeout)
            except OSError as error:
                problem = error
            else:
                self._plain = connected.dup()  # for `cut`: TLS takes the original socket over
                if self._is_cut:
                    self.cut()
                return connected
        raise problem


class _CheckedSmtpTls(_CheckedSmtp):
    """An SMTP client that uses TLS from the first byte."""

    def __init__(self, addresses: list[str], context: ssl.SSLContext) -> None:
        super().__init__(addresses)
        self._context = context

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        return self._context.wrap_socket(super()._get_socket(host, port, timeout), server_hostname=host)
