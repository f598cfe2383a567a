"""What goes with a workflow: the jobs that its steps name, and those that it keeps for steps that say more.

Everything is read and derived here, before the transaction that writes it; that one looks again under its lock
(`owned_changes`), and the change is drafted anew if something was changed meanwhile.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from msgspec import Struct, structs

from horae.engine.base.refs import as_id, in_quotes, nearest
from horae.engine.definitions.permits import check_job, check_name, visible
from horae.engine.definitions.step_params import check_params
from horae.errors import BadInput
from horae.model.definitions.job import Spec
from horae.model.definitions.reading.owned import derive, with_calls
from horae.model.expressions.meter import DEFINITION_STEPS, Meter, shared
from horae.model.workflows.decisions.naming import calls_of, owned_name
from horae.model.workflows.decisions.values import Call, Step, Workflow
from horae.model.workflows.reading.steps import of_step
from horae.model.workflows.reading.workflow import inside, placed
from horae.store.contract import Store
from horae.store.definitions import job_reads, owned
from horae.store.definitions.jobs import StoredJob
from horae.store.definitions.owned import OwnedJob

MOST_OWNED = 1_000  # jobs that go with one change
NewId = Callable[[], UUID]


class OwnedJobDraft(Struct, frozen=True, kw_only=True):
    """A job to be kept for a step."""

    id: UUID
    owner: UUID | None  # None: the job that is being written
    name: str
    version: int
    spec: Spec
    base: UUID | None
    own: dict[str, Any]
    before: OwnedJob | None  # as it is now


class OwnedJobsPlan(Struct, frozen=True, kw_only=True):
    """What a change of a job means for jobs that go with it, and what must still be true when it is written."""

    kept: tuple[OwnedJobDraft, ...] = ()
    uses: tuple[tuple[UUID | None, frozenset[UUID]], ...] = ()  # which jobs run which; None: the one being written
    gone: frozenset[UUID] = frozenset()  # jobs that no step needs any more
    seen: Mapping[UUID, int] = {}  # the versions of jobs that this was made from
    owners: frozenset[UUID] = frozenset()  # workflows whose jobs were looked at
    known: frozenset[UUID] = frozenset()  # the jobs that these keep, and those that were made from the one written
    beside: frozenset[UUID] = frozenset()  # workflows that the same change writes: what they keep is theirs to derive


class SiblingChanges(Struct, frozen=True):
    """What else one change writes: jobs as they will be, and those of them that are workflows."""

    specs: Mapping[UUID, Spec] = {}
    workflows: frozenset[UUID] = frozenset()


ALONE = SiblingChanges()


class OwnedJobPlanner:
    """Works out what goes with a job. Nothing is written here."""

    def __init__(self, store: Store, new_id: NewId) -> None:
        self._store, self._new_id = store, new_id

    async def keep(
        self, namespace: int, spec: Spec, before: StoredJob | None, beside: SiblingChanges = ALONE
    ) -> tuple[Spec, OwnedJobsPlan | None]:
        """A spec whose steps know the ids of their jobs, and what goes with it; None when nothing does."""
        copies = [copy for copy in await self._copies(before) if copy.owner not in beside.workflows]
        if spec.sensitive and before is not None:
            for workflow in await self._store.read(lambda: owned.users(before.job.id)):
                _refuse_sensitive(spec, workflow)
        is_workflow = isinstance(spec.task, Workflow)
        was_workflow = before is not None and isinstance(before.job.spec.task, Workflow)
        if not is_workflow and not was_workflow and not copies:
            return spec, OwnedJobsPlan(beside=beside.workflows) if beside.workflows else None
        owners = {copy.owner for copy in copies} | ({before.job.id} if before else set())
        existing = await self._store.read(lambda: owned.of_owners(owners))
        changing = None if before is None else before.job.id
        draft = _Draft(self._store, namespace, self._new_id, existing, copies, changing, beside)
        if is_workflow:
            spec = await draft.resolve(spec.name, spec, None)
        elif was_workflow:
            draft.uses.append((None, frozenset()))
        await draft.follow(spec, copies)
        return spec, draft.keeping(frozenset(owners))

    async def _copies(self, before: StoredJob | None) -> list[OwnedJob]:
        if before is None:
            return []
        return await self._store.read(lambda: owned.copies_of(before.job.id))


def _refuse_sensitive(spec: Spec, workflow: str = "") -> None:
    """What a step is given and returns is read by the workflow's expressions, in the store."""
    if spec.sensitive:
        remedy = "Leave `sensitive` out of the job, or submit it from a step that is a function."
        which = f'the workflow "{workflow}" runs it' if workflow else "a workflow cannot run it"
        raise BadInput(f'Job "{spec.name}" is sensitive, and {which}.', remedy, field="sensitive")


class _Draft:
    """One change as it is worked out."""

    def __init__(
        self,
        store: Store,
        namespace: int,
        new_id: NewId,
        existing: Sequence[OwnedJob],
        copies: Sequence[OwnedJob],
        changing: UUID | None,
        beside: SiblingChanges,
    ) -> None:
        self._store, self._namespace, self._new_id, self._changing = store, namespace, new_id, changing
        self._beside = beside
        self._existing = {(one.owner, _inside(one.name)): one for one in existing}
        self._known = frozenset(one.id for one in (*existing, *copies))
        self._kept: list[OwnedJobDraft] = []
        self.uses: list[tuple[UUID | None, frozenset[UUID]]] = []
        self._seen: dict[UUID, int] = {}

    async def resolve(self, path: str, spec: Spec, owner: UUID | None, id: UUID | None = None) -> Spec:
        """A workflow whose steps know the ids of what they run; `id` is its own, if it is kept by `owner`."""
        workflow = spec.task
        assert isinstance(workflow, Workflow)
        calls = dict(calls_of(workflow))
        steps = {step.name: (place, step) for place, step in placed(workflow)}
        jobs = await self._named(calls, steps)
        stored: dict[str, dict[str, Any]] = {}
        used = {job.job.id for job in jobs.values()}
        meter = Meter(DEFINITION_STEPS)
        for name, call in calls.items():
            base = jobs.get(call.job)
            place, step = steps[name.partition(":")[0]]
            with of_step(step.name, f"{place}.undo" if ":" in name else place):
                mine = await self._keep(owned_name(path, name), call, base, spec.queue, owner)
                runs = mine.spec if mine is not None else base.job.spec if base is not None else None
                if runs is not None:
                    with shared(meter):
                        check_params(call, runs, each=isinstance(call, Step) and call.foreach is not None)
            stored[name] = {"job": "" if base is None else str(base.job.id), **_of_owned(mine, call)}
            if mine is not None and isinstance(mine.spec.task, Workflow):
                used.add(mine.id)
        self.uses.append((id, frozenset(used)))
        return structs.replace(spec, task=with_calls(workflow, lambda name, call: stored[name]))

    async def follow(self, spec: Spec, copies: Sequence[OwnedJob]) -> None:
        """Derive anew what was made from the job that changes."""
        for copy in copies:
            call = Call(job="-", own=copy.own)
            try:
                await self._keep(copy.name, call, None, spec.queue, copy.owner, changed=spec)
            except BadInput as error:
                workflow, _, step = copy.name.partition("/")
                error.detail = f'Workflow "{workflow}" runs it with changes, which do not fit any more: {error.detail}'
                error.fields["field"] = "name"
                error.fields.setdefault("step", step)
                raise

    async def _keep(
        self,
        name: str,
        call: Call,
        base: StoredJob | None,
        queue: str,
        owner: UUID | None,
        *,
        changed: Spec | None = None,
    ) -> OwnedJobDraft | None:
        """The job that is kept for a step, if it says more than which job it runs."""
        if not call.own:
            return None
        if len(self._kept) >= MOST_OWNED:
            detail = f"More than {MOST_OWNED} jobs would have to be kept for the steps of this workflow."
            raise BadInput(detail, "Let some steps name jobs of their own.", field="workflow.steps")
        before = self._existing.get((owner or self._changing, _inside(name)))  # type: ignore[arg-type]
        id = self._new_id() if before is None else before.id
        spec = derive(name, call, changed if base is None else base.job.spec, queue)
        if isinstance(spec.task, Workflow):
            with inside(call):
                spec = await self.resolve(name, spec, owner, id)
        _refuse_sensitive(spec)
        version = 1 if before is None else before.version + (before.spec != spec)
        made_from = base.job.id if base is not None else before.base if before is not None and changed else None
        kept = OwnedJobDraft(
            id=id, owner=owner, name=name, version=version, spec=spec, base=made_from, own=dict(call.own), before=before
        )
        self._kept.append(kept)
        return kept

    async def _named(self, calls: Mapping[str, Call], steps: Mapping[str, tuple[str, Step]]) -> dict[str, StoredJob]:
        """The jobs that steps name, by what they call them. Raises BadInput."""
        refs = {call.job for call in calls.values() if call.job}
        for ref in refs:
            check_name(ref)
        found = {ref: job for ref in sorted(refs) if (job := await self._find(ref)) is not None}
        for name, call in calls.items():
            if call.job and call.job not in found:
                place, step = steps[name.partition(":")[0]]
                with of_step(step.name, f"{place}.undo" if ":" in name else place):
                    raise await self._missing(call.job)
        for ref, job in found.items():
            check_job(job.job, ref)
            _refuse_sensitive(job.job.spec)
        self._seen |= {job.job.id: job.job.version for job in found.values()}
        return found

    async def _find(self, ref: str) -> StoredJob | None:
        id = as_id(ref)
        stored = await (self._store.job(id, self._namespace) if id else self._store.job_named(self._namespace, ref))
        if stored is None or stored.job.state == "deleted":
            return None
        spec = self._beside.specs.get(stored.job.id, stored.job.spec)
        return structs.replace(stored, job=structs.replace(stored.job, spec=spec))

    async def _missing(self, ref: str) -> BadInput:
        near = nearest(ref, visible(await self._store.read(lambda: job_reads.names(self._namespace))))
        remedy = f"Did you mean {in_quotes(near)}? " if near else ""
        shown = ref[:60]
        remedy += f'Create it first: POST /api/v1/jobs {{"name": "{shown}", "command": "..."}}, or say here what runs.'
        return BadInput(f'It runs job "{ref[:128]}", which does not exist.', remedy, field="job", missing=[ref])

    def keeping(self, owners: frozenset[UUID]) -> OwnedJobsPlan:
        kept = {one.id for one in self._kept}
        gone = {
            one.id
            for (owner, inside), one in self._existing.items()
            if one.id not in kept and self._is_replaced(owner, inside)
        }
        return OwnedJobsPlan(
            kept=tuple(self._kept),
            uses=tuple(self.uses),
            gone=frozenset(gone),
            seen=self._seen,
            owners=owners,
            known=self._known,
            beside=self._beside.workflows,
        )

    def _is_replaced(self, owner: UUID, inside: str) -> bool:
        """Whether all that a workflow keeps, or all below one of its steps, was derived anew."""
        if owner == self._changing:
            return True
        return any(one.owner == owner and inside.startswith(f"{_inside(one.name)}/") for one in self._kept)


def _inside(name: str) -> str:
    """Where in its workflow a job belongs: stays when the workflow is renamed."""
    return name.partition("/")[2]


def _of_owned(mine: OwnedJobDraft | None, call: Call) -> dict[str, Any]:
    """How a step names the job that is kept for it; only what is defined in the workflow alone goes by its version."""
    if mine is None:
        return {"owned": "", "version": 0}
    return {"owned": str(mine.id), "version": mine.version if call.inline else 0}
