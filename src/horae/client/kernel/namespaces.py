"""`client.namespaces`: tenants with their defaults, quotas and usage."""

from datetime import datetime
from typing import Any, Unpack

from horae.client.encode import definition, instant
from horae.client.options import NamespaceFields, QuotaFields
from horae.client.transport.calls import Resource, path_of
from horae.client.views import ApiDocument, ResultPage, page_of

DEFAULT = "default"


class NamespacesResource(Resource):
    """Namespaces. A key belongs to one; a key with the permission `installation` may use all."""

    async def create(self, name: str, **fields: Unpack[NamespaceFields]) -> ApiDocument:
        """Create a namespace with its first queue."""
        return ApiDocument.of(await self._caller.post(path_of("namespaces"), {"name": name, **definition(fields)}))

    async def edit(self, name: str, **fields: Unpack[NamespaceFields]) -> ApiDocument:
        """Change some settings of a namespace; None resets a field to its default."""
        return ApiDocument.of(await self._caller.edit("PATCH", path_of("namespaces", name), definition(fields)))

    async def erase(self, name: str, *, cancel: bool = False, definitions: bool = False) -> ApiDocument:
        """Erase all data of a namespace, in several requests; with `definitions`, also its definitions and itself.

        If executions have not ended, this fails, or with `cancel` cancels them. If the answer's `live` is then not 0,
        wait until they have ended and call this again.
        """
        body: dict[str, Any] = {"confirm": name, "cancel": cancel, "definitions": definitions}
        counts = dict.fromkeys(("executions", "files", "events", "records", "definitions"), 0)
        while True:
            done = await self._caller.post(path_of("namespaces", name, "erasure"), body, timeout=600.0)
            counts = {what: count + done[what] for what, count in counts.items()}
            body["before"] = done["before"]
            if done["complete"] or done["live"]:
                return ApiDocument.of({**done, **counts})

    async def own(self) -> str:
        """Return the namespace of this client."""
        return str((await self._caller.get(path_of("me")))["namespace"])

    async def set_quota(self, name: str = DEFAULT, **bounds: Unpack[QuotaFields]) -> ApiDocument:
        """Set the quotas of a namespace; a quota that is not given is unlimited."""
        return ApiDocument.of(await self._caller.edit("PUT", path_of("namespaces", name, "quota"), definition(bounds)))

    # `python -m tools.sdk` writes the methods below, from the routes of namespaces.

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

        `since`: Only the day of this instant and later days. `until`: Only days before this instant.
        """
        query = {"from": instant(since), "to": instant(until)}
        return ApiDocument.of(await self._caller.get(path_of("namespaces", name, "usage"), query))
