"""The jobs of a workflow: jobs that its steps name, and jobs that it owns for steps with options of their own.

All jobs are read and derived here, before the transaction that writes them. That transaction checks under its lock
that nothing was changed meanwhile (`owned_changes`); otherwise the change is drafted anew.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from msgspec import Struct, structs

from horae.engine.base.refs import as_id, in_quotes, nearest
from horae.engine.definitions.params import check_params
from horae.engine.definitions.permits import check_job, check_name, visible
from horae.errors import BadInput
from horae.model.definitions.job import Spec
from horae.model.definitions.reading.owned import derive, with_calls
from horae.model.expressions.meter import DEFINITION_STEPS, Meter, shared_budget
from horae.model.workflows.decisions.naming import calls_of, owned_name
from horae.model.workflows.decisions.values import Call, Workflow, WorkflowStep
from horae.model.workflows.reading.steps import of_step
from horae.model.workflows.reading.workflow import inside, placed
from horae.store.contract import Store
from horae.store.definitions import job_reads, owned
from horae.store.definitions.jobs import StoredJob
from horae.store.definitions.owned import OwnedJob

MOST_OWNED = 1_000  # owned jobs of a workflow
NewId = Callable[[], UUID]


class OwnedJobDraft(Struct, frozen=True, kw_only=True):
    """A job that a workflow will own for a step."""

    id: UUID
    owner: UUID | None  # None: the job that is being written
    name: str
    version: int
    spec: Spec
    base: UUID | None
    own: dict[str, Any]
    before: OwnedJob | None  # the present version


class OwnedJobsPlan(Struct, frozen=True, kw_only=True):
    """The changes of owned jobs that a job's change causes, and the state in which they may be written."""

    drafts: tuple[OwnedJobDraft, ...] = ()
    uses: tuple[tuple[UUID | None, frozenset[UUID]], ...] = ()  # job -> jobs that it runs; None: the job being written
    removed: frozenset[UUID] = frozenset()  # owned jobs that no step needs any more
    versions: Mapping[UUID, int] = {}  # the versions of jobs from which the plan was made
    owners: frozenset[UUID] = frozenset()  # workflows whose owned jobs were read
    existing: frozenset[UUID] = frozenset()  # the owned jobs of `owners`, and all jobs derived from the written job
    sibling_workflows: frozenset[UUID] = frozenset()  # workflows in the same change, which derive their own jobs


class SiblingChanges(Struct, frozen=True):
    """Other jobs that the same change writes, with their new specs; `workflows` are the workflows among them."""

    specs: Mapping[UUID, Spec] = {}
    workflows: frozenset[UUID] = frozenset()


NO_SIBLINGS = SiblingChanges()


class OwnedJobPlanner:
    """Plans the owned jobs of a change. Nothing is written here."""

    def __init__(self, store: Store, new_id: NewId) -> None:
        self._store, self._new_id = store, new_id

    async def plan(
        self, namespace: int, spec: Spec, before: StoredJob | None, beside: SiblingChanges = NO_SIBLINGS
    ) -> tuple[Spec, OwnedJobsPlan | None]:
        """Return a spec whose steps refer to jobs by id, and the plan of its owned jobs, or None if it has none."""
        copies = [copy for copy in await self._copies(before) if copy.owner not in beside.workflows]
        if spec.sensitive and before is not None:
            for workflow in await self._store.read(lambda: owned.users(before.job.id)):
                _refuse_sensitive(spec, workflow)
        is_workflow = isinstance(spec.task, Workflow)
        was_workflow = before is not None and isinstance(before.job.spec.task, Workflow)
        if not is_workflow and not was_workflow and not copies:
            return spec, OwnedJobsPlan(sibling_workflows=beside.workflows) if beside.workflows else None
        owners = {copy.owner for copy in copies} | ({before.job.id} if before else set())
        existing = await self._store.read(lambda: owned.of_owners(owners))
        changing = None if before is None else before.job.id
        draft = _Draft(self._store, namespace, self._new_id, existing, copies, changing, beside)
        if is_workflow:
            spec = await draft.resolve(spec.name, spec, None)
        elif was_workflow:
            draft.uses.append((None, frozenset()))
        await draft.follow(spec, copies)
        return spec, draft.to_plan(frozenset(owners))

    async def _copies(self, before: StoredJob | None) -> list[OwnedJob]:
        if before is None:
            return []
        return await self._store.read(lambda: owned.copies_of(before.job.id))


def _refuse_sensitive(spec: Spec, workflow: str = "") -> None:
    """Refuse sensitive jobs as steps: expressions of the workflow read the steps' stored params and results."""
    if spec.sensitive:
        remedy = "Remove `sensitive` from the job, or submit the job from a step that is a function."
        reason = f'the workflow "{workflow}" runs it' if workflow else "a workflow cannot run it"
        raise BadInput(f'Job "{spec.name}" is sensitive, and {reason}.', remedy, field="sensitive")


class _Draft:
    """A change that is being planned."""

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
        self._existing = {(owned_job.owner, _inside(owned_job.name)): owned_job for owned_job in existing}
        self._known = frozenset(owned_job.id for owned_job in (*existing, *copies))
        self._kept: list[OwnedJobDraft] = []
        self._owned: Counter[UUID | None] = Counter()  # owned jobs by workflow
        self.uses: list[tuple[UUID | None, frozenset[UUID]]] = []
        self._seen: dict[UUID, int] = {}

    async def resolve(self, path: str, spec: Spec, owner: UUID | None, owned_id: UUID | None = None) -> Spec:
        """Return a workflow whose steps refer to jobs by id.

        If the workflow is itself an owned job, `owner` is the workflow that owns it (None for the job being written),
        and `owned_id` is its id.
        """
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
                own_job = await self._keep(owned_name(path, name), call, base, spec.queue, owner)
                runs = own_job.spec if own_job is not None else base.job.spec if base is not None else None
                if runs is not None:
                    with shared_budget(meter):
                        check_params(call, runs, each=isinstance(call, WorkflowStep) and call.foreach is not None)
            stored[name] = {"job": "" if base is None else str(base.job.id), **_of_owned(own_job, call)}
            if own_job is not None and isinstance(own_job.spec.task, Workflow):
                used.add(own_job.id)
        self.uses.append((owned_id, frozenset(used)))
        return structs.replace(spec, task=with_calls(workflow, lambda name, call: stored[name]))

    async def follow(self, spec: Spec, copies: Sequence[OwnedJob]) -> None:
        """Derive anew the jobs that were made from the changing job."""
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
        """Return the owned job of a step, or None if the step has no options of its own."""
        if not call.own:
            return None
        self._owned[owner] += 1
        if self._owned[owner] > MOST_OWNED:
            detail = f"More than {MOST_OWNED} jobs would have to be stored for the steps of this workflow."
            raise BadInput(detail, "Let some steps name existing jobs instead.", field="workflow.steps")
        before = self._existing.get((owner or self._changing, _inside(name)))  # type: ignore[arg-type]
        job_id = self._new_id() if before is None else before.id
        spec = derive(name, call, changed if base is None else base.job.spec, queue)
        if isinstance(spec.task, Workflow):
            with inside(call):
                spec = await self.resolve(name, spec, owner, job_id)
        _refuse_sensitive(spec)
        version = 1 if before is None else before.version + (before.spec != spec)
        made_from = base.job.id if base is not None else before.base if before is not None and changed else None
        draft = OwnedJobDraft(
            id=job_id,
            owner=owner,
            name=name,
            version=version,
            spec=spec,
            base=made_from,
            own=dict(call.own),
            before=before,
        )
        self._kept.append(draft)
        return draft

    async def _named(
        self, calls: Mapping[str, Call], steps: Mapping[str, tuple[str, WorkflowStep]]
    ) -> dict[str, StoredJob]:
        """Return the jobs that steps name, by their reference. Raises BadInput."""
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
        job_id = as_id(ref)
        stored = await (
            self._store.job(job_id, self._namespace) if job_id else self._store.job_named(self._namespace, ref)
        )
        if stored is None or stored.job.state == "deleted":
            return None
        spec = self._beside.specs.get(stored.job.id, stored.job.spec)
        return structs.replace(stored, job=structs.replace(stored.job, spec=spec))

    async def _missing(self, ref: str) -> BadInput:
        job_id = as_id(ref)
        stored = await self._store.job(job_id, self._namespace) if job_id else None
        if stored is not None:
            check_job(stored.job, ref)
            remedy = f"Bring it back first: `horae jobs restore {job_id}`; or let the step run another job."
            return BadInput(f'It runs job "{stored.job.name}", which is deleted.', remedy, field="job", missing=[ref])
        near = nearest(ref, visible(await self._store.read(lambda: job_reads.names(self._namespace))))
        remedy = f"Did you mean {in_quotes(near)}? " if near else ""
        shown = ref[:60]
        remedy += (
            f'Create it first: POST /api/v1/jobs {{"name": "{shown}", "command": "..."}}; or define it in the step.'
        )
        return BadInput(f'It runs job "{ref[:128]}", which does not exist.', remedy, field="job", missing=[ref])

    def to_plan(self, owners: frozenset[UUID]) -> OwnedJobsPlan:
        """Return the plan."""
        kept = {owned_job.id for owned_job in self._kept}
        gone = {
            owned_job.id
            for (owner, inside), owned_job in self._existing.items()
            if owned_job.id not in kept and self._is_replaced(owner, inside)
        }
        return OwnedJobsPlan(
            drafts=tuple(self._kept),
            uses=tuple(self.uses),
            removed=frozenset(gone),
            versions=self._seen,
            owners=owners,
            existing=self._known,
            sibling_workflows=self._beside.workflows,
        )

    def _is_replaced(self, owner: UUID, inside: str) -> bool:
        """Return whether all owned jobs of a workflow, or all below one of its steps, were derived anew."""
        if owner == self._changing:
            return True
        return any(draft.owner == owner and inside.startswith(f"{_inside(draft.name)}/") for draft in self._kept)


def _inside(name: str) -> str:
    """Return the part of an owned job's name after the workflow's name: renaming the workflow does not change it."""
    return name.partition("/")[2]


def _of_owned(own_job: OwnedJobDraft | None, call: Call) -> dict[str, Any]:
    """Return a step's reference to its owned job.

    The version is fixed only if the step itself defines the job.
    """
    if own_job is None:
        return {"owned": "", "version": 0}
    return {"owned": str(own_job.id), "version": own_job.version if call.inline else 0}
