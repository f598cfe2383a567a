"""`client.namespaces`: tenants, what holds in each, what each may have and use, and what it used."""

from datetime import datetime
from typing import Any, Unpack

from horae.client.encode import definition, instant
from horae.client.options import NamespaceFields, QuotaFields
from horae.client.transport.calls import Resource, path_of
from horae.client.views import ApiDocument, ResultPage, page_of

DEFAULT = "default"


class NamespacesResource(Resource):
    """A key is for one namespace; one with the permission `installation` is for all of them."""

    async def create(self, name: str, **fields: Unpack[NamespaceFields]) -> ApiDocument:
        """Make a namespace, with its first queue."""
        return ApiDocument.of(await self._caller.post(path_of("namespaces"), {"name": name, **definition(fields)}))

    async def edit(self, name: str, **fields: Unpack[NamespaceFields]) -> ApiDocument:
        """Change some of what is said of a namespace; None takes a field back to its default."""
        return ApiDocument.of(await self._caller.edit("PATCH", path_of("namespaces", name), definition(fields)))

    async def erase(self, name: str, *, cancel: bool = False, definitions: bool = False) -> ApiDocument:
        """Erase all data of a namespace, part by part; with `definitions` also all that is defined, and itself.

        What has not ended refuses it, or is cancelled: while `done` is false and some are `live`, ask again.
        """
        asked: dict[str, Any] = {"confirm": name, "cancel": cancel, "definitions": definitions}
        counts = dict.fromkeys(("executions", "files", "events", "records", "definitions"), 0)
        while True:
            done = await self._caller.post(path_of("namespaces", name, "erasure"), asked, timeout=600.0)
            counts = {what: count + done[what] for what, count in counts.items()}
            asked["before"] = done["before"]
            if done["done"] or done["live"]:
                return ApiDocument.of({**done, **counts})

    async def own(self) -> str:
        """The namespace that this client speaks of."""
        return str((await self._caller.get(path_of("me")))["namespace"])

    async def set_quota(self, name: str = DEFAULT, **bounds: Unpack[QuotaFields]) -> ApiDocument:
        """Say what a namespace may have and use; what is left out is without a bound."""
        return ApiDocument.of(await self._caller.edit("PUT", path_of("namespaces", name, "quota"), definition(bounds)))

    # `python -m tools.sdk` writes what follows, from the routes of namespaces.

    async def list(self) -> ResultPage[ApiDocument]:
        """List the namespaces that this credential is for."""
        return page_of(ApiDocument, await self._caller.get(path_of("namespaces")))

    async def get(self, name: str) -> ApiDocument:
        """Read the settings of a namespace."""
        return ApiDocument.of(await self._caller.get(path_of("namespaces", name)))

    async def delete(self, name: str) -> None:
        """Delete an empty namespace; its keys end within five seconds."""
        await self._caller.delete(path_of("namespaces", name))

    async def quota(self, name: str) -> ApiDocument:
        """Read the quotas of a namespace."""
        return ApiDocument.of(await self._caller.get(path_of("namespaces", name, "quota")))

    async def usage(
        self, name: str, *, since: datetime | str | None = None, until: datetime | str | None = None
    ) -> ApiDocument:
        """Read the present and daily usage of a namespace: the last thirty days by default.

        `since`: The day of this instant and later. `until`: Days before this instant.
        """
        query = {"from": instant(since), "to": instant(until)}
        return ApiDocument.of(await self._caller.get(path_of("namespaces", name, "usage"), query))
