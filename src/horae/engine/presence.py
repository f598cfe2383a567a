"""Presence: a server says that it is there, and learns of the others, so that workers can be told."""

import os
import socket
from uuid import UUID

from horae.engine.answers import Answers
from horae.engine.service import Alarm, Wait
from horae.env import SECOND, Env
from horae.store.contract import Store
from horae.store.moves import sessions
from horae.version import __version__

BEAT = 5.0
SILENT = 20 * SECOND  # a server not seen for so long is not offered to workers


class Presence:
    """Writes this server's row and reads the others'."""

    name = "presence"

    def __init__(self, env: Env, store: Store, node: UUID, url: str, answers: Answers) -> None:
        self._env, self._store, self._node, self._answers = env, store, node, answers
        self.url = url
        self.alarm = Alarm()

    async def step(self) -> Wait:
        """One beat."""
        now = self._env.now()
        if self.url:
            await self._store.write(
                lambda: sessions.server_seen(self._node, self.url, socket.gethostname(), os.getpid(), __version__, now)
            )
        rows = await self._store.read(lambda: sessions.servers(now - SILENT))
        self._answers.servers = sorted({row[1] for row in rows if row[1]})
        return BEAT

    async def leave(self) -> None:
        """This server goes; workers are told of it no more."""
        await self._store.write(lambda: sessions.server_gone(self._node))
