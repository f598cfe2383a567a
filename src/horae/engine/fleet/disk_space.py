"""Room: a server whose store can take nothing more is not ready, also while nobody writes through it."""

from horae.engine.service import Alarm, Wait
from horae.store.contract import Store

LOOK = 5.0


class DiskSpaceCheck:
    """Looks whether the store's disk takes more; while it does not, the runner tells that the store is away."""

    name = "room"

    def __init__(self, store: Store) -> None:
        self._store = store
        self.alarm = Alarm()

    async def step(self) -> Wait:
        """Look once. Raises StoreUnavailable when there is no room."""
        await self._store.driver.check_room()
        return LOOK
