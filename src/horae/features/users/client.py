"""`client.users`: users, and their roles in namespaces."""

from collections.abc import Sequence

from horae.client.encode import given
from horae.client.transport.calls import Resource, path_of
from horae.client.views import ApiDocument, ResultPage, page_of


class UsersResource(Resource):
    """Users of an installation; passwords are sent but never returned."""

    # `python -m tools.sdk` generates the rest, from the routes of users.

    async def list(self, *, limit: int | None = None, cursor: str | None = None) -> ResultPage[ApiDocument]:
        """List users by name; administrators of one namespace see only the users of it."""
        return page_of(ApiDocument, await self._caller.get(path_of("users"), {"limit": limit, "cursor": cursor}))

    async def create(self, name: str, password: str, role: str, *, permissions: Sequence[str] = ()) -> ApiDocument:
        """Create a user with a password and a role in this namespace.

        `role`: viewer, operator, editor or admin. `permissions`: Permissions beyond the role.
        """
        body = given(name=name, password=password, role=role, permissions=list(permissions) or None)
        return ApiDocument.of(await self._caller.post(path_of("users"), body))

    async def get(self, name: str) -> ApiDocument:
        """Read a user."""
        return ApiDocument.of(await self._caller.get(path_of("users", name)))

    async def edit(self, name: str, *, password: str | None = None, active: bool | None = None) -> ApiDocument:
        """Change a user's password, or activate or deactivate the user; a new password and deactivation end
        sessions.
        """
        body = given(password=password, active=active)
        return ApiDocument.of(await self._caller.edit("PATCH", path_of("users", name), body))

    async def delete(self, name: str) -> None:
        """Delete a user; the audit log keeps their actions."""
        await self._caller.delete(path_of("users", name))

    async def grant(self, name: str, role: str, *, permissions: Sequence[str] = ()) -> ApiDocument:
        """Grant a user a role in this namespace.

        `role`: viewer, operator, editor or admin. `permissions`: Permissions beyond the role.
        """
        body = given(role=role, permissions=list(permissions) or None)
        return ApiDocument.of(await self._caller.edit("PUT", path_of("users", name, "member"), body))

    async def revoke(self, name: str) -> None:
        """Remove a user from this namespace."""
        await self._caller.delete(path_of("users", name, "member"))
