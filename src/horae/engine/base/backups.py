"""Backups of a store file that only this process may open. The copy is written beside the file while the store runs."""

import asyncio
import tempfile
from pathlib import Path
from typing import BinaryIO

from horae.env import Env
from horae.errors import Busy
from horae.store.contract import Store

MARK = ".backup-"


class Backups:
    """Copies a consistent snapshot of the store. No other process can do it: a SQLite file has one owner."""

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store
        self._under_way = False

    async def take(self) -> BinaryIO:
        """Return an open copy of the store. Its file is already unlinked, so the disk space is freed on close.

        Raises Conflict for a store that other programs can copy, and Busy while a copy is being made.
        """
        if self._under_way:
            raise Busy("A backup is being made.", retry_after=5)
        self._under_way = True
        try:
            path = self._new_path()
            try:
                await self._store.driver.copy_file(path)
                return await asyncio.to_thread(path.open, "rb")
            finally:
                path.unlink(missing_ok=True)
        finally:
            self._under_way = False

    def _new_path(self) -> Path:
        """Return a path for a copy on the store's own disk. Delete copies that a crash left there."""
        path = self._store.driver.path or Path(tempfile.gettempdir()) / "horae"
        for stale in path.parent.glob(f"{path.name}{MARK}*"):
            stale.unlink(missing_ok=True)
        return path.with_name(f"{path.name}{MARK}{self._env.new_id()}")
