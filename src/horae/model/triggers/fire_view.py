"""Triggers and their fires as the API shows them."""

from typing import Any
from uuid import UUID

from horae.model.base.view import Time, View


class TriggerView(View, frozen=True, kw_only=True):
    """One of a job's triggers: what it says, and how it stands.

    `state` is active, paused or ended; a trigger of a paused job does not fire either. `definition` is as
    PATCH takes it, `text` says it in words. `nextFireAt` is when it is due next, its place in the `spread` included.
    """

    job_id: UUID
    job: str
    job_state: str
    name: str
    kind: str
    state: str
    text: str
    definition: dict[str, Any]
    next_fire_at: Time | None = None
    fired: int = 0
    last_execution_id: UUID | None = None
    trouble: str | None = None
    valid_from: Time
    version: int


class FireView(View, frozen=True, kw_only=True):
    """A nominal fire and what became of it, or `planned` when it is to come.

    A row of the ledger may stand for a run of fires that met one fate: then `until` is the last of them and `count` how
    many they are. `dueAt` tells when a planned one starts, spread and jitter included.
    """

    at: Time
    until: Time | None = None
    count: int = 1
    due_at: Time | None = None
    job_id: UUID
    job: str
    trigger: str
    disposition: str
    cause: str
    execution_id: UUID | None = None
    decided_at: Time | None = None


class FirePage(View, frozen=True, kw_only=True):
    """Fires in the order of time: those that were decided, then those to come.

    `complete` is false when something had to be left out; `notes` say what.
    """

    items: list[FireView]
    next_cursor: str | None = None
    complete: bool = True
    notes: list[str] = []


class FireCountView(View, frozen=True, kw_only=True):
    """An hour or a day: what became of the fires in it, how its executions ended, and how many fires are to come.

    A run of fires that met one fate counts once, where its last one stands. `more` is true when more may be to come
    than were counted. `success` and `failed` are of all executions that ended then, whatever started them.
    """

    at: Time
    until: Time
    fired: int = 0
    missed: int = 0
    skipped: int = 0
    success: int = 0
    failed: int = 0
    planned: int = 0
    more: bool = False


class FireCountsView(View, frozen=True, kw_only=True):
    """Fires by the hour or the day of a time zone; `complete` is false when something is left out, `notes` say what."""

    timezone: str
    by: str
    items: list[FireCountView]
    complete: bool = True
    notes: list[str] = []


class ComingView(View, frozen=True, kw_only=True):
    """A fire to come: its instant, the local time, and what is special about it, as a clock change before it."""

    at: Time
    local: str
    note: str = ""


class PreviewView(View, frozen=True, kw_only=True):
    """When a trigger fires: the instants, the same with local times, and the trigger in words."""

    fires: list[Time]
    text: str
    timezone: str
    details: list[ComingView]
    notes: list[str] = []
