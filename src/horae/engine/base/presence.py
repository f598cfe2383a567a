"""Presence: every server, in any role, writes a heartbeat, and reads the addresses of all servers for its workers."""

import os
import socket
from collections.abc import Collection
from uuid import UUID

from horae.engine.definitions.directory import LocalDirectory
from horae.engine.service import Alarm, Wait
from horae.env import SECOND, Env
from horae.model.fleet.server import KEYLESS, ServerProcess
from horae.store.contract import Store
from horae.store.fleet import sessions
from horae.version import __version__

BEAT = 5.0  # seconds between heartbeats
SILENT = 20 * SECOND  # a server without a heartbeat for this long is not offered to workers


class Presence:
    """Writes this server's heartbeat and reads those of the other servers."""

    name = "presence"

    def __init__(self, env: Env, store: Store, node: UUID, url: str, directory: LocalDirectory) -> None:
        self._env, self._store, self._node = env, store, node
        self.url = url  # the address at which workers reach this server
        self._roles: Collection[str] = ()
        self.addresses: list[str] = []  # the addresses of all servers that workers may use
        self._directory = directory
        self.alarm = Alarm()

    def begin(self, roles: Collection[str], url: str) -> None:
        """Serve in these roles; `url` is used unless the settings name another address."""
        self._roles, self.url = roles, self.url or url

    async def step(self) -> Wait:
        """Write this server's heartbeat and read those of the others."""
        now = self._env.now()
        own = ServerProcess(
            id=self._node, url=self.url, host=socket.gethostname(), pid=os.getpid(), version=__version__,
            roles=(*sorted(self._roles), *((KEYLESS,) if self._directory.keyless else ())),
        )  # fmt: skip
        await self._store.write(lambda: sessions.record_server(own, now))
        # One process owns a SQLite file. So any other server in the table has ended, or serves the file from which
        # this file was copied.
        seen = await self.servers() if self._store.database.is_shared else [own]
        self.addresses = sorted({server.url for server in seen if server.url and "gateway" in server.roles})
        return BEAT

    async def servers(self) -> list[ServerProcess]:
        """Return the servers with a recent heartbeat."""
        since = self._env.now() - SILENT
        return await self._store.read(lambda: sessions.servers(since))

    async def leave(self) -> None:
        """Delete this server's row, so that workers are no longer sent its address."""
        await self._store.write(lambda: sessions.remove_server(self._node))
