"""Drafts of jobs: a user's definition is parsed, and its references to other objects are resolved."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

from msgspec import Struct, structs

from horae.engine.base.refs import as_id, in_quotes, nearest
from horae.engine.definitions.job_changes import JobDraft
from horae.engine.definitions.owned_changes import refuse_owned
from horae.engine.definitions.owned_jobs import NO_SIBLINGS, OwnedJobPlanner, OwnedJobsPlan, SiblingChanges
from horae.engine.definitions.permits import ACTOR, Change, check_changes, check_job, check_name, visible
from horae.engine.tenancy.secrets import check_secrets
from horae.engine.triggers.trigger_calendars import check_calendars
from horae.engine.triggers.trigger_checks import check_params, field_of, refuse_the_past
from horae.env import Env, Instant
from horae.errors import BadInput
from horae.model.definitions.job import Spec
from horae.model.definitions.reading.patch import merge_definition, patched_form
from horae.model.definitions.reading.read import Definition, parse_definition, parse_whens
from horae.model.definitions.template_use import TemplateUse, source_of
from horae.model.documents.schema import check_schema
from horae.model.expressions.meter import definition_budget
from horae.model.tenancy.namespace import with_defaults
from horae.model.triggers.decisions.external import WatchTrigger
from horae.model.triggers.decisions.named_trigger import NamedTrigger
from horae.store.contract import Store
from horae.store.definitions import job_reads
from horae.store.definitions.jobs import StoredJob
from horae.store.tenancy import namespaces

CheckPlace = Callable[[WatchTrigger, str], None]


class Derivation(Struct, frozen=True):
    """The template of a job, its version, and the values given to it."""

    made: TemplateUse
    template: UUID
    version: int

    def marked(self, definition: Definition) -> Definition:
        """Return a definition that records its template."""
        spec = structs.replace(definition.spec, made=self.made)
        return structs.replace(definition, spec=spec, derived=(self.template, self.version))


# Returns the whole definition that a body describes by its template. Raises BadInput.
Derive = Callable[[int, dict[str, Any]], Awaitable[tuple[dict[str, Any], Derivation]]]


class JobDrafter:
    """Makes drafts of jobs. Nothing is written here."""

    def __init__(
        self,
        env: Env,
        store: Store,
        check_place: CheckPlace,
        default_queue: Callable[[int], str],
        derive: Derive,
    ) -> None:
        """Make a drafter for a store.

        `check_place` refuses places that must not be watched. `default_queue` returns the queue for jobs that name no
        queue. `derive` makes a definition from a template.
        """
        self._env, self._store, self._check_place, self._derive = env, store, check_place, derive
        self._default_queue = default_queue
        self._planner = OwnedJobPlanner(store, env.new_id)
        self._namespaces: dict[int, str] = {}

    async def parse(self, namespace: int, body: Any, created_at: Instant, derive: Derive | None = None) -> Definition:
        """Return the definition in a request's body.

        A body that names a template is derived from it, by `derive` if given.
        """
        derivation: Derivation | None = None
        if isinstance(body, dict) and body.get("template") is not None:
            body, derivation = await (derive or self._derive)(namespace, body)
        own = await self._store.read(lambda: namespaces.by_id(namespace))
        if isinstance(body, dict):
            body = body if own is None else with_defaults(body, own.spec.defaults)
            if body.get("queue") is None:
                body = {**body, "queue": self._default_queue(namespace)}
        definition = parse_definition(body, namespace_name="" if own is None else own.name, created_at=created_at)
        if definition.spec.schema is not None:
            check_schema(definition.spec.schema, "schema")
        with definition_budget():
            for when in definition.whens:
                check_params(when, definition.spec, created_at)
        return definition if derivation is None else derivation.marked(definition)

    async def create(self, namespace: int, body: Any) -> JobDraft:
        """Return the draft of a new job. Refuse triggers that would never fire."""
        now = self._env.now()
        definition = await self.parse(namespace, body, now)
        for when in definition.whens:
            self._check_new(when, now)
        return await self.resolve(namespace, definition)

    async def change(self, before: StoredJob, patch: Any, *, replace: bool, derive: Derive | None = None) -> Definition:
        """Return the definition of a job after a patch; with `replace`, `patch` is the whole new definition."""
        refuse_owned(before.job)
        body = patch
        if not replace:
            body = merge_definition(patched_form(before.job.spec, patch), patch)
        elif isinstance(patch, dict):
            body = {"name": before.job.name, **patch}
        definition = await self.parse(before.job.namespace, body, before.job.created_at, derive)
        known = {when.name: when for when in (await self.stored_definition(before, before.job.spec)).whens}
        for when in definition.whens:
            old = known.get(when.name)
            if old is None or old.trigger != when.trigger or old.rules.bounds != when.rules.bounds:
                self._check_new(when, self._env.now())
        return definition

    def _check_new(self, when: NamedTrigger, now: Instant) -> None:
        """Refuse a trigger that would never fire, or that watches a forbidden place."""
        refuse_the_past(when, now)
        if isinstance(when.trigger, WatchTrigger):
            self._check_place(when.trigger, f"{field_of(when)}.watch")

    async def stored_definition(self, before: StoredJob, spec: Spec) -> Definition:
        """Return a definition as it was stored. It was accepted before, so it is not checked again."""
        key = f"{await self._namespace(before.job.namespace)}/{spec.name}"
        whens = parse_whens(spec, key=key, created_at=before.job.created_at, past=True)
        return Definition(spec=spec, whens=whens, dependencies=spec.dependencies, conditions=spec.conditions)

    async def earlier_definition(self, before: StoredJob, spec: Spec) -> Definition:
        """Return an earlier definition of a job, which is about to be written again.

        A job made from a template is made from it anew, because the template may have been changed. If that is no
        longer possible, the job stands alone.
        """
        if spec.made is not None:
            earlier = structs.replace(before, job=structs.replace(before.job, name=spec.name, spec=spec))
            try:
                return await self.change(earlier, source_of(spec.name, spec.made), replace=True)
            except BadInput:
                spec = structs.replace(spec, made=None)
        return await self.stored_definition(before, spec)

    async def resolve(
        self,
        namespace: int,
        definition: Definition,
        before: StoredJob | None = None,
        beside: SiblingChanges = NO_SIBLINGS,
    ) -> JobDraft:
        """Resolve the jobs, calendars and secrets that a definition refers to, and return a draft.

        `before` is the present version, and `beside` has the other jobs that the same change writes.
        """
        known = {*definition.spec.dependencies, *(before.job.spec.dependencies if before else ())}
        upstream = await self._upstream(namespace, definition.dependencies, known)
        old = () if before is None else (await self.stored_definition(before, before.job.spec)).whens
        fresh = [when for when in definition.whens if when not in old]
        await check_calendars(self._store, namespace, fresh, self._env.now())
        conditions = {upstream[ref]: condition for ref, condition in definition.conditions.items()}
        ids = tuple(dict.fromkeys(upstream[ref] for ref in definition.dependencies))
        spec = structs.replace(definition.spec, dependencies=ids, conditions=conditions)
        spec, plan = await self._planner.plan(namespace, spec, before, beside)
        check_changes(_changes(spec, plan, before))
        await self._check_secrets(namespace, spec, plan, before)
        return JobDraft(spec=spec, whens=definition.whens, owned_jobs=plan, derived=definition.derived)

    async def _check_secrets(
        self, namespace: int, spec: Spec, plan: OwnedJobsPlan | None, before: StoredJob | None
    ) -> None:
        """Refuse references to missing secrets, unless the job or the jobs that it owns had them before."""
        drafts = () if plan is None else plan.drafts
        old = [before.job.spec] if before else []
        old += [owned_job.before.spec for owned_job in drafts if owned_job.before is not None]
        wanted = {name for part in (spec, *(owned_job.spec for owned_job in drafts)) for name in part.references}
        await check_secrets(self._store, namespace, wanted - {name for part in old for name in part.references})

    async def _namespace(self, namespace: int) -> str:
        if namespace not in self._namespaces:
            self._namespaces[namespace] = await self._store.read(lambda: job_reads.namespace_name(namespace))
        return self._namespaces[namespace]

    async def _upstream(self, namespace: int, refs: Sequence[str], known: set[str]) -> dict[str, str]:
        """Return the ids of the jobs that a job depends on, by reference (name or id).

        A deleted job is accepted if the job already depended on it: `known` has the ids of these. Raises BadInput.
        """
        if not refs:
            return {}
        ids = {ref: job_id for ref in refs if (job_id := as_id(ref))}
        named = await self._store.read(lambda: job_reads.ids_by_names(namespace, [r for r in refs if r not in ids]))
        states = await self._store.read(lambda: job_reads.states_of(namespace, list(ids.values())))
        usable = {
            ref: job_id
            for ref, job_id in ids.items()
            if str(job_id) in known or states.get(job_id, "deleted") != "deleted"
        }
        found: dict[str, UUID] = {**named, **usable}
        if ACTOR.get().scoped:
            await self._check_scope(namespace, {ref: found.get(ref) for ref in refs}, known)
        missing = [ref for ref in refs if ref not in found]
        if missing:
            raise _missing(missing, visible(await self._store.read(lambda: job_reads.names(namespace))))
        return {ref: str(found[ref]) for ref in refs}

    async def _check_scope(self, namespace: int, found: dict[str, UUID | None], known: set[str]) -> None:
        """Refuse dependencies on jobs outside of the actor's scope, unless the job already depends on them."""
        for ref, job_id in found.items():
            if str(job_id) in known:
                continue
            check_name(ref)
            stored = await self._store.job(job_id, namespace) if job_id is not None else None
            if stored is not None:
                check_job(stored.job, ref)


def _changes(spec: Spec, plan: OwnedJobsPlan | None, before: StoredJob | None) -> list[Change]:
    """Return the changes of a draft: the job itself and the jobs that it owns. A restored job counts as new."""
    drafts = () if plan is None else plan.drafts
    known = before if before is not None and before.job.state != "deleted" else None
    return [
        (None if known is None else known.job.spec, spec),
        *(
            (None if one.before is None or (one.owner is None and known is None) else one.before.spec, one.spec)
            for one in drafts
        ),
    ]


def _missing(missing: list[str], names: Sequence[str]) -> BadInput:
    """Return the error for dependencies on missing jobs: it names all of them, and how to create them."""
    first = missing[0]
    near = nearest(first, names)
    remedy = f"Did you mean {in_quotes(near)}? " if near else ""
    remedy += (
        f'Create them first: `horae jobs create {first} --command "..."` or POST /api/v1/jobs'
        f' {{"name": "{first}", "command": "..."}}.'
    )
    quoted = ", ".join(f'"{ref}"' for ref in missing)
    described = "a job that does not exist" if len(missing) == 1 else "jobs that do not exist"
    return BadInput(f"This job depends on {described}: {quoted}.", remedy, field="dependencies", missing=missing)
