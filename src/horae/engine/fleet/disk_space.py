"""The disk space check: a server is not ready while its store's disk is full, even if nothing is written."""

from horae.engine.service import Alarm, Wait
from horae.store.contract import Store

INTERVAL = 5.0  # seconds between two checks


class DiskSpaceCheck:
    """Checks that the store's disk has room. Otherwise the runner reports the store as unavailable."""

    name = "room"

    def __init__(self, store: Store) -> None:
        self._store = store
        self.alarm = Alarm()

    async def step(self) -> Wait:
        """Check once. Raises StoreUnavailable when there is no room."""
        await self._store.driver.check_room()
        return INTERVAL
