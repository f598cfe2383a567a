"""A sign-in in progress at an identity provider.

All its values are computed from its state, which has a MAC, so that only servers of this store can create one.
"""

import base64
import hmac

from msgspec import Struct

from horae.env import SECOND, Instant


class SignInFlow(Struct, frozen=True, kw_only=True):
    """A sign-in in progress. The browser has only `state`; the servers compute the other values from it."""

    state: str
    nonce: str
    verifier: str
    until: Instant

    @classmethod
    def begin(cls, secret: bytes, random: str, until: Instant) -> "SignInFlow":
        """Create a flow that expires at an instant, rounded down to a second."""
        seconds = until // SECOND
        said = f"{seconds:x}.{random}"
        return cls._of(secret, f"{said}.{_mac(secret, 'state', said)}", seconds)

    @classmethod
    def read(cls, secret: bytes, state: str) -> "SignInFlow | None":
        """Return the flow with a state, or None if no server of this store created the state."""
        said, _, mac = state.rpartition(".")
        if not hmac.compare_digest(mac.encode(), _mac(secret, "state", said).encode()):
            return None
        return cls._of(secret, state, int(said.partition(".")[0], 16))

    @classmethod
    def _of(cls, secret: bytes, state: str, seconds: int) -> "SignInFlow":
        nonce, verifier = (_mac(secret, what, state) for what in ("nonce", "verifier"))
        return cls(state=state, nonce=nonce, verifier=verifier, until=seconds * SECOND)


def _mac(secret: bytes, what: str, said: str) -> str:
    digest = hmac.digest(secret, f"sign-in {what}\0{said}".encode(), "sha256")
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
