"""A sign-in that goes on at an identity provider: all of it follows from its state, which nobody else can make up."""

import base64
import hmac

from msgspec import Struct

from horae.env import SECOND, Instant


class Flow(Struct, frozen=True, kw_only=True):
    """What was begun: `state` travels with the browser, the rest is known to the servers alone."""

    state: str
    nonce: str
    verifier: str
    until: Instant

    @classmethod
    def begin(cls, secret: bytes, random: str, until: Instant) -> "Flow":
        """One that ends at about an instant."""
        seconds = until // SECOND
        said = f"{seconds:x}.{random}"
        return cls._of(secret, f"{said}.{_mac(secret, 'state', said)}", seconds)

    @classmethod
    def read(cls, secret: bytes, state: str) -> "Flow | None":
        """The one of a state; None when no server of this store made it."""
        said, _, mac = state.rpartition(".")
        if not hmac.compare_digest(mac.encode(), _mac(secret, "state", said).encode()):
            return None
        return cls._of(secret, state, int(said.partition(".")[0], 16))

    @classmethod
    def _of(cls, secret: bytes, state: str, seconds: int) -> "Flow":
        nonce, verifier = (_mac(secret, what, state) for what in ("nonce", "verifier"))
        return cls(state=state, nonce=nonce, verifier=verifier, until=seconds * SECOND)


def _mac(secret: bytes, what: str, said: str) -> str:
    digest = hmac.digest(secret, f"sign-in {what}\0{said}".encode(), "sha256")
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
