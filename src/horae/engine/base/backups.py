"""Backups of a store that this process alone may open: made beside it while it goes on."""

import asyncio
import tempfile
from pathlib import Path
from typing import BinaryIO

from horae.env import Env
from horae.errors import Busy
from horae.store.contract import Store

MARK = ".backup-"


class Backups:
    """Copies the store as it is at one instant. Nobody else could: a SQLite file has one owner."""

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store
        self._under_way = False

    async def take(self) -> BinaryIO:
        """A copy to be read and closed; it has no name any more, so nothing of it stays behind.

        Raises Conflict for a store that others can copy, and Busy while a copy is being made.
        """
        if self._under_way:
            raise Busy("A backup is being made.", retry_after=5)
        self._under_way = True
        try:
            part = self._place()
            try:
                await self._store.driver.copy_file(part)
                return await asyncio.to_thread(part.open, "rb")
            finally:
                part.unlink(missing_ok=True)
        finally:
            self._under_way = False

    def _place(self) -> Path:
        """Where a copy is made: on the store's own disk. What a crash left there of an earlier one goes first."""
        path = self._store.driver.path or Path(tempfile.gettempdir()) / "horae"
        for stale in path.parent.glob(f"{path.name}{MARK}*"):
            stale.unlink(missing_ok=True)
        return path.with_name(f"{path.name}{MARK}{self._env.new_id()}")
