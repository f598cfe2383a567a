"""Channels: the receivers of notices about alerts.

The secret fields of a channel are never shown. They are stored sealed (encrypted with the master key), and their values
may refer to secrets of the namespace.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, assert_never, get_args
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, structs

from horae.errors import BadInput
from horae.features.alerts.model.channel_kinds import (
    ADDRESS,
    ADDRESSES,
    HEADERS,
    PASSWORD,
    SECRET,
    URL,
    URLS,
)
from horae.model.fields.kinds import Choice, Integer, Name, Text
from horae.model.fields.table import Field
from horae.model.fields.values import an_object
from horae.model.fields.variants import Variants
from horae.model.tenancy.secret_refs import SCHEME

Tls = Literal["starttls", "tls", "none"]
PORTS: Mapping[Tls, int] = {"starttls": 587, "tls": 465, "none": 25}
_EXAMPLE = 'Write {"name": "ops", "kind": "webhook", "url": "https://example.com/alerts"}.'


@dataclass(frozen=True)
class ChannelField(Field):
    """A field of a channel."""

    private: bool = False  # whether it is secret: stored sealed and never shown


class Channel(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    """A channel with its secret fields; here are the fields that all kinds have.

    It is stored in two parts: the fields of `public_part` as they are, those of `private_part` sealed.
    """

    description: Annotated[str, ChannelField(Text(4096), "A description of the receivers.")] = ""

    @property
    def kind(self) -> "ChannelKind":
        return str(self.__struct_config__.tag)

    @property
    def references(self) -> tuple[str, ...]:
        """The names of the stored secrets to which the fields of the channel refer."""
        texts = dict.fromkeys(secret_texts(self))
        return tuple(text.removeprefix(SCHEME) for text in texts if text.startswith(SCHEME))


class Webhook(Channel, frozen=True, kw_only=True, tag="webhook"):
    """A channel that sends HTTP requests, signed according to the Standard Webhooks specification."""

    url: Annotated[
        str,
        ChannelField(
            URL, "The URL of the receiver.", example="https://example.com/alerts", private=True, flag="webhook"
        ),
    ]
    secret: Annotated[
        str | None,
        ChannelField(
            SECRET, "The secret that signs requests; by default, a new one.", example="secret://NAME", private=True
        ),
    ] = None
    headers: Annotated[
        dict[str, str],
        ChannelField(
            HEADERS, "Additional headers of the requests.", example={"authorization": "secret://token"}, private=True,
            flag="header",
        ),
    ] = {}  # fmt: skip


class Email(Channel, frozen=True, kw_only=True, tag="email", rename={"sender": "from"}):
    """A channel that sends e-mail through a mail server."""

    host: Annotated[
        str,
        ChannelField(Text(253, 1), "The mail server.", example="smtp.example.com", flag="smtp", metavar="HOST[:PORT]"),
    ]
    port: Annotated[
        int | None,
        ChannelField(Integer(1, 65535), "The port. Its default depends on tls: starttls 587, tls 465, none 25."),
    ] = None  # always set in a stored channel
    tls: Annotated[
        Tls, ChannelField(Choice(get_args(Tls)), "The encryption of the connection.", default=get_args(Tls)[0])
    ]
    sender: Annotated[
        str,
        ChannelField(ADDRESS, "The address of the sender.", example="horae@example.com", metavar="ADDRESS"),
    ]
    to: Annotated[
        tuple[str, ...],
        ChannelField(
            ADDRESSES,
            "The addresses of the receivers.",
            example=["ops@example.com"],
            flag="email",
            metavar="ADDRESS",
        ),
    ]
    username: Annotated[
        str | None, ChannelField(Text(256, 1), "The user name at the mail server.", flag="user", metavar="NAME")
    ] = None
    password: Annotated[
        str | None, ChannelField(PASSWORD, "The password at the mail server.", example="secret://NAME", private=True)
    ] = None

    @property
    def server_port(self) -> int:
        return self.port or PORTS[self.tls]


class Apprise(Channel, frozen=True, kw_only=True, tag="apprise"):
    """A channel that notifies chats, pagers and phones through the library apprise."""

    urls: Annotated[
        tuple[str, ...],
        ChannelField(
            URLS,
            "The URLs of the services, in the format of the library apprise.",
            example=["slack://A/B/C"],
            private=True,
            flag="apprise",
            metavar="URL",
        ),
    ]


AnyChannel = Webhook | Email | Apprise


class _Named(Struct):
    name: Annotated[str, Field(Name(), "The name of the channel.", example="ops", flag="", sdk=False)]


CHANNEL = Variants(AnyChannel, "A channel", "The kind of channel.", _EXAMPLE, _Named)
if TYPE_CHECKING:
    ChannelKind = str
else:
    ChannelKind = Literal[tuple(CHANNEL.tables)]
_PRIVATE = {kind: frozenset(table.where(lambda field: field.private)) for kind, table in CHANNEL.tables.items()}


def public_part(channel: Channel) -> dict[str, Any]:
    """Return the fields of a channel that are stored as they are, because they are not secret."""
    return {name: value for name, value in _stored_fields(channel) if name not in _PRIVATE[channel.kind]}


def private_part(channel: Channel) -> dict[str, Any]:
    """Return the secret fields of a channel, which are stored sealed."""
    return {name: value for name, value in _stored_fields(channel) if name in _PRIVATE[channel.kind]}


def _stored_fields(channel: Channel) -> Iterator[tuple[str, Any]]:
    kept = msgspec.json.decode(msgspec.json.encode(channel))
    yield from ((name, value) for name, value in kept.items() if name not in ("kind", "description"))


def join_parts(kind: str, description: str, opened: Mapping[str, Any], private: Mapping[str, Any]) -> AnyChannel:
    """Return a channel from the two parts in which it is stored; `opened` are the fields that are not secret."""
    kept = {"kind": kind, "description": description, **opened, **private}
    channel: AnyChannel = msgspec.convert(kept, AnyChannel)
    return channel


def read_channel(body: Any, before: Channel | None = None) -> AnyChannel:
    """Read a channel from a request. `before` is the stored channel that it replaces.

    A secret field that is left out keeps its stored value, because users cannot read the value to send it again. Raises
    BadInput if stored credentials would be sent to a new receiver.
    """
    given = {name: value for name, value in an_object(body, "body", _EXAMPLE).items() if value is not None}
    stays = private_part(before) if before is not None and before.kind == given.get("kind") else {}
    if "username" not in given:
        stays.pop("password", None)
    channel: AnyChannel = CHANNEL.read({**stays, **given})
    if isinstance(channel, Email):
        channel = _signed_in(channel)
    carried = next((name for name in ("headers", "password") if name in stays and name not in given), None)
    if before is not None and carried is not None and _has_new_receiver(channel, before):
        remedy = f"Send {carried} again: stored credentials are not sent to a new receiver."
        raise BadInput(f"The channel has a new receiver, and {carried} is not given.", remedy, field=carried)
    return channel


def _signed_in(channel: Email) -> Email:
    """Return the channel with its port set. Raises BadInput if only one of username and password is given."""
    if channel.username is not None and channel.password is None:
        remedy = 'Add "password": "secret://NAME".'
        raise BadInput("username is given without a password.", remedy, field="password")
    if channel.password is not None and channel.username is None:
        raise BadInput("password is given without a username.", "Add the username.", field="username")
    return structs.replace(channel, port=channel.server_port)


def _has_new_receiver(channel: AnyChannel, before: Channel) -> bool:
    """Return whether credentials would be sent to another receiver than before, or without encryption."""
    if isinstance(channel, Webhook) and isinstance(before, Webhook):
        return _origin(channel.url) != _origin(before.url)
    if isinstance(channel, Email) and isinstance(before, Email):
        moved = (channel.host, channel.port) != (before.host, before.port)
        return moved or (channel.tls == "none" and before.tls != "none")
    return False


def redacted(channel: AnyChannel) -> dict[str, Any]:
    """Return the receivers of a channel without secrets.

    URLs are shortened, because their paths may be credentials: a webhook's to scheme and host, others to the scheme.
    """
    match channel:
        case Webhook():
            return {"url": _origin(channel.url), "headers": sorted(channel.headers)}
        case Email():
            return {**public_part(channel), "hasPassword": channel.password is not None}
        case Apprise():
            return {"urls": [_scheme(url) for url in channel.urls]}
        case _:
            assert_never(channel)


def fill_secrets(channel: AnyChannel, values: Mapping[str, str]) -> AnyChannel:
    """Return the channel with each reference to a secret replaced by the value of the secret."""

    def fill(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: fill(one) for name, one in value.items()}
        if isinstance(value, list):
            return [fill(one) for one in value]
        return values[value.removeprefix(SCHEME)] if value.startswith(SCHEME) else value

    return join_parts(channel.kind, channel.description, public_part(channel), fill(private_part(channel)))


def secret_texts(channel: Channel) -> list[str]:
    """Return all texts in the secret fields of a channel."""
    return _texts(private_part(channel))


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict | list):
        return [text for one in (value.values() if isinstance(value, dict) else value) for text in _texts(one)]
    return [value]


def _origin(url: str) -> str:
    if url.startswith(SCHEME):
        return url
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}/..."


def _scheme(url: str) -> str:
    return url if url.startswith(SCHEME) else f"{url.partition('://')[0]}://..."
