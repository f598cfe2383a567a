"""`client.secrets`: set and removed here, referred to by jobs; no value is ever read back."""

from horae.client.transport.calls import Caller, path_of
from horae.client.views import Page, View, page_of


class SecretInfo(View, frozen=True, kw_only=True):
    """What is known of a secret beside its value; `jobs` refer to it."""

    name: str
    version: int
    created_at: str
    updated_at: str
    jobs: tuple[str, ...] | None = None


class Secrets:
    """Secrets of the namespace."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def set(self, name: str, value: str) -> SecretInfo:
        """Give a secret a value; executions that start from now on get it."""
        return SecretInfo.of(await self._caller.edit("PUT", path_of("secrets", name), {"value": value}))

    async def get(self, name: str) -> SecretInfo:
        """What is known of a secret, and which jobs refer to it."""
        return SecretInfo.of(await self._caller.get(path_of("secrets", name)))

    async def list(self, *, limit: int | None = None, cursor: str | None = None) -> Page[SecretInfo]:
        """A page of secrets, by name."""
        return page_of(SecretInfo, await self._caller.get(path_of("secrets"), {"limit": limit, "cursor": cursor}))

    async def delete(self, name: str, *, force: bool = False) -> None:
        """Remove a secret; with `force` also one that jobs refer to, whose executions then fail."""
        await self._caller.delete(path_of("secrets", name) + ("?force=true" if force else ""))

    async def rotate(self) -> View:
        """Seal all secrets of all namespaces with the first master key; tells how many were `resealed`."""
        return View.of(await self._caller.post(path_of("master-key", "rotation")))
