"""`client.keys`: who may talk to Horae."""

from collections.abc import Sequence
from datetime import datetime

from horae.client.encode import given, instant, span
from horae.client.transport.calls import Caller, path_of
from horae.client.views import Page, View, page_of
from horae.model.executions.signals import Span


class Keys:
    """Credentials; a new key's text is told once, as its `key`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def create(
        self,
        name: str,
        *,
        role: str = "admin",
        permissions: Sequence[str] = (),
        queues: Sequence[str] = (),
        jobs: Sequence[str] = (),
        rate: str | None = None,
        expires_at: datetime | str | None = None,
    ) -> View:
        """Make a key of a role (viewer, operator, editor, admin or worker).

        `permissions` (commands, sensitive, installation) go beyond it; `queues` and `jobs`, patterns of their names,
        narrow it; `rate` is how often it may ask each server, as "100/1s".
        """
        scope = {"permissions": list(permissions), "queues": list(queues), "jobs": list(jobs)}
        body = {"name": name, "role": role, **{field: some for field, some in scope.items() if some}}
        return View.of(
            await self._caller.post(path_of("keys"), {**body, **given(rate=rate, expires_at=instant(expires_at))})
        )

    async def rotate(self, id: str, *, overlap: Span | None = None) -> View:
        """Make a key that replaces another; both are valid until the overlap ends, a day unless told otherwise."""
        return View.of(await self._caller.post(path_of("keys", id, "rotate"), given(overlap=span(overlap))))

    async def list(self, *, limit: int | None = None, cursor: str | None = None) -> Page[View]:
        """Keys, with when they were used last; those that have ended included."""
        return page_of(View, await self._caller.get(path_of("keys"), {"limit": limit, "cursor": cursor}))

    async def delete(self, id: str, *, force: bool = False) -> None:
        """Revoke a key: it stops working within five seconds on every server.

        The last key that administers the installation is only revoked with `force`.
        """
        await self._caller.delete(path_of("keys", id), {"force": force or None})

    async def sign_in_link(self) -> View:
        """A link that signs one browser in, once, for what this client's key may: its `url` and when it ends."""
        made = await self._caller.post(path_of("sign-in", "codes"))
        return View.of({"url": f"{self._caller.place}/#code={made['code']}", "expiresAt": made["expiresAt"]})
