"""The check of the master key: a server without the right key grants no executions that need secrets.

Other servers, which have the key, grant them.
"""

import structlog

from horae.engine.base.hints import Hint, Hints
from horae.engine.base.sealing import Sealer
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.service import Alarm, Wait
from horae.engine.tenancy.secrets import Secrets
from horae.store.base import sealing
from horae.store.contract import Store

INTERVAL = 5.0  # seconds between two checks
log = structlog.get_logger("horae.engine")


class MasterKeyCheck:
    """Checks whether this server can open the store's sealed values, and marks the directory as keyless if not."""

    name = "withholding"

    def __init__(
        self,
        store: Store,
        sealer: Sealer,
        secrets: Secrets,
        directory: LocalDirectory,
        hints: Hints,
    ) -> None:
        self._store, self._sealer, self._secrets = store, sealer, secrets
        self._directory = directory
        self.alarm = Alarm()
        hints.listen(self._on_hint)

    def _on_hint(self, hint: Hint) -> None:
        """Check at once after a change of jobs, because a new job may be the first that needs a key."""
        if hint.jobs:
            self.alarm.ring()

    async def step(self) -> Wait:
        """Check once. If this server has every key that was ever used, no value need be opened for the check."""
        known = await self._store.read(sealing.known_keys)
        missing = known - self._sealer.names
        keyless = bool(missing) and (not self._sealer.can_seal or (await self._secrets.count_readable())[1] > 0)
        if keyless and not self._directory.keyless:
            remedy = "give it the key that the other servers have: HORAE_SECRET_KEY, or HORAE_SECRET_KEY_FILE"
            log.error("this server hands out no work that needs secrets", missing_keys=sorted(missing), remedy=remedy)
        if self._directory.keyless and not keyless:
            log.info("this server hands out work that needs secrets again")
        self._directory.set_keyless(keyless)
        return INTERVAL
