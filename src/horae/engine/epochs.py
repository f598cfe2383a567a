"""Epochs: after a restore or a failover of the store no old session, and no old token, is valid."""

import structlog

from horae.engine.gateway import Gateway
from horae.engine.service import Alarm, Wait
from horae.store.contract import Store

LOOK = 5.0
log = structlog.get_logger("horae.engine")


class Epochs:
    """Follows the store's epoch; sessions of earlier ones are ended and what they held is charged nothing."""

    name = "epochs"

    def __init__(self, store: Store, gateway: Gateway) -> None:
        self._store, self._gateway = store, gateway
        self.current = 0
        self.alarm = Alarm()

    async def step(self) -> Wait:
        """Look whether the store entered a new epoch."""
        epoch = await self._store.epoch()
        if epoch != self.current:
            ended = await self._store.end_old_epochs(epoch)
            self._gateway.begin(epoch)
            if self.current:
                log.warning("the store entered a new epoch", epoch=epoch, sessions_ended=len(ended))
            self.current = epoch
        return LOOK
