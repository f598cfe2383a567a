"""Objects of the kernel, for tests that need some of them without a server."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.counters import Counters
from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.announcer import Announcer, FireDue, already_fired
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.definitions.document_applier import NoTemplates
from horae.engine.definitions.job_deletions import JobDeletions
from horae.engine.definitions.jobs import Jobs
from horae.engine.executions.executions import Executions
from horae.engine.parts.base import BasePart
from horae.engine.settings import EngineSettings
from horae.engine.topics import Topics
from horae.engine.triggers.calendars import Calendars
from horae.engine.triggers.dependencies import Dependencies
from horae.engine.triggers.scheduler import Scheduler
from horae.engine.triggers.triggers import Triggers
from horae.env import Env
from horae.model.admission.queue import DEFAULT_QUEUE
from horae.model.definitions.job import Spec
from horae.store.contract import Store
from horae.store.executions.promote import Ranker


def base_of(store: Store, env: Env | None = None) -> BasePart:
    """Return the base that other objects are made from."""
    return BasePart(env or store.env, store, EngineSettings(), ())


def executions_of(store: Store, base: BasePart | None = None) -> Executions:
    """Return an object that reads and cancels executions."""
    base = base or base_of(store)
    waits = Dependencies(store, base.directory, base.hints).describe_waits
    return Executions(
        store.env, store, base.outcomes, retention=base.settings.retention, waits=waits,
        held=lambda namespace, queue, name: None, traced=False,
    )  # fmt: skip


def deletions_of(store: Store, asked: list[UUID] | None = None) -> JobDeletions:
    """Return an object that ends the executions of deleted jobs.

    Sessions with requests to stop are added to `asked`.
    """
    base = base_of(store)
    if asked is not None:
        base.hints.listen(lambda hint: asked.extend(hint.sessions))
    return JobDeletions(store, base.outcomes)


def scheduler_of(store: Store, hints: Hints, clock: ClockWatch, settings: EngineSettings | None = None) -> Scheduler:
    """Return a scheduler with its own directory."""
    directory, topics = LocalDirectory(store.env, store, hints), Topics(store)
    return Scheduler(store.env, store, directory, hints, settings or EngineSettings(), clock, Counters(), topics)


def announcer_of(store: Store, listen: Callable[[Hint], object] | None = None) -> Announcer:
    """Return an object that announces changed definitions; `listen` receives its hints."""
    base = base_of(store)
    if listen is not None:
        base.hints.listen(listen)
    return Announcer(store.env, base.directory, base.hints, base.outcomes)


def jobs_of(store: Store, listen: Callable[[Hint], object] | None = None, *, rank: Ranker, **choices: Any) -> Jobs:
    """Return an object that reads and writes jobs, without a scheduler, holds and workers."""
    alone: dict[str, Any] = {
        "fire_due": already_fired,
        "check_place": lambda place, field: None,
        "held": lambda namespace, queue: None,
        "default_queue": lambda namespace: DEFAULT_QUEUE,
        "warn": nothing_odd,
        "derive": NoTemplates().derive,
    }
    announcer, deletions = announcer_of(store, listen), deletions_of(store)
    return Jobs(store.env, store, announcer=announcer, deletions=deletions, rank=rank, **{**alone, **choices})


async def nothing_odd(namespace: int, spec: Spec) -> None:
    """Return no warning."""


def triggers_of(store: Store, jobs: Jobs) -> Triggers:
    """Return an object that reads and writes triggers."""
    return Triggers(store.env, store, jobs, announcer_of(store), already_fired, base_of(store).fair_access.compute)


def calendars_of(
    store: Store, listen: Callable[[Hint], object] | None = None, fire_due: FireDue = already_fired
) -> Calendars:
    """Return an object that reads and writes calendars."""
    return Calendars(store.env, store, announcer_of(store, listen), fire_due)
