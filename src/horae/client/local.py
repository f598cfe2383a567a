"""Defaults of the client: the server's URL and, on the same machine, the key."""

import ipaddress
from pathlib import Path
from urllib.parse import urlsplit

from horae.config.load import load
from horae.config.settings import Settings
from horae.errors import BadInput


def is_loopback(url: str) -> bool:
    """Tell whether a URL points to this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def where(url: str | None, settings: Settings) -> list[str]:
    """Return the URLs of the servers, from the argument or the settings."""
    urls = [part.strip() for part in url.split(",") if part.strip()] if url else list(settings.url)
    for each in urls or [url or ""]:
        if not _is_url(each):
            raise BadInput(f"{each!r} is not a server's URL.", "Write it as http://127.0.0.1:8420.", field="url")
    return urls


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return text.isprintable() and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # for brackets without an end, and for a wrong port
        return False


def find_key(urls: list[str], settings: Settings) -> str:
    """Return the key in the settings or, for a server on this machine, the key that its first start stored."""
    if settings.key:
        return str(settings.key)
    if not all(map(is_loopback, urls)):
        return ""
    return str(settings.admin_key) or read_key(settings.key_file)


def read_key(path: Path) -> str:
    """Return the key in a file; empty if there is none or it may not be read."""
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def chosen_namespace(namespace: str | None = None) -> str:
    """Return the namespace to select if the key is for several; empty for the key's own namespace."""
    return load().settings.namespace if namespace is None else namespace


def resolve(url: str | None = None, key: str | None = None) -> tuple[list[str], str]:
    """Return the servers and the key, from the arguments or else from the settings."""
    settings = load().settings
    urls = where(url, settings)
    return urls, key if key is not None else find_key(urls, settings)
