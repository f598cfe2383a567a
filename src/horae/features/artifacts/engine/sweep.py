"""Deletion of artifacts of deleted executions, and of contents to which no artifact refers."""

from uuid import UUID

import structlog

from horae.engine.service import Alarm, Wait
from horae.engine.storage.file_storage import FileStorage
from horae.env import SECOND, Env
from horae.features.artifacts.store import artifacts
from horae.store.contract import Store
from horae.store.executions.reads import housekeeping

ROUND_EVERY = 60.0  # seconds between two rounds over all artifacts
PACE = 1.0  # seconds between two batches of a round
TERM = 300 * SECOND  # the duration of the lease by which only one server does this
BATCH = 200  # artifacts or contents
LONGEST_UPLOAD = 6 * 3600 * SECOND  # longer than any upload takes, so that no content is deleted during its upload
log = structlog.get_logger("horae.artifacts")


class ArtifactSweeper:
    """A service that deletes artifacts of deleted executions, and contents to which no artifact refers."""

    name = "artifact-sweeper"

    def __init__(self, env: Env, store: Store, node: UUID, place: FileStorage) -> None:
        self._env, self._store, self._node, self._place = env, store, node, place
        self._at = artifacts.START
        self.alarm = Alarm()

    async def step(self) -> Wait:
        """Check a batch of artifacts and delete a batch of contents, if this server has the duty."""
        now = self._env.now()
        if not await self._store.write(lambda: housekeeping.take_duty("artifacts", self._node, now, now + TERM)):
            return ROUND_EVERY
        self._at = await self._store.write(lambda: artifacts.delete_orphaned_page(self._at, BATCH, now))
        found = await self._store.read(lambda: artifacts.locations_to_delete(now - LONGEST_UPLOAD, BATCH))
        removed = [location for location in found if await self._remove(location)]
        if removed:
            await self._store.write(lambda: artifacts.forget_deleted_locations(removed))
        if len(removed) == BATCH:
            return 0.0
        return ROUND_EVERY if self._at == artifacts.START else PACE

    async def _remove(self, location: str) -> bool:
        try:
            await self._place.remove(location)
        except Exception as error:  # storages raise errors of any type; a later step tries again
            log.warning("an artifact cannot be removed", place=self._place.url, location=location, error=str(error))
            return False
        return True
