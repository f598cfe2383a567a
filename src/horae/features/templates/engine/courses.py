"""The new definitions of everything made from a template when it changes: jobs, and workflows that run some of them."""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from uuid import UUID

from horae.engine.definitions.job_changes import JobDraft
from horae.engine.definitions.jobs import Jobs
from horae.engine.definitions.owned_jobs import ALONE, SiblingChanges
from horae.errors import Forbidden, HoraeError
from horae.features.templates.engine.drafts import by
from horae.features.templates.model.values import JobTemplate
from horae.model.definitions.job import Spec
from horae.model.workflows.decisions.naming import calls_of
from horae.model.workflows.decisions.values import Workflow
from horae.store.definitions.jobs import StoredJob

Drafts = dict[UUID, JobDraft | HoraeError]  # by job: the draft, or the error if the job can no longer be made


async def drafts_together(jobs: Jobs, after: JobTemplate, users: Sequence[StoredJob]) -> Drafts:
    """Draft all jobs of a template. A workflow is drafted with the new definitions of jobs that its steps run."""
    drafts = {user.job.id: await _drafted(jobs, user, after, ALONE) for user in users}
    known = {user.job.id: user for user in users}
    changed = {id: d.spec for id, d in drafts.items() if isinstance(d, JobDraft) and d.spec != known[id].job.spec}
    workflows = frozenset(id for id, spec in changed.items() if isinstance(spec.task, Workflow))
    if not any(changed.keys() & _runs(changed[id]) for id in workflows):
        return drafts
    coming: dict[UUID, Spec] = {}
    for job_id in used_first(drafts):
        draft = drafts[job_id] = await _drafted(
            jobs, known[job_id], after, SiblingChanges(coming, workflows - {job_id})
        )
        if isinstance(draft, JobDraft):
            coming[job_id] = draft.spec
    return drafts


def used_first(drafts: Drafts) -> list[UUID]:
    """Order jobs so that the jobs run by a workflow come before the workflow."""
    runs = {job_id: _runs(draft.spec) if isinstance(draft, JobDraft) else set() for job_id, draft in drafts.items()}
    try:
        return list(TopologicalSorter({id: sorted(runs[id] & runs.keys()) for id in sorted(runs)}).static_order())
    except CycleError:  # the write refuses cycles
        return sorted(drafts)


async def _drafted(jobs: Jobs, user: StoredJob, after: JobTemplate, beside: SiblingChanges) -> JobDraft | HoraeError:
    try:
        return await jobs.redraft(user, by(after), beside)
    except Forbidden:
        raise
    except HoraeError as error:
        return error


def _runs(spec: Spec) -> set[UUID]:
    """Return the jobs that the steps of a workflow name."""
    calls = calls_of(spec.task) if isinstance(spec.task, Workflow) else ()
    return {UUID(call.job) for _, call in calls if call.job}
