"""Definitions of jobs that name a template: the template, filled in with the job's values."""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any
from uuid import UUID

from horae.engine.base.refs import in_quotes, nearest
from horae.engine.definitions.job_changes import JobDraft
from horae.engine.definitions.job_drafts import Derivation, Derive
from horae.engine.definitions.jobs import Jobs
from horae.engine.definitions.owned_jobs import NO_SIBLINGS, SiblingChanges
from horae.errors import BadInput, Forbidden, HoraeError
from horae.features.templates.model.values import JobTemplate, read_use
from horae.features.templates.store import templates
from horae.model.definitions.job import Spec
from horae.model.workflows.decisions.naming import calls_of
from horae.model.workflows.decisions.values import Workflow
from horae.store.contract import Store
from horae.store.definitions.jobs import StoredJob

MOST_NAMES = 1000
Drafts = dict[UUID, JobDraft | HoraeError]  # by job: the draft, or the error if the job can no longer be made


async def derive(store: Store, namespace: int, body: dict[str, Any]) -> tuple[dict[str, Any], Derivation]:
    """Return the complete definition of a job that names a template. Raises BadInput."""
    name, _, _ = read_use(body)
    found = await store.read(lambda: templates.named(namespace, name))
    if found is None:
        raise await _missing(store, namespace, name)
    return await derivation_from(found)(namespace, body)


def derivation_from(template: JobTemplate) -> Derive:
    """Return a function that makes definitions from this template, even if another template has its name by now."""

    async def derive(namespace: int, body: dict[str, Any]) -> tuple[dict[str, Any], Derivation]:
        return _filled(template, body)

    return derive


def _filled(template: JobTemplate, body: dict[str, Any]) -> tuple[dict[str, Any], Derivation]:
    _, values, own = read_use(body)
    if not isinstance(own.get("name"), str):
        raise BadInput("A job needs a name.", 'Add "name": "backup-eu".', field="name")
    whole, made = template.derive(own["name"], values, {k: v for k, v in own.items() if k != "name"})
    return whole, Derivation(made, template.id, template.version)


async def _missing(store: Store, namespace: int, name: str) -> BadInput:
    known = await store.read(lambda: templates.page(namespace, "", MOST_NAMES))
    near = nearest(name, [template.name for template in known])
    remedy = f"Did you mean {in_quotes(near)}?" if near else "List templates with `horae templates list`."
    return BadInput(f'There is no template named "{name}".', remedy, field="template")


async def draft_all(jobs: Jobs, after: JobTemplate, users: Sequence[StoredJob]) -> Drafts:
    """Draft all jobs of the changed template `after`.

    If a changed workflow runs other changed jobs, all jobs are drafted again in the order of their dependencies, so
    that the workflow is checked against the new definitions of the jobs that it runs.
    """
    drafts = {user.job.id: await _drafted(jobs, user, after, NO_SIBLINGS) for user in users}
    known = {user.job.id: user for user in users}
    changed = {
        job_id: draft.spec
        for job_id, draft in drafts.items()
        if isinstance(draft, JobDraft) and draft.spec != known[job_id].job.spec
    }
    workflows = frozenset(job_id for job_id, spec in changed.items() if isinstance(spec.task, Workflow))
    if not any(changed.keys() & _runs(changed[job_id]) for job_id in workflows):
        return drafts
    new_specs: dict[UUID, Spec] = {}
    for job_id in dependencies_first(drafts):
        draft = drafts[job_id] = await _drafted(
            jobs, known[job_id], after, SiblingChanges(new_specs, workflows - {job_id})
        )
        if isinstance(draft, JobDraft):
            new_specs[job_id] = draft.spec
    return drafts


def dependencies_first(drafts: Drafts) -> list[UUID]:
    """Order jobs so that the jobs that a workflow runs come before it."""
    runs = {job_id: _runs(draft.spec) if isinstance(draft, JobDraft) else set() for job_id, draft in drafts.items()}
    try:
        used = {job_id: sorted(runs[job_id] & runs.keys()) for job_id in sorted(runs)}
        return list(TopologicalSorter(used).static_order())
    except CycleError:  # the order does not matter, because the transaction refuses cycles
        return sorted(drafts)


async def _drafted(jobs: Jobs, user: StoredJob, after: JobTemplate, beside: SiblingChanges) -> JobDraft | HoraeError:
    try:
        return await jobs.redraft(user, derivation_from(after), beside)
    except Forbidden:
        raise
    except HoraeError as error:
        return error


def _runs(spec: Spec) -> set[UUID]:
    """Return the jobs that the steps of a workflow name."""
    calls = calls_of(spec.task) if isinstance(spec.task, Workflow) else ()
    return {UUID(call.job) for _, call in calls if call.job}
