"""Channels: where notices of alerts go. What is secret of one is sealed, or refers to a secret, and is never shown."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from horae.errors import BadInput
from horae.features.alerts.model.rule import ChannelKind
from horae.model.base.signature import check_secret
from horae.model.fields.values import a_list, a_text, an_int, an_object, one_of, refuse_unknown
from horae.model.tenancy.secret_refs import SCHEME, check_secret_name

MOST_URL = 4096
MOST_PLACES = 50
MOST_HEADERS = 20
FIELDS: Mapping[ChannelKind, tuple[str, ...]] = {
    "webhook": ("url", "secret", "headers"),
    "email": ("host", "port", "tls", "username", "password", "from", "to"),
    "apprise": ("urls",),
}
PORTS = {"starttls": 587, "tls": 465, "none": 25}
# What the standard, or the transport, says itself.
_RESERVED = ("webhook-id", "webhook-timestamp", "webhook-signature", "host", "content-length", "content-type")
# Of apprise, what would act on the server's own machine, or finds the host that it calls by itself.
_LOCAL = ("dbus", "qt", "kde", "glib", "gnome", "macosx", "windows", "syslog", "file", "blink1", "mailto", "mailtos")
# And the parameters that name a file of this machine, whose content would be sent, or lead to another host.
_LEADING = frozenset(("template", "keyfile", "subfile", "pgp", "pgpkey", "pgppub", "pgpprv", "smtp", "redirect"))
_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class Channel(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A channel as it is kept: what everybody may see of it, and what is sealed."""

    kind: ChannelKind
    description: str = ""
    public: dict[str, Any] = {}
    private: dict[str, Any] = {}
    uses: tuple[str, ...] = ()  # the secrets that what is sealed refers to, as they are kept

    @property
    def references(self) -> tuple[str, ...]:
        """The secrets that it refers to."""
        return tuple(dict.fromkeys(name for value in self.private.values() for name in _named(value)))


def read_channel(body: Any, before: Channel | None = None) -> Channel:
    """A channel from a decoded body. What is secret and left out stays as it was: nobody can read it to send it."""
    example = 'Write {"name": "ops", "kind": "webhook", "url": "https://example.com/alerts"}.'
    given = {name: value for name, value in an_object(body, "body", example).items() if value is not None}
    if "kind" not in given:
        raise BadInput("A channel needs a kind.", f"It is one of: {', '.join(FIELDS)}.", field="kind")
    kind: ChannelKind = one_of(given["kind"], "kind", FIELDS)  # type: ignore[assignment]
    refuse_unknown(given, ("name", "kind", "description", *FIELDS[kind]), f"A channel of kind {kind}")
    kept = before.private if before is not None and before.kind == kind else {}
    told = {name: given[name] for name in FIELDS[kind] if name in given}
    public, private = _READERS[kind](told, kept)
    carried = next((name for name in ("headers", "password") if name in private and name not in told), None)
    if before is not None and carried is not None and _leads_elsewhere(public, private, before):
        remedy = f"Send {carried} again: who cannot read what is secret cannot have it sent elsewhere either."
        raise BadInput(f"It would lead elsewhere, and {carried} does not go along.", remedy, field=carried)
    description = a_text(given.get("description", ""), "description", most=4096)
    return Channel(kind=kind, description=description, public=public, private=private)


def _leads_elsewhere(public: Mapping[str, Any], private: Mapping[str, Any], before: Channel) -> bool:
    """Whether credentials would be sent to another place than before, or in the open."""
    if "url" in private:
        return _origin(private["url"]) != _origin(before.private["url"])
    moved = any(public[name] != before.public[name] for name in ("host", "port"))
    return moved or (public["tls"] == "none" and before.public["tls"] != "none")


def shown(channel: Channel) -> dict[str, Any]:
    """What of a channel is shown: of a URL whose path is a credential only where it leads."""
    if channel.kind == "webhook":
        return {"url": _origin(channel.private["url"]), "headers": sorted(channel.private.get("headers", {}))}
    if channel.kind == "apprise":
        return {"urls": [_scheme(url) for url in channel.private["urls"]]}
    return {**channel.public, "hasPassword": "password" in channel.private}


def filled(private: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
    """The same with references replaced by what they stand for."""

    def fill(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: fill(one) for name, one in value.items()}
        if isinstance(value, list | tuple):
            return [fill(one) for one in value]
        return values[value.removeprefix(SCHEME)] if value.startswith(SCHEME) else value

    return {name: fill(value) for name, value in private.items()}


def _webhook(given: Mapping[str, Any], kept: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    both = {**kept, **given}
    if "url" not in both:
        raise BadInput("A webhook needs a URL.", 'Add "url": "https://example.com/alerts".', field="url")
    private: dict[str, Any] = {"url": _url(both["url"], "url")}
    if "secret" in both:
        text = a_text(both["secret"], "secret", most=512, least=1)
        private["secret"] = _reference(text, "secret") if text.startswith(SCHEME) else check_secret(text)
    headers = an_object(both.get("headers", {}), "headers", 'Write {"authorization": "secret://token"}.')
    if len(headers) > MOST_HEADERS:
        raise BadInput(f"headers has {len(headers)} entries.", f"At most {MOST_HEADERS} are allowed.", field="headers")
    for name, value in headers.items():
        if not name or not set(name) <= _TOKEN or name.lower() in _RESERVED:
            raise BadInput(f"{name[:60]!r} cannot be a header here.", "Choose another name.", field=f"headers.{name}")
        text = a_text(value, f"headers.{name}", most=MOST_URL)
        if "\n" in text or "\r" in text:
            raise BadInput(f"headers.{name} has a line break.", "Remove it.", field=f"headers.{name}")
        _reference(text, f"headers.{name}")
    if headers:
        private["headers"] = headers
    return {}, private


def _email(given: Mapping[str, Any], kept: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    for name, example in (("host", "smtp.example.com"), ("from", "horae@example.com"), ("to", "ops@example.com")):
        if name not in given:
            raise BadInput(f"E-mail needs {name}.", f'Add "{name}": "{example}".', field=name)
    tls = one_of(given.get("tls", "starttls"), "tls", PORTS)
    to = a_list([given["to"]] if isinstance(given["to"], str) else given["to"], "to", 'Write ["a@b.c"].', MOST_PLACES)
    if not to:
        raise BadInput("to is empty.", "Name whom to tell.", field="to")
    public: dict[str, Any] = {
        "host": a_text(given["host"], "host", most=253, least=1),
        "port": an_int(given.get("port", PORTS[tls]), "port", 1, 65535),
        "tls": tls,
        "from": _address(given["from"], "from"),
        "to": [_address(one, f"to[{i}]") for i, one in enumerate(to)],
    }
    private = {}
    if "username" in given:
        public["username"] = a_text(given["username"], "username", most=256, least=1)
        password = given.get("password", kept.get("password"))
        if password is None:
            raise BadInput(
                "username is given without a password.", 'Add "password": "secret://NAME".', field="password"
            )
        private["password"] = _reference(a_text(password, "password", most=1024, least=1), "password")
    elif "password" in given:
        raise BadInput("password is given without a username.", "Add the username.", field="username")
    return public, private


def _apprise(given: Mapping[str, Any], kept: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    value = given.get("urls", kept.get("urls"))
    if value is None:
        raise BadInput("Apprise needs URLs.", 'Add "urls": ["slack://..."].', field="urls")
    urls = a_list([value] if isinstance(value, str) else value, "urls", 'Write ["slack://..."].', MOST_PLACES)
    for i, url in enumerate(urls):
        text = a_text(url, f"urls[{i}]", most=MOST_URL, least=1)
        _reference(text, f"urls[{i}]")
        why = None if text.startswith(SCHEME) else unsafe_in(text)
        if why is not None:
            remedy = "See apprise's documentation for the URLs of services."
            raise BadInput(
                f"urls[{i}] is not the URL of a service that can be told: {why}.", remedy, field=f"urls[{i}]"
            )
    if not urls:
        raise BadInput("urls is empty.", "Name whom to tell.", field="urls")
    return {}, {"urls": urls}


def unsafe_in(url: str) -> str | None:
    """Why a URL of apprise is not used: it would be more than one, or lead into this machine; None if it may be."""
    scheme = url.partition(":")[0].lower()
    if "://" not in url or not url.isprintable() or " " in url or url.count("://") > 1:
        return "it is not one URL"
    if scheme in _LOCAL:
        return f"{scheme}:// acts on the server's own machine, or is what the kind email is for"
    named = {unquote(unquote(part.partition("=")[0])).strip().lower() for part in _split(url)}
    leading = sorted(named & _LEADING)
    return f"{leading[0]}= can lead elsewhere than the URL says" if leading else None


def _split(url: str) -> list[str]:
    return url.partition("?")[2].replace("?", "&").replace(";", "&").split("&")


_READERS = {"webhook": _webhook, "email": _email, "apprise": _apprise}


def _url(value: Any, field: str) -> str:
    text = _reference(a_text(value, field, most=MOST_URL, least=1), field)
    if text.startswith(SCHEME):
        return text
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port is not False
    except ValueError:
        usable = False
    if not usable or any(character.isspace() for character in text):
        raise BadInput(f"{field} is not a URL of http or https.", 'Write "https://example.com/alerts".', field=field)
    return text


def _address(value: Any, field: str) -> str:
    """One address as `name@host`; what could end a header is refused."""
    text = a_text(value, field, most=320, least=3)
    local, at, host = text.rpartition("@")
    if not (local and at and host) or any(c.isspace() or c in '<>,;:"()' for c in text) or not text.isascii():
        raise BadInput(f"{field} is no e-mail address.", 'Write "ops@example.com".', field=field)
    return text


def _reference(text: str, field: str) -> str:
    """A value, or a reference to a secret of the store as a whole."""
    if text.startswith(SCHEME):
        try:
            check_secret_name(text.removeprefix(SCHEME))
        except BadInput as error:
            raise BadInput(error.detail, 'Refer to a secret of the store: "secret://NAME".', field=field) from None
    return text


def _named(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [name for one in value.values() for name in _named(one)]
    if isinstance(value, list | tuple):
        return [name for one in value for name in _named(one)]
    return [value.removeprefix(SCHEME)] if value.startswith(SCHEME) else []


def _origin(url: str) -> str:
    if url.startswith(SCHEME):
        return url
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}/..."


def _scheme(url: str) -> str:
    return url if url.startswith(SCHEME) else f"{url.partition('://')[0]}://..."
