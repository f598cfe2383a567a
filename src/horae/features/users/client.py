"""`client.users`: people, and what they may do in which namespaces."""

from collections.abc import Sequence

from horae.client.encode import given
from horae.client.transport.calls import Caller, path_of
from horae.client.views import Page, View, page_of


class Users:
    """People; a password is sent, and never told."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def create(self, name: str, password: str, *, role: str, permissions: Sequence[str] = ()) -> View:
        """Let somebody in, and make them something in this namespace."""
        body = {"name": name, "password": password, "role": role, "permissions": list(permissions)}
        return View.of(await self._caller.post(path_of("users"), body))

    async def get(self, name: str) -> View:
        return View.of(await self._caller.get(path_of("users", name)))

    async def list(self, *, limit: int | None = None, cursor: str | None = None) -> Page[View]:
        return page_of(View, await self._caller.get(path_of("users"), {"limit": limit, "cursor": cursor}))

    async def edit(self, name: str, *, password: str | None = None, active: bool | None = None) -> View:
        """Give somebody another password, or let them in or not; both end their sessions."""
        return View.of(
            await self._caller.edit("PATCH", path_of("users", name), given(password=password, active=active))
        )

    async def delete(self, name: str) -> None:
        await self._caller.delete(path_of("users", name))

    async def grant(self, name: str, *, role: str, permissions: Sequence[str] = ()) -> View:
        """Make somebody something in this namespace."""
        body = {"role": role, "permissions": list(permissions)}
        return View.of(await self._caller.edit("PUT", path_of("users", name, "member"), body))

    async def revoke(self, name: str) -> None:
        """Take somebody out of this namespace."""
        await self._caller.delete(path_of("users", name, "member"))
