"""`client.users`: users, and their roles in namespaces."""

from collections.abc import Sequence

from horae.client.encode import given
from horae.client.transport.calls import Resource, path_of
from horae.client.views import ApiDocument, ResultPage, page_of


class UsersResource(Resource):
    """The users of an installation. Passwords are only sent, never returned."""

    # `python -m tools.sdk` writes the methods below, from the routes of users.

    async def list(self, *, limit: int | None = None, cursor: str | None = None) -> ResultPage[ApiDocument]:
        """List users in the order of their names; administrators of a namespace see only the users of this
        namespace.
        """
        return page_of(ApiDocument, await self._caller.get(path_of("users"), {"limit": limit, "cursor": cursor}))

    async def create(self, name: str, password: str, role: str, *, permissions: Sequence[str] = ()) -> ApiDocument:
        """Create a user with a password and a role in this namespace.

        `role`: viewer, operator, editor or admin. `permissions`: Permissions in addition to those of the role.
        """
        body = given(name=name, password=password, role=role, permissions=list(permissions) or None)
        return ApiDocument.of(await self._caller.post(path_of("users"), body))

    async def get(self, name: str) -> ApiDocument:
        """Read a user."""
        return ApiDocument.of(await self._caller.get(path_of("users", name)))

    async def edit(self, name: str, *, password: str | None = None, active: bool | None = None) -> ApiDocument:
        """Set a user's password, or activate or deactivate the user.

        A new password and a deactivation end all sessions of the user.
        """
        body = given(password=password, active=active)
        return ApiDocument.of(await self._caller.edit("PATCH", path_of("users", name), body))

    async def delete(self, name: str) -> None:
        """Delete a user; the user's actions stay in the audit log."""
        await self._caller.delete(path_of("users", name))

    async def grant(self, name: str, role: str, *, permissions: Sequence[str] = ()) -> ApiDocument:
        """Grant a user a role in this namespace.

        `role`: viewer, operator, editor or admin. `permissions`: Permissions in addition to those of the role.
        """
        body = given(role=role, permissions=list(permissions) or None)
        return ApiDocument.of(await self._caller.edit("PUT", path_of("users", name, "member"), body))

    async def revoke(self, name: str) -> None:
        """Remove a user from this namespace."""
        await self._caller.delete(path_of("users", name, "member"))
