"""Stored API keys, and the rights that they grant."""

from msgspec import Struct

from horae.env import Instant


class KeyRights(Struct, frozen=True, kw_only=True):
    """The rights of a key, or of a sign-in code or an enrolment that creates a key."""

    namespace: int
    role: str
    permissions: tuple[str, ...] = ()  # permissions in addition to those of the role
    queues: tuple[str, ...] = ()  # the queues to which it is restricted; empty: all
    jobs: tuple[str, ...] = ()  # patterns of the jobs to which it is restricted; empty: all
    made_by: str | None = None  # id of the key that created it
    namespace_name: str = ""  # not stored; filled in when the key is read


class StoredKey(Struct, frozen=True, kw_only=True):
    """A key without its secret."""

    id: str
    hash: bytes
    name: str
    grant: KeyRights
    created_at: Instant
    expires_at: Instant | None = None
    last_used_at: Instant | None = None
    revoked_at: Instant | None = None
    replaced_by: str | None = None
    rate: str | None = None  # how often it may send requests: "100/1s"

    def valid(self, now: Instant) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)
