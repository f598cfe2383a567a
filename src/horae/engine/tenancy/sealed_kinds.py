"""All sealed values of a store (secrets and the values that features seal), and the check of the master key."""

from typing import Protocol

import structlog

from horae.engine.base.hints import Hint, Hints
from horae.engine.base.sealing import Sealer
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.service import Alarm, Wait
from horae.engine.tenancy.secrets import Secrets
from horae.env import Env
from horae.feature import installed, load
from horae.model.base.store_view import SealedValuesView
from horae.model.tenancy.secret_view import RotationView
from horae.store.base import sealing
from horae.store.contract import Store

INTERVAL = 5.0  # seconds between two checks
log = structlog.get_logger("horae.engine")


class SealedKind(Protocol):
    """A kind of sealed values. Its constructor takes an environment, a store, a sealer and the secrets."""

    async def count_readable(self) -> tuple[int, int]:
        """Count the values that open with the master keys, and those that do not. Check only a limited number."""
        ...

    async def reseal(self) -> tuple[int, int]:
        """Seal values with the first master key. Return how many were sealed anew and how many were current."""
        ...


class SealedKinds:
    """Checks and reseals the values of every kind, also of disabled features."""

    def __init__(self, env: Env, store: Store, sealer: Sealer) -> None:
        self._store, self._sealer = store, sealer
        secrets = Secrets(env, store, sealer)
        targets = [feature.sealed for feature in installed() if feature.sealed]
        self._kinds: list[SealedKind] = [load(target)(env, store, sealer, secrets) for target in targets]
        self._kinds.append(secrets)

    async def check(self) -> SealedValuesView:
        """Report how many sealed values open with this server's master keys. Check a limited number of each kind."""
        opened = unopened = 0
        for kind in self._kinds:
            good, bad = await kind.count_readable()
            opened, unopened = opened + good, unopened + bad
        known = await self._store.read(sealing.known_keys)
        refusal = self._sealer.refusal
        return SealedValuesView(
            decryptable=opened, undecryptable=unopened, can_seal=refusal is None,
            problem=None if refusal is None else refusal.detail, remedy=None if refusal is None else refusal.remedy,
            missing_keys=sorted(known - self._sealer.names),
        )  # fmt: skip

    async def rotate(self) -> RotationView:
        """Seal every value of all namespaces with the first master key. Raises MasterKeyMissing when a value's key is
        not among this server's keys.
        """
        resealed = current = 0
        for kind in self._kinds:
            done, need_not = await kind.reseal()
            resealed, current = resealed + done, current + need_not
        log.info("secrets were resealed", resealed=resealed, current=current)
        return RotationView(resealed=resealed, current=current)


class MasterKeyCheck:
    """Checks whether this server can open the store's sealed values, and marks the directory as keyless if not.

    A keyless server grants no executions that need secrets; other servers, which have the key, grant them.
    """

    name = "master-key-check"

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
            remedy = "give it the key that the other servers have: HORAE_MASTER_KEY, or HORAE_MASTER_KEY_FILE"
            log.error("this server hands out no work that needs secrets", missing_keys=sorted(missing), remedy=remedy)
        if self._directory.keyless and not keyless:
            log.info("this server hands out work that needs secrets again")
        self._directory.set_keyless(keyless)
        return INTERVAL
