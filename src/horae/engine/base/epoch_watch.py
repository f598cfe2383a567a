"""Epochs: after a restore or a failover of the store, no earlier session and no earlier token is valid."""

import structlog

from horae.engine.service import Alarm, Wait
from horae.model.base.installation import Installation
from horae.store.contract import Store

INTERVAL = 5.0  # seconds between two checks
log = structlog.get_logger("horae.engine")


class EpochWatch:
    """Watches the store's epoch, logs a new one, and remembers the installation's identity.

    `current` is never compared with the epochs of sessions and tokens: a session gets its epoch from the store, and a
    token gets its epoch from the session.
    """

    name = "epochs"

    def __init__(self, store: Store) -> None:
        self._store = store
        self.current = 0
        self.installation: Installation | None = None  # as of the last check
        self.alarm = Alarm()
        store.driver.epoch_met.subscribe(self.name, lambda _: self.alarm.ring())

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
