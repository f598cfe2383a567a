"""Changes of jobs as scripts.

Each script composes store operations in one transaction, and raises to roll all of them back.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal
from uuid import UUID

from msgspec import Struct, structs

from horae.engine.definitions import owned_changes
from horae.engine.definitions.owned_jobs import OwnedJobsPlan
from horae.env import Instant
from horae.errors import BadInput, Busy, Conflict
from horae.model.definitions.job import Job, Spec
from horae.model.triggers.decisions.decide import Disposition
from horae.model.triggers.decisions.named_trigger import SCHEDULE, NamedTrigger
from horae.model.triggers.decisions.values import Once
from horae.store.admission import lanes
from horae.store.base import locks
from horae.store.definitions import job_reads, job_templates, jobs
from horae.store.definitions.jobs import StoredJob
from horae.store.executions.leaving import cancel_job
from horae.store.script import Script
from horae.store.tenancy import namespaces
from horae.store.triggers import streaks, triggers
from horae.store.triggers.dependencies import dependents, waits
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.triggers.triggers import Owner

NewId = Callable[[], UUID]
FIRST_BATCH = 200  # slices that a deletion cancels in its own transaction
REMOVED = "the trigger was removed before this was decided"
DELETED = "the job was deleted"


class Adoption(Struct, frozen=True, kw_only=True):
    """A version that a rollout tried and that becomes the current one."""

    version: int
    end: Callable[[Instant], Script[object]]  # ends the rollout; returns None when it is no longer on


class JobDraft(Struct, frozen=True, kw_only=True):
    """A version to be written, with its triggers (`whens`)."""

    spec: Spec
    whens: Sequence[NamedTrigger] = ()
    owned_jobs: OwnedJobsPlan | None = None  # the jobs that it owns
    derived: tuple[UUID, int] | None = None  # the template and its version that it was derived from


def create(job_id: UUID, namespace: int, draft: JobDraft, new_id: NewId, now: Instant) -> Script[None]:
    """Write a new job and its triggers. Raises Conflict when the name is taken."""
    alone = draft.owned_jobs is None and draft.derived is None
    together = () if alone else (locks.of_dependencies(namespace),)  # guard: create-together
    names = (locks.of_job_name(namespace, draft.spec.name), *together, *_calendar_lock(namespace, draft.whens))
    yield from locks.take(*names, shared=locks.of_namespace(namespace))  # guard: create-locks-namespace
    yield from _refuse_closed(namespace)
    yield from _refuse_outdated(draft, None)
    queue, lane = yield from _place(namespace, draft.spec, now)
    taken = yield from jobs.add(job_id, namespace, draft.spec, queue, lane, now)
    if taken is not None:
        raise name_conflict(draft.spec.name, taken.id)
    yield from owned_changes.write(draft.owned_jobs, job_id, namespace, now)
    yield from job_templates.use(job_id, None, draft.spec.made)
    for when in draft.whens:
        yield from triggers.add(new_id(), Owner(job_id, namespace, 1), when, now)


def _refuse_closed(namespace: int) -> Script[None]:
    """Refuse to create a job in a namespace that was deleted meanwhile or is being erased. Raises Conflict."""
    if not (yield from namespaces.is_open(namespace)):  # guard: create-in-open-namespace
        raise Conflict("The namespace is being deleted, or no longer exists.", "Use another namespace.")


def _refuse_outdated(draft: JobDraft, job: UUID | None) -> Script[None]:
    """Refuse a draft if what it was made from was changed meanwhile. Raises Busy."""
    if not (yield from owned_changes.is_current(draft.owned_jobs, job)):  # guard: create-of-what-is-true
        raise Busy("A job that this workflow runs was changed meanwhile.")
    if not (yield from _is_current(draft)):
        raise Busy("The template was changed meanwhile.")


def _is_current(draft: JobDraft) -> Script[bool]:
    """Return whether the template of a draft still has the version that the draft was derived from."""
    if draft.derived is None:
        return True
    template, version = draft.derived
    return (yield from job_templates.present(template)) == version  # guard: edit-of-current-template


def edit(
    before: StoredJob,
    draft: JobDraft,
    new_id: NewId,
    now: Instant,
    *,
    revive: bool = False,
    consequences: Consequences | None = None,
    adopt: Adoption | None = None,
) -> Script[bool]:
    """Write the next version of a job; return False when the job changed since the draft was made.

    With `revive`, the draft is an earlier definition: triggers at a single instant that has passed do not fire again.
    `consequences` receives the executions that started because the change completed their joins. Raises Conflict while
    a rollout is on, unless the change ends the rollout by adopting one of its versions.
    """
    job = before.job
    name = locks.of_job_name(job.namespace, draft.spec.name)  # guard: edit-locks-name
    named = _calendar_lock(job.namespace, draft.whens)
    together = [locks.of_dependencies(job.namespace)]  # guard: edit-together
    yield from locks.take(name, *named, *together)
    if (yield from jobs.lock(job.id, job.namespace)) != (job.version, job.state):
        return False
    if (
        not (yield from owned_changes.is_current(draft.owned_jobs, job.id))  # guard: edit-of-what-is-true
        or not (yield from _is_current(draft))
    ):
        return False
    version, written = yield from _numbered(job, adopt, now)
    if not version:
        return False
    yield from job_templates.use(job.id, job.spec.made, draft.spec.made)
    queue, lane = before.queue, before.lane
    if (draft.spec.queue, draft.spec.lane_needs) != (job.spec.queue, job.spec.lane_needs):
        queue, lane = yield from _place(job.namespace, draft.spec, now)
    verdict = yield from jobs.edit(job.id, job.namespace, version, draft.spec, queue, lane, now, written=written)
    if verdict is not None:
        raise name_conflict(draft.spec.name, verdict.id)
    yield from owned_changes.write(draft.owned_jobs, job.id, job.namespace, now)
    owner = Owner(job.id, job.namespace, version, job.state == "paused")
    yield from _retime(owner, draft.whens, defined_as_paused(job.spec), new_id, now, revive=revive)
    if adopt is not None:
        yield from dependents.lock_around({job.id})
    yield from _depend(job, draft.spec, new_id, now, Consequences() if consequences is None else consequences)
    return True


def _numbered(job: Job, adopt: Adoption | None, now: Instant) -> Script[tuple[int, bool]]:
    """Return the next version number of a locked job, and whether that version is already written.

    Return 0 when the rollout from which a version should be adopted is no longer on.
    """
    newest = yield from jobs.newest(job.id)
    if adopt is None:
        if (yield from jobs.active_rollout(job.id)) is not None:  # guard: edit-sees-rollout
            raise rollout_conflict(job)
        return newest + 1, False
    if (yield from adopt.end(now)) is None:
        return 0, False
    return (newest, True) if adopt.version == newest else (newest + 1, False)


def rollout_conflict(job: Job) -> Conflict:
    remedy = (
        f"Promote or abort it first: `horae jobs rollout promote {job.name}` or `horae jobs rollout abort {job.name}`."
    )
    return Conflict(f'A rollout of job "{job.name}" is on: the definition cannot be changed until it ends.', remedy)


def _depend(job: Job, spec: Spec, new_id: NewId, now: Instant, consequences: Consequences) -> Script[None]:
    """Change a job's dependencies, then start executions that need not wait any longer.

    Call this after the job's timers were changed, because a fire takes the locks in the same order.
    """
    if spec.conditions_by_job != job.spec.conditions_by_job:
        cycle = yield from jobs.set_dependencies(job.id, spec)
        if cycle is not None:
            raise (yield from _cycle(cycle.path))
    elif not spec.dependencies or (spec.schedule, spec.triggers) == (job.spec.schedule, job.spec.triggers):
        return
    yield from waits.reconsider(job.id, new_id, now, consequences, edited=True)  # guard: edit-reconsiders-waits


def _place(namespace: int, spec: Spec, now: Instant) -> Script[tuple[int, int]]:
    """Return the queue and the lane of a job's executions. Create them in this transaction if they are new."""
    queue, lane = yield from lanes.ensure_lane(namespace, spec.queue, spec.lane_needs, "", now)
    return queue.id, lane.id


def _retime(
    owner: Owner,
    whens: Sequence[NamedTrigger],
    was_paused: Mapping[str, bool],
    new_id: NewId,
    now: Instant,
    *,
    revive: bool,
) -> Script[None]:
    """Replace a job's triggers with these. A trigger with the same name is changed, or left alone if it is equal.

    `was_paused` says which of the old triggers were defined as paused. A trigger is paused or resumed only if the new
    definition of `paused` differs from the old one, because users also pause triggers by hand.
    """
    old = {timer.name: timer for timer in (yield from triggers.of_job(owner.job, lock=True))}
    for name in old.keys() - {when.name for when in whens}:
        asleep = owner.paused or old[name].state == "paused"
        yield from triggers.end(old[name], now, "skipped-paused" if asleep else "skipped-misfire", REMOVED)
    for when in whens:
        timer = old.get(when.name)
        if timer is None:
            if not _is_spent(when, old.values(), now, revive):
                yield from triggers.add(new_id(), owner, when, now)
            continue
        state = timer.state
        if was_paused.get(when.name, False) != when.paused:
            state = "paused" if when.paused else "active"
        if not when.is_like(timer.when):
            yield from triggers.replace(timer, new_id(), owner, when, state, now)
        else:
            yield from triggers.set_state(timer, state, owner, now)


def defined_as_paused(spec: Spec) -> dict[str, bool]:
    """Return the names of a job's triggers, with whether each is defined as paused."""
    own = {SCHEDULE: spec.schedule} if isinstance(spec.schedule, dict) else {}
    named = own | {trigger["name"]: trigger for trigger in spec.triggers}
    return {name: bool(trigger.get("paused")) for name, trigger in named.items()}


def _is_spent(when: NamedTrigger, old: Iterable[triggers.Timer], now: Instant, revive: bool) -> bool:
    """Return whether a trigger for a single instant must not fire any more.

    The instant was decided before, or it has passed and the definition is restored from an earlier one (`revive`).
    """
    if not isinstance(when.trigger, Once) or when.trigger.at > now:
        return False
    return revive or any(timer.trigger == when.trigger and timer.decided_through >= when.trigger.at for timer in old)


def pause(before: StoredJob, now: Instant) -> Script[bool]:
    """Pause a job and its triggers; return False when the job changed meanwhile.

    Queued executions need no change, because claims leave out those of paused jobs.
    """
    job = before.job
    if (yield from jobs.lock(job.id, job.namespace)) != (job.version, "active"):
        return False
    yield from jobs.set_state(job.id, "paused", now)
    for timer in (yield from triggers.of_job(job.id, lock=True)):
        yield from triggers.pause(timer)
    return True


def resume(before: StoredJob, now: Instant) -> Script[bool]:
    """Resume a job and its triggers; return False when the job changed meanwhile.

    One ledger row for each trigger covers the fires that the pause skipped.
    """
    job = before.job
    if (yield from jobs.lock(job.id, job.namespace)) != (job.version, "paused"):
        return False
    yield from jobs.set_state(job.id, "active", now)
    for timer in (yield from triggers.of_job(job.id, lock=True)):
        yield from triggers.resume(timer, now)
    yield from streaks.resume(job.id, job.namespace, job.version, now)
    return True


def switch(before: StoredJob, name: str, state: Literal["active", "paused"]) -> Callable[[Instant], Script[bool]]:
    """Return a script that pauses or resumes one trigger of a job.

    It returns False when the trigger is gone or the job has changed meanwhile.
    """

    def script(now: Instant) -> Script[bool]:
        job = before.job
        if (yield from jobs.lock(job.id, job.namespace)) != (job.version, job.state):
            return False
        owner = Owner(job.id, job.namespace, job.version, job.state == "paused")
        for timer in (yield from triggers.of_job(job.id, lock=True)):
            if timer.name == name:
                yield from triggers.set_state(timer, state, owner, now)
                if state == "active":
                    yield from streaks.reset(job.id, now)
                return True
        return False

    return script


def delete(
    before: StoredJob,
    new_id: NewId,
    now: Instant,
    ending: cancel_job.Ending | None,
    consequences: Consequences | None = None,
    *,
    force: bool = False,
) -> Script[int | None]:
    """End a job's triggers, free its name, and cancel the first batches of its executions.

    `ending` says which executions end: `pending` ones that have not begun, `running` ones, or `all`. It is recorded, so
    that later transactions end the remaining ones. Return the number of cancelled executions, or None when the job has
    changed meanwhile. `consequences` receives the executions that started because these ended. Raises Conflict when
    workflows run the job, unless `force` is true.
    """
    job = before.job
    yield from locks.take(locks.of_dependencies(job.namespace))  # guard: delete-together
    if (yield from jobs.lock(job.id, job.namespace)) != (job.version, job.state):
        return None
    yield from owned_changes.delete(job, now, force=force)
    yield from jobs.delete(job.id, ending, now)
    for timer in (yield from triggers.of_job(job.id, lock=True)):
        asleep = "paused" in (job.state, timer.state)
        disposition: Disposition = "skipped-paused" if asleep else "skipped-misfire"
        yield from triggers.end(timer, now, disposition, DELETED)
    # Executions that its upstream jobs start are stored before this lock is taken, or never.
    yield from dependents.lock_around({job.id})  # guard: delete-locks-dependent
    cancelled = 0
    if ending in ("pending", "all"):
        for shelf in cancel_job.OF_JOB:
            begin = cancel_job.START
            first = cancel_job.cancel_pending(shelf, job.id, new_id, begin, FIRST_BATCH, DELETED, now, consequences)
            cancelled += (yield from first).items
    if ending == "pending" and not (yield from cancel_job.is_pending(job.id)):  # guard: delete-sees-pending
        yield from cancel_job.settle_deletion(job.id, ending)
    return cancelled


def restore(
    before: StoredJob,
    whens: Sequence[NamedTrigger],
    draft: JobDraft,
    new_id: NewId,
    now: Instant,
    consequences: Consequences | None = None,
) -> Script[str | None]:
    """Undo a deletion. Return the state that the job is in again; None when it is not deleted.

    `whens` are the triggers of the stored definition. `draft` is this definition, resolved anew: if it differs, because
    the job's template was changed meanwhile, it becomes the next version. Raises Conflict when the name has been taken
    meanwhile.
    """
    job = before.job
    uses_calendars = _calendar_lock(job.namespace, (*whens, *draft.whens))
    names = (locks.of_job_name(job.namespace, job.name), locks.of_dependencies(job.namespace), *uses_calendars)
    yield from locks.take(*names, shared=locks.of_namespace(job.namespace))
    yield from _refuse_closed(job.namespace)
    if (yield from jobs.lock(job.id, job.namespace)) != (job.version, "deleted"):
        return None
    taken = yield from jobs.name_taken(job.namespace, job.name, job.id)
    if taken is not None:
        raise name_conflict(job.name, taken)
    yield from owned_changes.restore(job, now)
    state = yield from jobs.restore(job.id, now)
    owner = Owner(job.id, job.namespace, job.version, state == "paused")
    ended = yield from triggers.ended(job.id)
    for when in whens:
        if not _is_spent(when, (), now, revive=True):
            yield from triggers.add(new_id(), owner, when, now, ended.get(when.name))
    yield from _refuse_outdated(draft, job.id)
    if draft.spec == job.spec:
        yield from owned_changes.write(draft.owned_jobs, job.id, job.namespace, now)
    else:
        restored = structs.replace(before, job=structs.replace(job, state=state))
        yield from edit(restored, draft, new_id, now, revive=True, consequences=consequences)
    return state


def name_conflict(name: str, holder: UUID) -> Conflict:
    remedy = f"Choose another name, or change that job: `horae jobs edit {name}` or PATCH /api/v1/jobs/{holder}."
    return Conflict(f'A job named "{name}" exists.', remedy, jobId=str(holder), field="name")


def lock_all(namespace: int, names: Iterable[str]) -> Script[None]:
    """Take all locks that later changes of these jobs, of templates and of calendars take one by one."""
    own = sorted({locks.of_job_name(namespace, name) for name in names})
    every = (*own, locks.of_dependencies(namespace), locks.of_calendars(namespace))
    yield from locks.take(*every, shared=locks.of_namespace(namespace))


def _calendar_lock(namespace: int, whens: Sequence[NamedTrigger]) -> tuple[str, ...]:
    """Return the lock that keeps calendars from being deleted, if one of these triggers refers to a calendar."""
    named = any(when.rules.calendars for when in whens)
    return (locks.of_calendars(namespace),) if named else ()  # guard: job-locks-calendars


def _cycle(path: Sequence[UUID]) -> Script[BadInput]:
    names = yield from job_reads.names_of(sorted(set(path)))
    circle = " -> ".join(names.get(job_id, str(job_id)) for job_id in path)
    return BadInput(
        f"These dependencies form a circle: {circle}.",
        "Remove one of them.",
        field="dependencies",
        path=[names.get(job_id, str(job_id)) for job_id in path],
    )
