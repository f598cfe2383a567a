"""Servers: the processes that share a store."""

from uuid import UUID

from msgspec import Struct

from horae.env import Instant

KEYLESS = "keyless"  # a part: the server lacks a master key for sealed values in the store


class ServerProcess(Struct, frozen=True, kw_only=True):
    """A process that serves the store; without HTTP it has no URL."""

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
        """Return the URL, or the host and process."""
        return self.url or f"{self.host}, process {self.pid}"
