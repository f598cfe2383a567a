"""Verification of webhooks: signatures by Standard Webhooks 1.0 and by GitHub's X-Hub-Signature-256.

Both are HMAC-SHA256 with a secret that sender and receiver share. Comparisons take constant time.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from horae.env import SECOND, Instant, Micros
from horae.errors import BadInput, BadSignature

TOLERANCE: Micros = 300 * SECOND  # largest accepted difference between the time of a signature and this server's clock
PREFIX = "whsec_"
LEAST_SECRET, MOST_SECRET = 16, 256  # characters
MOST_SIGNATURES = 16  # signatures in one header; a sender that changes its secret signs with both secrets

Headers = Mapping[bytes, bytes]

# The standard comes from Svix, whose senders still use the old header names.
_STANDARD = (
    (b"webhook-id", b"webhook-timestamp", b"webhook-signature"),
    (b"svix-id", b"svix-timestamp", b"svix-signature"),
)
_HUB = b"x-hub-signature-256"
_HEX = re.compile(rb"sha256=([0-9a-fA-F]{64})")
_ID = re.compile(r"[\x21-\x7e]{1,256}")
_REMEDY = (
    "Sign with the webhook's secret: webhook-id, webhook-timestamp and webhook-signature as Standard Webhooks say, or "
    "X-Hub-Signature-256 as GitHub does."
)


class SignedMessage(Struct, frozen=True):
    """A request with a valid signature; `id` is the same when the same message is sent again."""

    id: str


def verify(headers: Headers, body: bytes, secrets: Iterable[str], now: Instant) -> SignedMessage:
    """Check the signature of a request against all valid secrets. Raises BadSignature with the reason."""
    for names in _STANDARD:
        if names[2] in headers or names[0] in headers:
            return _standard(headers, names, body, tuple(secrets), now)
    if _HUB in headers:
        return _hub(headers[_HUB], body, tuple(secrets))
    raise BadSignature("This webhook takes signed requests only, and the request has no signature.", _REMEDY)


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the `webhook-signature` header of a message, for senders and tests."""
    content = b"%s.%d.%s" % (message_id.encode(), timestamp, body)
    return "v1," + base64.b64encode(_mac(signing_key(secret), content)).decode()


def signing_key(secret: str) -> bytes:
    """Return the key bytes of a secret: the decoded base64 after `whsec_`, or the bytes of any other text."""
    if not secret.startswith(PREFIX):
        return secret.encode()
    return base64.b64decode(secret[len(PREFIX) :], validate=True)


def check_secret(secret: str, field: str = "secret") -> str:
    """Return the secret. Raises BadInput if it is too short, or begins with `whsec_` without valid base64 after it."""
    if not LEAST_SECRET <= len(secret) <= MOST_SECRET or not secret.isascii() or not secret.isprintable():
        remedy = f"Use {LEAST_SECRET} to {MOST_SECRET} random ASCII characters. Without {field}, Horae makes one."
        raise BadInput(f"The value of {field} cannot be used.", remedy, field=field)
    try:
        strength = len(signing_key(secret))
    except (binascii.Error, ValueError):
        strength = 0
    if strength < LEAST_SECRET:
        remedy = (
            f"Write at least {LEAST_SECRET} random bytes as base64 after {PREFIX}. Without {field}, Horae makes one."
        )
        raise BadInput(f"The value of {field} is not base64 after {PREFIX}, or is too short.", remedy, field=field)
    return secret


def _standard(
    headers: Headers, names: tuple[bytes, bytes, bytes], body: bytes, secrets: tuple[str, ...], now: Instant
) -> SignedMessage:
    message_id, stamp, shown = (headers.get(name, b"").decode("latin-1") for name in names)
    missing = [name.decode() for name, text in zip(names, (message_id, stamp, shown), strict=True) if not text]
    if missing:
        raise BadSignature(f"The header {missing[0]} is missing.", _REMEDY)
    if not _ID.fullmatch(message_id):
        raise BadSignature(f"The header {names[0].decode()} is not a valid id.", "Use 1 to 256 printable characters.")
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12):
        raise BadSignature(f"The header {names[1].decode()} is not a time.", "Send whole seconds since 1970.")
    # Check the signature first, so that a sender without the secret does not learn this server's clock.
    content = b"%s.%s.%s" % (message_id.encode("latin-1"), stamp.encode(), body)
    if not _any_holds(shown.split(" "), content, secrets):
        raise BadSignature("The signature does not match the body.", _REMEDY)
    _refuse_stale(int(stamp) * SECOND, now)
    return SignedMessage(message_id)


def _refuse_stale(at: Instant, now: Instant) -> None:
    if abs(now - at) > TOLERANCE:
        age = (now - at) // SECOND
        when = f"was signed {age} s ago" if age > 0 else f"is signed for a time {-age} s from now"
        remedy = f"At most {TOLERANCE // SECOND} s are allowed: sign again, and check both clocks."
        raise BadSignature(f"This message {when}. It is a replay, or a clock is wrong.", remedy)


def _any_holds(shown: list[str], content: bytes, secrets: tuple[str, ...]) -> bool:
    """Return whether one of several signatures matches one of several secrets.

    All pairs are always compared, so that the duration reveals nothing.
    """
    given = [text[3:].encode("latin-1") for text in shown[:MOST_SIGNATURES] if text.startswith("v1,")]
    expected = [base64.b64encode(_mac(signing_key(secret), content)) for secret in secrets]
    return sum(hmac.compare_digest(one, other) for one in expected for other in given) > 0


def _hub(shown: bytes, body: bytes, secrets: tuple[str, ...]) -> SignedMessage:
    """Check a GitHub signature.

    GitHub signs only the body. So the message id is the body's digest, because the delivery id in the header is not
    signed and could be forged.
    """
    found = _HEX.fullmatch(shown.strip())
    if found is None:
        raise BadSignature('X-Hub-Signature-256 is not "sha256=" and 64 hexadecimal digits.', _REMEDY)
    given = found[1].lower()
    if not sum(hmac.compare_digest(_mac(secret.encode(), body).hex().encode(), given) for secret in secrets):
        raise BadSignature("The signature does not match the body.", _REMEDY)
    return SignedMessage(f"sha256:{hashlib.sha256(body).hexdigest()}")


def _mac(key: bytes, content: bytes) -> bytes:
    return hmac.digest(key, content, "sha256")
