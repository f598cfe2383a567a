"""Unguessable texts: keys, cookies, codes and tokens. Only this file generates them.

The store keeps only hashes of those that give access. A key has the form `hk_<id>_<secret>`: the id is shown in lists,
the secret has 256 random bits. So a plain SHA-256 is a sufficient hash for storage.
"""

import base64
import hashlib
import re
import secrets

_KEY = re.compile(r"hk_([a-z0-9]{4,32})_([A-Za-z0-9_-]{32,128})")


def id_of(text: str) -> str:
    """Return the id in a key's text. The id of a preset key of another form is the beginning of its hash."""
    found = _KEY.fullmatch(text)
    return found[1] if found else f"preset-{digest_of(text).hex()[:12]}"


def new_key_id() -> str:
    """Return a new id of a key, which is not secret."""
    return secrets.token_hex(6)


def new_key_text() -> tuple[str, str]:
    """Return the id and the text of a new key."""
    key_id = new_key_id()
    return key_id, f"hk_{key_id}_{secrets.token_hex(32)}"


def new_cookie() -> tuple[str, str]:
    """Return a new cookie, and the CSRF token that writing requests send with it."""
    return secrets.token_urlsafe(32), secrets.token_urlsafe(24)


def new_code() -> str:
    """Return a new code that signs one browser in."""
    return secrets.token_urlsafe(32)


def new_enrolment_token() -> str:
    """Return a new token that a worker exchanges for its own key."""
    return f"he_{secrets.token_urlsafe(32)}"


def new_hook_token() -> str:
    """Return the secret part of a new webhook's URL."""
    return f"hook_{secrets.token_urlsafe(32)}"


def new_callback_secret() -> str:
    """Return a new secret from which the URLs of callbacks are derived."""
    return secrets.token_hex(32)


def new_hook_secret() -> str:
    """Return a new secret for signatures of webhooks, in the form of Standard Webhooks."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"


def digest_of(text: str) -> bytes:
    """Return the hash of an unguessable secret, as it is stored."""
    return hashlib.sha256(text.encode()).digest()
