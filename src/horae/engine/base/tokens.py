"""Texts that nobody guesses: keys, cookies, codes, tokens. The only file that makes them; the store keeps their hashes.

A key reads `hk_<id>_<secret>`: the id is shown in lists, the secret is 256 random bits. So a plain SHA-256 is enough at
rest.
"""

import base64
import hashlib
import re
import secrets

_KEY = re.compile(r"hk_([a-z0-9]{4,32})_([A-Za-z0-9_-]{32,128})")


def id_of(text: str) -> str:
    """The id in a key's text; a preset key of another form is known by the beginning of its hash."""
    found = _KEY.fullmatch(text)
    return found[1] if found else f"preset-{digest_of(text).hex()[:12]}"


def new_key_id() -> str:
    """By which a key is known to people."""
    return secrets.token_hex(6)


def new_key_text() -> tuple[str, str]:
    """A new key's id and text."""
    id = new_key_id()
    return id, f"hk_{id}_{secrets.token_hex(32)}"


def new_cookie() -> tuple[str, str]:
    """A browser's secret, and the token that its writes must show."""
    return secrets.token_urlsafe(32), secrets.token_urlsafe(24)


def new_code() -> str:
    """What signs one browser in."""
    return secrets.token_urlsafe(32)


def new_enrolment_token() -> str:
    """What a worker exchanges for a key of its own."""
    return f"he_{secrets.token_urlsafe(32)}"


def new_hook_token() -> str:
    """The part of a webhook's URL that nobody guesses."""
    return f"hook_{secrets.token_urlsafe(32)}"


def new_callback_secret() -> str:
    """With which the URLs of callbacks are made."""
    return secrets.token_hex(32)


def new_hook_secret() -> str:
    """A secret that webhooks are signed with, as Standard Webhooks spell it."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"


def digest_of(text: str) -> bytes:
    """What is kept of a secret that nobody can guess."""
    return hashlib.sha256(text.encode()).digest()
