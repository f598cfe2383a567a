"""Objects of the kernel, for tests that need some of them without a server."""

from typing import Any
from uuid import UUID

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.counters import Counters
from horae.engine.base.hints import Hints
from horae.engine.definitions.directory import Directory
from horae.engine.definitions.job_deletions import Deletions
from horae.engine.definitions.jobs import Jobs
from horae.engine.executions.executions import Executions
from horae.engine.happenings import Happenings
from horae.engine.parts.base import Base
from horae.engine.settings import EngineSettings
from horae.engine.triggers.fire import Scheduler
from horae.env import Env
from horae.store.contract import Store


def base_of(store: Store, env: Env | None = None) -> Base:
    """Return the base that other objects are made from."""
    return Base(env or store.env, store, EngineSettings())


def executions_of(store: Store) -> Executions:
    """Return what reads and cancels executions."""
    return Executions(store.env, store, base_of(store).outcomes)


def deletions_of(store: Store, asked: list[UUID] | None = None) -> Deletions:
    """Return what ends the executions of deleted jobs; sessions that are asked to stop something go to `asked`."""
    base = base_of(store)
    if asked is not None:
        base.hints.listen(lambda hint: asked.extend(hint.sessions))
    return Deletions(store, base.outcomes)


def scheduler_of(store: Store, hints: Hints, clock: ClockWatch, settings: EngineSettings | None = None) -> Scheduler:
    """Return what fires triggers, with a directory of its own."""
    directory, happenings = Directory(store.env, store, hints), Happenings(store)
    return Scheduler(store.env, store, directory, hints, settings or EngineSettings(), clock, Counters(), happenings)


def jobs_of(store: Store, **choices: Any) -> Jobs:
    """Return what reads and writes jobs."""
    return Jobs(store.env, store, deletions=deletions_of(store), **choices)
