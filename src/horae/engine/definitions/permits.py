"""Permissions to define something, checked wherever a definition is about to be written.

The acting principal is a context variable and not an argument, so that no code on the way to a definition can forget to
pass it on. The server's dispatcher sets it for every request. Outside of requests it is the server itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from msgspec import structs

from horae.errors import Forbidden
from horae.model.definitions.job import Job, Spec
from horae.model.definitions.tasks import CommandTask
from horae.model.tenancy.principal import LOCAL, Principal
from horae.model.workflows.decisions.naming import owner_of
from horae.model.workflows.reading.workflow import INSIDE

ACTOR: ContextVar[Principal] = ContextVar("horae_acting", default=LOCAL)

Change = tuple[Spec | None, Spec]  # before (None for a new job) and after


def check_changes(changes: Iterable[Change]) -> None:
    """Refuse definitions that the actor may not write."""
    actor = ACTOR.get()
    if actor.may("commands") and actor.may("sensitive") and not actor.scoped:
        return
    for before, after in changes:
        if isinstance(after.task, CommandTask) and not actor.may("commands") and not _is_same(before, after):
            raise commands_forbidden(actor, f'Job "{after.name}" runs a command')
        if before is not None and before.sensitive and not after.sensitive and not actor.may("sensitive"):
            raise Forbidden(
                f'Job "{after.name}" is sensitive, and this credential does not have the permission "sensitive".',
                "Without `sensitive`, everybody could read the params of its runs. Ask a user with the permission.",
            )
        if not actor.covers(owner_of(after.name), after.queue):
            raise outside_scope(actor, f'job "{after.name}" in queue "{after.queue}"')


def check_template(name: str, job: Any) -> None:
    """Refuse a template of commands, as far as this can be seen before the template is filled in."""
    actor = ACTOR.get()
    if not actor.may("commands") and _has_command(job):
        raise commands_forbidden(actor, f'Template "{name}" makes jobs that run a command')


def check_name(ref: str) -> None:
    """Refuse a job's name outside of the actor's scope before an answer reveals whether the job exists."""
    actor = ACTOR.get()
    if not _is_id(ref) and not actor.covers_name(owner_of(ref)):
        raise outside_job(actor, ref)


def check_job(job: Job, ref: str) -> None:
    """Refuse to run, or to depend on, a job outside of the actor's scope. The error reveals no more than `ref`."""
    actor = ACTOR.get()
    if not actor.covers(owner_of(job.name), job.spec.queue):
        raise outside_job(actor, ref)


def visible(names: Sequence[str]) -> list[str]:
    """Return those of the jobs' names that the actor may see: none if its scope has queues."""
    actor = ACTOR.get()
    return [name for name in names if not actor.queues and actor.covers_name(owner_of(name))]


def commands_forbidden(actor: Principal, subject: str) -> Forbidden:
    return Forbidden(
        f'{subject}, and this credential ("{actor.name}", {actor.role}) does not have the permission "commands".',
        "Commands can do everything that the account of the workers can do. Ask an administrator to define the job, or"
        " for a key with the permission: `horae keys create NAME --role editor --permission commands`.",
    )


def outside_scope(actor: Principal, subject: str) -> Forbidden:
    remedy = f"It is restricted to {scope_in_words(actor)}: use another credential."
    return Forbidden(f"This credential is not for {subject}.", remedy)


def outside_job(actor: Principal, ref: str) -> Forbidden:
    return outside_scope(actor, f'job "{ref[:128]}"')


def scope_in_words(actor: Principal) -> str:
    """Describe the scope of a credential."""
    jobs = f"jobs named {' or '.join(actor.jobs)}" if actor.jobs else "jobs"
    return (
        f"{jobs} in {'queue' if len(actor.queues) == 1 else 'queues'} {', '.join(actor.queues)}"
        if actor.queues
        else jobs
    )


def _is_id(ref: str) -> bool:
    try:
        return bool(UUID(ref))
    except ValueError:
        return False


def _is_same(before: Spec | None, after: Spec) -> bool:
    """Return whether only the triggers differ. A principal that may run a command may also change its triggers."""
    return before is not None and structs.replace(before, schedule=after.schedule, triggers=after.triggers) == after


def _has_command(job: Any) -> bool:
    return any(part.get("command") is not None for part in _parts(job))


def _parts(job: Any) -> Iterator[dict[str, Any]]:
    """Yield a definition and all definitions inside it, as far as they have the right form."""
    if isinstance(job, list):
        for part in job:
            yield from _parts(part)
    elif isinstance(job, dict):
        yield job
        for field in INSIDE:
            yield from _parts(job.get(field))
