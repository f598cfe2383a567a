"""Whether the master keys that this server has open what is sealed in its store."""

from horae.engine.base.sealing import Sealer
from horae.engine.tenancy.secrets import Secrets
from horae.env import Env
from horae.features.alerts.engine.channels import AlertChannels
from horae.features.events.engine.hook_secrets import HookSecrets
from horae.model.tenancy.sealed_view import SealedView
from horae.store.base import sealing
from horae.store.contract import Store


class SealingCheck:
    """Opens what is sealed of the kinds that are found by name: secrets, and those of webhooks and of channels."""

    def __init__(self, env: Env, store: Store, sealer: Sealer) -> None:
        self._store, self._sealer = store, sealer
        secrets = Secrets(env, store, sealer)
        self._kinds = (secrets, HookSecrets(store, sealer, secrets), AlertChannels(env, store, sealer, secrets))

    async def look(self) -> SealedView:
        """Open what there is, of very many of a kind only the first."""
        opened = unopened = 0
        for kind in self._kinds:
            good, bad = await kind.look()
            opened, unopened = opened + good, unopened + bad
        known = await self._store.read(sealing.known)
        refusal = self._sealer.refusal
        return SealedView(
            opened=opened, unopened=unopened, can_seal=refusal is None,
            problem=None if refusal is None else refusal.detail, remedy=None if refusal is None else refusal.remedy,
            missing_keys=sorted(known - self._sealer.names),
        )  # fmt: skip
