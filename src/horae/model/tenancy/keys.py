"""Keys as they are stored, and what they allow."""

from msgspec import Struct

from horae.env import Instant


class KeyGrant(Struct, frozen=True, kw_only=True):
    """What a key, a sign-in code or an enrolment allows."""

    namespace: int
    role: str
    permissions: tuple[str, ...] = ()  # beyond what the role brings
    queues: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    made_by: str | None = None  # the id of the key that made it
    namespace_name: str = ""  # as read


class StoredKey(Struct, frozen=True, kw_only=True):
    """A key as it is stored: all but its secret."""

    id: str
    hash: bytes
    name: str
    grant: KeyGrant
    created_at: Instant
    expires_at: Instant | None = None
    last_used_at: Instant | None = None
    revoked_at: Instant | None = None
    replaced_by: str | None = None
    rate: str | None = None  # how often it may send requests: "100/1s"

    def valid(self, now: Instant) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)
