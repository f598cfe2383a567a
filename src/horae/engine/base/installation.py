"""The installation: the epoch of its store, the room on its disk, a report on it, and its backup."""

import asyncio
import glob
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import structlog

from horae.engine.service import Alarm, Wait
from horae.engine.tenancy.sealed_kinds import SealedKinds
from horae.env import Env
from horae.errors import Busy
from horae.model.base.buckets import Buckets
from horae.model.base.installation import Installation
from horae.model.base.store_view import StoreView
from horae.store.checkup import examine
from horae.store.contract import Store

INTERVAL = 5.0  # seconds between two checks
MARK = ".backup-"
log = structlog.get_logger("horae.engine")


class EpochWatch:
    """Watches the store's epoch, logs a new one, and remembers the installation's identity.

    After a restore or a failover of the store, no earlier session and no earlier token is valid.
    `current` is never compared with the epochs of sessions and tokens: a session gets its epoch from the store, and a
    token gets its epoch from the session.
    """

    name = "epochs"

    def __init__(self, store: Store) -> None:
        self._store = store
        self.current = 0
        self.installation: Installation | None = None  # as of the last check
        self.alarm = Alarm()
        store.database.epoch_met.subscribe(self.name, lambda _: self.alarm.ring())

    async def step(self) -> Wait:
        """Check for a new epoch of the store, and end the remaining sessions of earlier epochs."""
        identity = await self._store.identity()
        epoch, self.installation = identity.epoch, identity.installation
        if epoch != self.current:
            ended = await self._store.end_old_epochs(epoch)
            if self.current:
                log.warning("the store entered a new epoch", epoch=epoch, sessions_ended=len(ended))
            self.current = epoch
        return INTERVAL


class DiskSpaceCheck:
    """Checks that the store's disk has room, even if nothing is written.

    If there is none, the runner reports the store as unavailable, and the server is not ready.
    """

    name = "disk-space"

    def __init__(self, store: Store) -> None:
        self._store = store
        self.alarm = Alarm()

    async def step(self) -> Wait:
        """Check once. Raises StoreUnavailable when there is no room."""
        await self._store.database.check_room()
        return INTERVAL


class StoreReport:
    """Reports the store's product and version, the revision of its tables, its settings and its sealed values.

    The properties are this server's figures for its metrics; they read nothing from the store.
    """

    def __init__(self, store: Store, sealed: SealedKinds) -> None:
        self._store, self._sealed = store, sealed

    @property
    def kind(self) -> str:
        """Return the kind of database: sqlite or postgresql."""
        return self._store.database.dialect

    @property
    def durations(self) -> Mapping[str, Buckets]:
        """Return the distribution of the durations of the store's operations, by operation."""
        return self._store.timings.of

    @property
    def retries(self) -> int:
        """Return the number of transactions repeated after a deadlock or a serialization failure."""
        return self._store.database.retries

    async def read(self) -> StoreView:
        """Return the report. Nothing is changed."""
        facts = await examine(self._store)
        return StoreView(
            kind=facts.dialect, version=facts.product, revision=facts.version, newest_revision=facts.newest,
            settings=facts.settings, free_bytes=facts.free, sealed=await self._sealed.check(),
        )  # fmt: skip


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
                await self._store.database.copy_file(path)
                return await asyncio.to_thread(path.open, "rb")
            finally:
                path.unlink(missing_ok=True)
        finally:
            self._under_way = False

    def _new_path(self) -> Path:
        """Return a path for a copy on the store's own disk. Delete copies that a crash left there.

        Copies of stores in memory are in the folder for temporary files, which other servers use, too.
        """
        path = self._store.database.path
        if path is None:
            return Path(tempfile.gettempdir()) / f"horae{MARK}{self._env.new_id()}"
        for stale in path.parent.glob(f"{glob.escape(path.name)}{MARK}*"):
            stale.unlink(missing_ok=True)
        return path.with_name(f"{path.name}{MARK}{self._env.new_id()}")
