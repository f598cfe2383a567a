"""Epochs: after a restore or a failover of the store no old session, and no old token, is valid."""

import structlog

from horae.engine.service import Alarm, Wait
from horae.model.base.installation import Installation
from horae.store.contract import Store

LOOK = 5.0
log = structlog.get_logger("horae.engine")


class EpochWatch:
    """Watches the store's epoch to tell of a new one, and knows which installation it is.

    Nothing is fenced by `current`: a session takes its epoch from the store, and tokens take theirs from the session.
    """

    name = "epochs"

    def __init__(self, store: Store) -> None:
        self._store = store
        self.current = 0
        self.installation: Installation | None = None  # as it was when it was looked up last
        self.alarm = Alarm()
        store.driver.epoch_met.subscribe(self.name, lambda _: self.alarm.ring())

    async def step(self) -> Wait:
        """Look whether the store entered a new epoch; end what is left of sessions of earlier ones."""
        standing = await self._store.identity()
        epoch, self.installation = standing.epoch, standing.installation
        if epoch != self.current:
            ended = await self._store.end_old_epochs(epoch)
            if self.current:
                log.warning("the store entered a new epoch", epoch=epoch, sessions_ended=len(ended))
            self.current = epoch
        return LOOK
