"""`client.templates`: definitions with parameters, and the jobs that are made from them."""

from typing import Any

from horae.client.kernel.jobs import Outcome
from horae.client.transport.calls import Caller, path_of
from horae.client.views import Page, View, page_of
from horae.errors import NotFound


class Template(View, frozen=True, kw_only=True):
    """A template; `affected` tells what a change of it changed, or would change."""

    template_id: str
    name: str
    version: int
    description: str = ""
    parameters: dict[str, Any]
    job: dict[str, Any]
    jobs: tuple[str, ...] = ()
    affected: tuple[dict[str, Any], ...] = ()


class Templates:
    """Write, read and delete templates."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def put(
        self, name: str, document: dict[str, Any], *, if_match: str | None = None, dry_run: bool = False
    ) -> Template:
        """Make the template of this name be as the document says, and change all jobs that were made from it.

        With `dry_run`, only tell what that would change.
        """
        path = path_of("templates", name) + ("?dryRun=true" if dry_run else "")
        return Template.of(await self._caller.edit("PUT", path, document, if_match))

    async def apply(self, document: dict[str, Any]) -> tuple[Template, Outcome]:
        """Make the template that a document names be as it says; tells what that changed."""
        name = document.get("name", "")
        try:
            before = await self.get(name)
        except NotFound:
            return await self.put(name, document), "created"
        after = await self.put(name, document)
        return after, "unchanged" if after.version == before.version else "changed"

    async def get(self, name: str) -> Template:
        return Template.of(await self._caller.get(path_of("templates", name)))

    async def list(self, *, limit: int | None = None, cursor: str | None = None) -> Page[Template]:
        """A page of templates, by name."""
        return page_of(Template, await self._caller.get(path_of("templates"), {"limit": limit, "cursor": cursor}))

    async def versions(self, name: str) -> Page[Template]:
        return page_of(Template, await self._caller.get(path_of("templates", name, "versions")))

    async def delete(self, name: str) -> None:
        """Delete a template that no job is made from."""
        await self._caller.delete(path_of("templates", name))
