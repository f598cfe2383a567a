"""Servers: the processes that share a store."""

from uuid import UUID

from msgspec import Struct

from horae.env import Instant

KEYLESS = "keyless"  # one of its parts: it has no master key for what is sealed in the store


class ServerProcess(Struct, frozen=True, kw_only=True):
    """A process that serves the store; one without HTTP has no URL."""

    id: UUID
    url: str
    host: str
    pid: int
    version: str
    parts: tuple[str, ...]
    started_at: Instant = 0
    last_seen: Instant = 0

    @property
    def place(self) -> str:
        """Where to find it."""
        return self.url or f"{self.host}, process {self.pid}"
