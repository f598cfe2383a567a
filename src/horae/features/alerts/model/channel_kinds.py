"""Kinds of fields for channels, such as URLs, addresses and secrets, with checks that refuse unsafe values."""

from typing import Any
from urllib.parse import unquote, urlsplit

from horae.errors import BadInput
from horae.model.base.webhook_signature import check_secret
from horae.model.fields.kinds import Custom
from horae.model.fields.values import a_list, a_text, an_object
from horae.model.tenancy.secret_refs import SCHEME, check_secret_name

MOST_URL = 4096
MOST_PLACES = 50
MOST_HEADERS = 20
# Headers that users may not set, because the signature of the webhook or the HTTP client sets them.
_RESERVED = ("webhook-id", "webhook-timestamp", "webhook-signature", "host", "content-length", "content-type")
# Schemes of apprise that act on the server's own machine, or for which apprise itself chooses the host to call.
_LOCAL = ("dbus", "qt", "kde", "glib", "gnome", "macosx", "windows", "syslog", "file", "blink1", "mailto", "mailtos")
# Parameters that name a local file, whose content apprise would send, or that lead to another host.
_LEADING = frozenset(("template", "keyfile", "subfile", "pgp", "pgpkey", "pgppub", "pgpprv", "smtp", "redirect"))
_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


def unsafe_in(url: str) -> str | None:
    """Return the reason why a URL for apprise is refused, or None if it is safe.

    It is refused if apprise would read it as several URLs, if it acts on this machine or names a local file, or if it
    could lead to another host than the one in the URL.
    """
    scheme = url.partition(":")[0].lower()
    if "://" not in url or not url.isprintable() or " " in url or url.count("://") > 1:
        return "it is not one URL"
    if scheme in _LOCAL:
        return f"{scheme}:// acts on the server's own machine, or is replaced by the kind email"
    named = {unquote(unquote(part.partition("=")[0])).strip().lower() for part in _split(url)}
    leading = sorted(named & _LEADING)
    return f"{leading[0]}= can name a local file or another host" if leading else None


def _split(url: str) -> list[str]:
    return url.partition("?")[2].replace("?", "&").replace(";", "&").split("&")


def _read_secret(value: Any, at: str) -> str:
    text = a_text(value, at, most=512, least=1)
    return _reference(text, at) if text.startswith(SCHEME) else check_secret(text)


def _read_headers(value: Any, at: str) -> dict[str, str]:
    headers = an_object(value, at, 'Write {"authorization": "secret://token"}.')
    if len(headers) > MOST_HEADERS:
        raise BadInput(f"{at} has {len(headers)} entries.", f"At most {MOST_HEADERS} are allowed.", field=at)
    for name, header in headers.items():
        field = f"{at}.{name}"
        if not name or not set(name) <= _TOKEN or name.lower() in _RESERVED:
            raise BadInput(f"{name[:60]!r} cannot be a header here.", "Choose another name.", field=field)
        text = a_text(header, field, most=MOST_URL)
        if "\n" in text or "\r" in text:
            raise BadInput(f"{field} has a line break.", "Remove it.", field=field)
        _reference(text, field)
    return headers


def _read_addresses(value: Any, at: str) -> tuple[str, ...]:
    given = a_list([value] if isinstance(value, str) else value, at, 'Write ["a@b.c"].', MOST_PLACES)
    if not given:
        raise BadInput(f"{at} is empty.", "Give at least one address.", field=at)
    return tuple(_address(one, f"{at}[{i}]") for i, one in enumerate(given))


def _read_password(value: Any, at: str) -> str:
    return _reference(a_text(value, at, most=1024, least=1), at)


def _read_urls(value: Any, at: str) -> tuple[str, ...]:
    urls = a_list([value] if isinstance(value, str) else value, at, 'Write ["slack://..."].', MOST_PLACES)
    for i, url in enumerate(urls):
        field = f"{at}[{i}]"
        text = _reference(a_text(url, field, most=MOST_URL, least=1), field)
        why = None if text.startswith(SCHEME) else unsafe_in(text)
        if why is not None:
            remedy = "See apprise's documentation for the URLs of services."
            raise BadInput(f"{field} is not the URL of a supported service: {why}.", remedy, field=field)
    if not urls:
        raise BadInput(f"{at} is empty.", "Give at least one URL.", field=at)
    return tuple(urls)


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
    """Read one address as `name@host`. Characters that could end a header are refused."""
    text = a_text(value, field, most=320, least=3)
    local, at, host = text.rpartition("@")
    if not (local and at and host) or any(c.isspace() or c in '<>,;:"()' for c in text) or not text.isascii():
        raise BadInput(f"{field} is not an e-mail address.", 'Write "ops@example.com".', field=field)
    return text


def _reference(text: str, field: str) -> str:
    """Return the text. If it begins with `secret://`, check that the whole text is a valid reference."""
    if text.startswith(SCHEME):
        try:
            check_secret_name(text.removeprefix(SCHEME))
        except BadInput as error:
            raise BadInput(error.detail, 'Refer to a secret of the store: "secret://NAME".', field=field) from None
    return text


_SEVERAL = list[str] | str
URL = Custom(_url, str, "str")
SECRET = Custom(_read_secret, str, "str")
HEADERS = Custom(_read_headers, dict[str, str], "Mapping[str, str]", option="pairs")
ADDRESS = Custom(_address, str, "str")
ADDRESSES = Custom(_read_addresses, _SEVERAL, "str | Sequence[str]", list, out=list[str], option="repeated")
PASSWORD = Custom(_read_password, str, "str")
URLS = Custom(_read_urls, _SEVERAL, "str | Sequence[str]", list, out=list[str], option="repeated")
