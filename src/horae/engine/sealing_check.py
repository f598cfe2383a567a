"""Whether the master keys that this server has open what is sealed in its store."""

from collections.abc import Awaitable, Callable, Sequence

from horae.engine.sealing import Sealer
from horae.model.sealed_view import SealedView
from horae.store.contract import Store
from horae.store.moves import sealing

Look = Callable[[], Awaitable[tuple[int, int]]]  # how many values opened, and how many did not


class SealingCheck:
    """Opens what is sealed of the kinds that are looked up by name: secrets and those of webhooks."""

    def __init__(self, store: Store, sealer: Sealer, looks: Sequence[Look]) -> None:
        self._store, self._sealer, self._looks = store, sealer, looks

    async def look(self) -> SealedView:
        """Open what there is, of very many of a kind only the first."""
        opened = unopened = 0
        for look in self._looks:
            good, bad = await look()
            opened, unopened = opened + good, unopened + bad
        known = await self._store.read(sealing.known)
        refusal = self._sealer.refusal
        return SealedView(
            opened=opened, unopened=unopened, can_seal=refusal is None,
            problem=None if refusal is None else refusal.detail, remedy=None if refusal is None else refusal.remedy,
            missing_keys=sorted(known - self._sealer.names),
        )  # fmt: skip
