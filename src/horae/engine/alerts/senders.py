"""How a notice reaches people: a signed webhook, an e-mail, or whatever apprise speaks. Each raises when it did not.

Every address is checked as those of http jobs are. Apprise connects by itself, so that only the hosts in its URLs can
be checked before.
"""

import asyncio
import smtplib
import socket
import ssl
from collections.abc import Mapping
from email.message import EmailMessage
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from msgspec import Struct

from horae.env import SECOND, Instant
from horae.errors import Conflict
from horae.model.alert import ChannelKind
from horae.model.alert_notice import Content, text_of, title_of
from horae.model.events.signature import sign
from horae.outbound.backend import Refused
from horae.outbound.fetch import Outbound

WITHIN = 20.0  # seconds for one try
MOST_ANSWER = 2048  # bytes
GONE = 410  # by Standard Webhooks: the receiver wants nothing any more
APPRISE_MISSING = "apprise is not installed on this server."
INSTALL = "Install it with `pip install horae[notify]`, or use a channel of kind webhook or email."
LOCAL_SCHEMES = ("dbus", "qt", "kde", "glib", "gnome", "macosx", "windows", "syslog", "file")


class Undeliverable(Exception):
    """It was not delivered, and why; `final` says that another try is of no use."""

    def __init__(self, why: str, *, final: bool = False) -> None:
        super().__init__(why)
        self.final = final


class Letter(Struct, frozen=True):
    """A notice ready to be sent."""

    id: UUID
    content: Content
    body: bytes
    namespace: str
    at: Instant


async def send(
    outbound: Outbound, kind: ChannelKind, public: Mapping[str, Any], private: Mapping[str, Any], letter: Letter
) -> None:
    """Send a letter by a channel. Raises Undeliverable, and Refused for addresses that may not be called."""
    async with asyncio.timeout(WITHIN):
        if kind == "webhook":
            await _webhook(outbound, private, letter)
        elif kind == "email":
            await _email(outbound, public, private, letter)
        else:
            await _apprise(outbound, private, letter)


async def _webhook(outbound: Outbound, private: Mapping[str, Any], letter: Letter) -> None:
    """As Standard Webhooks say: the id is the same at every try, the timestamp that of the try."""
    id, timestamp = str(letter.id), letter.at // SECOND
    headers = {
        **private.get("headers", {}),
        "content-type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(private["secret"], id, timestamp, letter.body),
    }
    answer = await outbound.fetch(
        "POST", private["url"], headers=headers, content=letter.body, most=MOST_ANSWER, within=WITHIN
    )
    if not 200 <= answer.status < 300:
        raise Undeliverable(f"the receiver answered {answer.status}", final=answer.status == GONE)


async def _email(outbound: Outbound, public: Mapping[str, Any], private: Mapping[str, Any], letter: Letter) -> None:
    addresses = await outbound.addresses(public["host"], public["port"], WITHIN)
    message = EmailMessage()
    message["From"], message["To"] = public["from"], ", ".join(public["to"])
    message["Subject"] = title_of(letter.content)
    message["Message-ID"] = f"<{letter.id}@horae>"  # the same at every try
    message["X-Horae-Notice"] = str(letter.id)
    message.set_content(text_of(letter.content, letter.namespace))
    await asyncio.to_thread(_speak, addresses, public, private.get("password"), message)


def _speak(addresses: list[str], public: Mapping[str, Any], password: str | None, message: EmailMessage) -> None:
    """One conversation with a mail server. TLS is for its name, the connection to an address that was checked."""
    context = ssl.create_default_context()
    client = _Checked(addresses) if public["tls"] != "tls" else _CheckedTls(addresses, context)
    try:
        client.connect(public["host"], public["port"])
        if public["tls"] == "starttls":
            client.starttls(context=context)
        if password is not None:
            client.login(public["username"], password)
        client.send_message(message)
        client.quit()
    except smtplib.SMTPException as error:
        raise Undeliverable(f"the mail server said: {error}") from None
    finally:
        client.close()


class _Checked(smtplib.SMTP):
    """Connects to addresses that were checked, and to nothing that the name leads to meanwhile."""

    def __init__(self, addresses: list[str]) -> None:
        super().__init__(timeout=WITHIN)
        self._addresses = addresses

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        self._host = host  # what TLS is for
        problem: OSError = OSError(f"{host} has no address")
        for address in self._addresses:
            try:
                return socket.create_connection((address, port), timeout)
            except OSError as error:
                problem = error
        raise problem


class _CheckedTls(_Checked):
    """The same with TLS from the first byte."""

    def __init__(self, addresses: list[str], context: ssl.SSLContext) -> None:
        super().__init__(addresses)
        self._context = context

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        return self._context.wrap_socket(super()._get_socket(host, port, timeout), server_hostname=host)


def apprise() -> Any:
    """The library, which is an extra. Raises Conflict where it is not installed."""
    try:
        return import_module("apprise")
    except ImportError:
        raise Conflict(APPRISE_MISSING, INSTALL) from None


async def _apprise(outbound: Outbound, private: Mapping[str, Any], letter: Letter) -> None:
    library = apprise()
    for url in private["urls"]:
        await _check(outbound, url)
    teller = library.Apprise()
    if sum(map(teller.add, private["urls"])) < len(private["urls"]):
        raise Undeliverable("apprise does not know one of the URLs")
    title, body = title_of(letter.content), text_of(letter.content, letter.namespace)
    if not await asyncio.to_thread(teller.notify, title=title, body=body):
        raise Undeliverable("apprise could not tell all of its URLs")


async def _check(outbound: Outbound, url: str) -> None:
    """Refuse a URL whose host is one that may not be called; in many of them a token stands where a host would."""
    parts = urlsplit(url)
    if parts.scheme.lower() in LOCAL_SCHEMES:
        raise Undeliverable(f"{parts.scheme}:// acts on this machine itself", final=True)
    try:
        await outbound.addresses(parts.hostname or "", parts.port or 443, WITHIN)
    except Refused:
        raise
    except Exception:  # no host: a token
        return
