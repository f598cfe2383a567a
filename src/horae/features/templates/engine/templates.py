"""Templates of jobs and workflows. A change of a template changes the jobs made from it in the same transaction."""

from typing import Any, Literal
from uuid import UUID

from msgspec import Struct, structs

from horae.engine.base.refs import in_quotes, nearest
from horae.engine.definitions.job_changes import JobDraft
from horae.engine.definitions.job_drafts import Derivation
from horae.engine.definitions.jobs import TRIES, Jobs
from horae.engine.definitions.permits import check_template
from horae.env import Env
from horae.errors import Busy, Conflict, HoraeError, NotFound, Stale
from horae.features.templates.engine import changes
from horae.features.templates.engine.drafts import dependencies_first, derivation_from, derive, draft_all
from horae.features.templates.model.values import Body, JobTemplate, read_template
from horae.features.templates.model.view import AffectedJobView, TemplateView, show_template
from horae.features.templates.store import templates
from horae.model.base.cursor import check_limit, make_cursor, read_cursor
from horae.model.base.view import Page
from horae.model.definitions.applied_view import AppliedDocumentView
from horae.model.definitions.reading.diff import differences
from horae.model.definitions.reading.write import render_definition
from horae.store.contract import Store
from horae.store.definitions.jobs import StoredJob
from horae.store.triggers.dependencies.starts import Consequences

MOST_NAMED = 20  # jobs named in a refusal
Change = Literal["created", "changed", "unchanged"]
list_of = list  # the class has a method with this name


class _Effect(Struct, frozen=True):
    """The effect of a template's change on the jobs made from it."""

    seen: frozenset[tuple[UUID, int]] = frozenset()  # all jobs made from it, with their versions
    edits: tuple[tuple[StoredJob, JobDraft], ...] = ()  # the jobs that change, each with its new definition
    affected: tuple[AffectedJobView, ...] = ()  # the jobs that change or can no longer be made, for users


class Templates:
    """Operations on templates, by name."""

    def __init__(self, env: Env, store: Store, jobs: Jobs) -> None:
        self._env, self._store, self._jobs = env, store, jobs

    async def create(self, namespace: int, body: Any) -> TemplateView:
        """Create a template. Raises BadInput, Conflict."""
        name, content = read_template("", body)
        check_template(name, content.job)
        await self._check_whole(namespace, name, content)
        if not await self._create(namespace, name, content):
            raise Conflict(f'A template named "{name}" exists.', f"Change it: `horae templates put {name} -f FILE`.")
        return await self.get(namespace, name)

    async def get(self, namespace: int, name: str) -> TemplateView:
        """Return a template, and the jobs made from it. Raises NotFound."""
        found = await self._find(namespace, name)
        users = await self._store.read(lambda: templates.users(found.id))
        return structs.replace(show_template(found), jobs=sorted(one.job.name for one in users))

    async def list(self, namespace: int, *, limit: int = 50, cursor: str | None = None) -> Page[TemplateView]:
        """List templates, sorted by name."""
        after, most = "" if cursor is None else read_cursor(cursor, str), check_limit(limit)
        found = await self._store.read(lambda: templates.page(namespace, after, most + 1))
        more = make_cursor(found[most - 1].name) if len(found) > most else None
        return Page(items=[show_template(one) for one in found[:most]], next_cursor=more)

    async def versions(self, namespace: int, name: str) -> "list_of[TemplateView]":
        """Return all versions of a template, newest first. Raises NotFound."""
        found = await self._find(namespace, name)
        return [show_template(one) for one in await self._store.read(lambda: templates.versions(found.id))]

    async def put(
        self, namespace: int, name: str, body: Any, *, if_match: int | None = None, dry_run: bool = False
    ) -> tuple[TemplateView, Change]:
        """Create or change the template of this name, together with all jobs made from it.

        With `dry_run`, only report the changes. Raises BadInput, Stale, and Conflict if one of the jobs could no longer
        be made; then nothing changes.
        """
        name, content = read_template(name, body)
        check_template(name, content.job)
        for _ in range(TRIES):
            before = await self._store.read(lambda: templates.named(namespace, name))
            _match(before, name, if_match)
            if before is None:
                await self._check_whole(namespace, name, content)
                if dry_run:
                    return _dry_run_view(self._unsaved(namespace, name, content)), "created"
                if await self._create(namespace, name, content):
                    return await self.get(namespace, name), "created"
                continue
            if before.body == content:
                return structs.replace(await self.get(namespace, name), dry_run=dry_run), "unchanged"
            after = structs.replace(before, version=before.version + 1, body=content)
            effect = await self._effect_of(after)
            if dry_run:
                return structs.replace(_dry_run_view(after), affected=list(effect.affected)), "changed"
            _refuse_broken(name, effect)
            if await self._change(before, content, effect):
                shown = await self.get(namespace, name)
                return structs.replace(shown, affected=list(effect.affected)), "changed"
        raise Busy(f'Template "{name}", or a job made from it, was changed again and again meanwhile.')

    async def delete(self, namespace: int, name: str, *, if_match: int | None = None) -> None:
        """Delete a template that no job is made from. Raises NotFound, Stale, Conflict."""
        for _ in range(TRIES):
            before = await self._find(namespace, name)
            _match(before, name, if_match)
            try:
                users = await self._store.change(lambda now: changes.delete(before, now))  # noqa: B023
            except changes.JobsChanged:
                continue
            if users:
                names = quoted_names(users)
                remedy = 'Delete these jobs, or make them stand alone: PATCH {"template": null}.'
                raise Conflict(f'Jobs are made from template "{name}": {names}.', remedy, jobs=users)
            return
        raise Busy(f'Template "{name}" was changed again and again meanwhile.')

    async def _create(self, namespace: int, name: str, body: Body) -> bool:
        """Create a template; return False if its name is taken."""
        template_id = self._env.new_id()
        return await self._store.change(lambda now: changes.create(template_id, namespace, name, body, now))

    async def _change(self, before: JobTemplate, body: Body, effect: _Effect) -> bool:
        consequences = Consequences()
        try:
            await self._store.change(
                lambda now: changes.change(before, body, effect.seen, effect.edits, self._env.new_id, now, consequences)
            )
        except changes.JobsChanged:
            return False
        self._store.started(consequences)
        for job, _ in effect.edits:
            self._jobs.announce_change(job.job)
        return True

    async def _effect_of(self, after: JobTemplate) -> _Effect:
        """Compute the effect of a changed template on all jobs made from it."""
        users = await self._store.read(lambda: templates.users(after.id))
        drafts = await draft_all(self._jobs, after, users)
        edits, affected = [], []
        for user in users:
            job, draft = user.job, drafts[user.job.id]
            if isinstance(draft, HoraeError):
                affected.append(AffectedJobView(job_id=job.id, job=job.name, changes=[], error=draft.detail))
            elif draft.spec != job.spec:
                edits.append((user, draft))
                changes_of_job = differences(render_definition(job.spec), render_definition(draft.spec))
                affected.append(AffectedJobView(job_id=job.id, job=job.name, changes=changes_of_job))
        last = {job_id: at for at, job_id in enumerate(dependencies_first(drafts))}
        edits.sort(key=lambda one: -last[one[0].job.id])  # each workflow before the jobs that it runs
        affected.sort(key=lambda one: one.job)
        return _Effect(frozenset((one.job.id, one.job.version) for one in users), tuple(edits), tuple(affected))

    async def _check_whole(self, namespace: int, name: str, body: Body) -> None:
        """Refuse a template from which no job can be made; this is checked if all its parameters have a default."""
        if len(body.defaults) == len(body.parameters):
            await self._jobs.check_template(namespace, name, derivation_from(self._unsaved(namespace, name, body)))

    def _unsaved(self, namespace: int, name: str, body: Body) -> JobTemplate:
        now = self._env.now()
        template_id = UUID(int=0)
        return JobTemplate(
            id=template_id, namespace=namespace, name=name, version=1, body=body, created_at=now, updated_at=now
        )

    async def _find(self, namespace: int, name: str) -> JobTemplate:
        found = await self._store.read(lambda: templates.named(namespace, name))
        if found is None:
            known = await self._store.read(lambda: templates.page(namespace, "", 1000))
            near = nearest(name, [one.name for one in known])
            remedy = f"Did you mean {in_quotes(near)}?" if near else "List templates with `horae templates list`."
            raise NotFound(f'There is no template named "{name[:128]}".', remedy)
        return found


class StoredTemplates:
    """The operations on templates that the kernel calls."""

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store

    async def derive(self, namespace: int, body: dict[str, Any]) -> tuple[dict[str, Any], Derivation]:
        """Return the complete definition of a job that names a template. Raises BadInput."""
        return await derive(self._store, namespace, body)

    async def apply(self, jobs: Jobs, namespace: int, document: dict[str, Any]) -> AppliedDocumentView:
        """Create or change a template, and the jobs made from it, to match a document."""
        templates = Templates(self._env, self._store, jobs)
        view, outcome = await templates.put(namespace, document.get("name", ""), document)
        affected = [one.job for one in view.affected]
        return AppliedDocumentView(
            kind="template", name=view.name, outcome=outcome, version=view.version, affected=affected
        )


def _match(before: JobTemplate | None, name: str, if_match: int | None) -> None:
    version = None if before is None else before.version
    if if_match is not None and if_match != version:
        stands = "does not exist" if version is None else f"is at version {version}, not {if_match}"
        remedy = "Read it again and repeat the change if it still makes sense."
        raise Stale(f'Template "{name}" {stands}.', remedy, version=version)


def _refuse_broken(name: str, effect: _Effect) -> None:
    broken = [one for one in effect.affected if one.error is not None]
    if broken:
        first = broken[0]
        others = f" Other jobs that could not be made: {len(broken) - 1}." if len(broken) > 1 else ""
        raise Conflict(
            f'Job "{first.job}" could not be made from template "{name}" any more: {first.error}{others}',
            "Change these jobs first, or the template in another way. Nothing was changed.",
            jobs=[one.job for one in broken[:MOST_NAMED]],
        )


def quoted_names(names: list_of[str]) -> str:
    """Quote the first names and count the others."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(f'"{name}"' for name in names[:MOST_NAMED]) + more


def _dry_run_view(template: JobTemplate) -> TemplateView:
    return structs.replace(show_template(template), dry_run=True)
