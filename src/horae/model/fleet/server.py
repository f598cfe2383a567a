"""Servers: the processes that share a store."""

from uuid import UUID

from msgspec import Struct

from horae.env import Instant

KEYLESS = "keyless"  # in `roles` of a server: it lacks a master key for sealed values in the store


class ServerProcess(Struct, frozen=True, kw_only=True):
    """A server process. If it does not serve HTTP, its URL is empty."""

    id: UUID
    url: str
    host: str
    pid: int
    version: str
    roles: tuple[str, ...]
    started_at: Instant = 0
    last_seen: Instant = 0

    @property
    def place(self) -> str:
        """Return the server's URL, or else its host and process id."""
        return self.url or f"{self.host}, process {self.pid}"
