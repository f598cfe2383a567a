"""A report on the store: its product and version, the revision of its tables, important settings and sealed values."""

from horae.engine.tenancy.sealed_kinds import SealedKinds
from horae.env import Env
from horae.model.base.store_view import StoreView
from horae.store.checkup import examine
from horae.store.contract import Store


class StoreReport:
    """Reads the facts of the store."""

    def __init__(self, env: Env, store: Store, sealed: SealedKinds) -> None:
        self._env, self._store, self._sealed = env, store, sealed

    async def read(self) -> StoreView:
        """Return the report. Nothing is changed."""
        facts = await examine(self._store.driver, self._env.now())
        return StoreView(
            kind=facts.dialect, version=facts.product, revision=facts.version, newest=facts.newest,
            settings=facts.settings, free_bytes=facts.free, sealed=await self._sealed.check(),
        )  # fmt: skip
