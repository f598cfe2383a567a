"""Changes of jobs that belong to a workflow, as parts of the transaction that changes the workflow."""

from uuid import UUID

from horae.engine.definitions.owned_jobs import OwnedJobDraft, OwnedJobsPlan
from horae.env import Instant
from horae.errors import BadInput, Conflict
from horae.model.definitions.job import Job
from horae.model.workflows.decisions.naming import is_owned_name, owner_of
from horae.store.admission import lanes
from horae.store.definitions import job_reads, owned
from horae.store.definitions.owned import PlacedJob
from horae.store.script import Script


def is_current(plan: OwnedJobsPlan | None, job: UUID | None) -> Script[bool]:
    """Return whether the state from which a plan was made is unchanged.

    Call this with the lock of dependencies held, before anything is written.
    """
    copies = [] if job is None else (yield from owned.copies_of(job))
    if plan is None:
        return not copies
    copies = [copy for copy in copies if copy.owner not in plan.sibling_workflows]
    present_versions = yield from owned.states_of(plan.versions)
    for job_id, version in plan.versions.items():
        found = present_versions.get(job_id)
        if found is None or found[0] != version or found[1] == "deleted":
            return False
    present = yield from owned.of_owners(plan.owners)
    if {owned_job.id for owned_job in (*present, *copies)} != plan.existing:
        return False
    versions = {owned_job.id: owned_job.version for owned_job in present}
    return all(draft.before is None or versions.get(draft.id) == draft.before.version for draft in plan.drafts)


def write(plan: OwnedJobsPlan | None, job: UUID, namespace: int, now: Instant) -> Script[None]:
    """Write the owned jobs of a job that was just written. Raises BadInput when workflows would run each other."""
    if plan is None:
        return
    yield from owned.delete(plan.removed, now)
    places: dict[tuple[str, tuple[str, ...]], tuple[int, int]] = {}
    placed = []
    for draft in plan.drafts:
        if draft.before is not None and _is_same(draft):
            continue
        place_key = draft.spec.queue, draft.spec.lane_needs
        if place_key not in places:
            queue, lane = yield from lanes.ensure_lane(namespace, *place_key, "", now)
            places[place_key] = queue.id, lane.id
        placed.append(_placed(draft, job, *places[place_key]))
    yield from owned.put(placed, namespace, now)
    yield from owned.use({owner or job: used for owner, used in plan.uses}, plan.removed)
    circle = yield from owned.find_cycle(job)
    if circle:
        raise (yield from _in_a_circle(circle))


def _is_same(draft: OwnedJobDraft) -> bool:
    before = draft.before
    return before is not None and (before.name, before.version, before.base, before.own) == (
        draft.name, draft.version, draft.base, draft.own,
    )  # fmt: skip


def _placed(draft: OwnedJobDraft, job: UUID, queue: int, lane: int) -> PlacedJob:
    before = draft.before
    return PlacedJob(
        id=draft.id, owner=draft.owner or job, name=draft.name, version=draft.version, spec=draft.spec, base=draft.base,
        own=draft.own, queue=queue, lane=lane, fresh=before is None,
        written=before is not None and before.version == draft.version,
    )  # fmt: skip


def _in_a_circle(path: list[UUID]) -> Script[BadInput]:
    names = yield from job_reads.names_of(sorted(set(path)))
    circle = [names.get(job_id, str(job_id)).partition("/")[0] for job_id in path]
    short = [name for i, name in enumerate(circle) if i == 0 or name != circle[i - 1]]
    shown = " -> ".join(short if len(short) > 1 else [*short, *short])
    detail = f"These workflows run each other in an endless loop: {shown}."
    return BadInput(detail, "Let one of them run something else.", field="workflow.steps", path=short)


def delete(job: Job, now: Instant, *, force: bool) -> Script[None]:
    """Delete the owned jobs of a deleted job. Raises Conflict when workflows run that job, unless `force` is true."""
    if not force:
        users = yield from owned.users(job.id)
        if users:
            raise use_conflict(job.name, users)
    yield from owned.delete_all(job.id, now)


def restore(job: Job, now: Instant) -> Script[None]:
    """Restore the owned jobs of a restored job."""
    yield from owned.restore_all(job.id, now)


def use_conflict(name: str, users: list[str]) -> Conflict:
    shown = ", ".join(f'"{user}"' for user in users[:10]) + (f" and {len(users) - 10} more" if len(users) > 10 else "")
    remedy = f"Change these workflows first, or delete the job anyway: `horae jobs delete {name} --force`, ?force=true."
    return Conflict(f'Job "{name}" is run by workflows: {shown}.', remedy, workflows=users)


def refuse_part(job: Job) -> None:
    """Refuse to run a part of a workflow alone: it would skip the steps before it, such as an approval."""
    if is_owned_name(job.name):
        workflow = owner_of(job.name)
        remedy = f"Run the workflow: `horae jobs trigger {workflow}`; or rerun parts of it: `horae executions rerun`."
        detail = f'Job "{job.name}" is a part of workflow "{workflow}" and runs in it only.'
        raise Conflict(detail, remedy, workflow=workflow)


def refuse_owned(job: Job, verb: str = "changed") -> None:
    """Refuse to change a part of a workflow alone."""
    if "/" in job.name:
        workflow = job.name.partition("/")[0]
        remedy = f"Change the workflow: `horae jobs edit {workflow}` or PATCH /api/v1/jobs/{workflow}."
        detail = f'Job "{job.name}" is a part of workflow "{workflow}" and is only {verb} with it.'
        raise Conflict(detail, remedy, workflow=workflow)
