"""`client.templates`: definitions with parameters, and the jobs created from them."""

from typing import Any, Unpack

from horae.client.encode import document
from horae.client.kernel.jobs import Outcome
from horae.client.transport.calls import Resource, path_of
from horae.client.views import ApiDocument, ResultPage, page_of
from horae.errors import NotFound
from horae.features.templates.options import TemplateFields


class TemplateInfo(ApiDocument, frozen=True, kw_only=True):
    """A template; `affected` lists the jobs that a change affects."""

    template_id: str
    name: str
    version: int
    description: str = ""
    parameters: dict[str, Any]
    job: dict[str, Any]
    jobs: tuple[str, ...] = ()
    affected: tuple[dict[str, Any], ...] = ()


class TemplatesResource(Resource):
    """Write, read and delete templates."""

    async def apply(self, document: dict[str, Any]) -> tuple[TemplateInfo, Outcome]:
        """Create or change a template to match a document; return it with the outcome."""
        name = document.get("name", "")
        try:
            before = await self.get(name)
        except NotFound:
            return await self.put(name, document), "created"
        after = await self.put(name, document)
        return after, "unchanged" if after.version == before.version else "changed"

    # `python -m tools.sdk` writes the methods below, from the routes of templates (create: none).

    async def list(self, *, limit: int | None = None, cursor: str | None = None) -> ResultPage[TemplateInfo]:
        """List templates, sorted by name."""
        return page_of(TemplateInfo, await self._caller.get(path_of("templates"), {"limit": limit, "cursor": cursor}))

    async def get(self, name: str) -> TemplateInfo:
        """Read a template, and which jobs were made from it."""
        return TemplateInfo.of(await self._caller.get(path_of("templates", name)))

    async def put(
        self, name: str, definition: dict[str, Any] | None = None, *, dry_run: bool = False,
        if_match: str | None = None, **fields: Unpack[TemplateFields],
    ) -> TemplateInfo:  # fmt: skip
        """Create a template, or change it and all jobs made from it in one transaction; `affected` lists changed
        jobs.

        `dry_run`: Change nothing; only report the changes.
        """
        query = document(definition, fields)
        return TemplateInfo.of(
            await self._caller.edit(
                "PUT", path_of("templates", name), query, if_match, query={"dry_run": dry_run or None}
            )
        )

    async def delete(self, name: str) -> None:
        """Delete a template that no job is made from."""
        await self._caller.delete(path_of("templates", name))

    async def versions(self, name: str) -> ResultPage[TemplateInfo]:
        """List a template's versions, newest first."""
        return page_of(TemplateInfo, await self._caller.get(path_of("templates", name, "versions")))
