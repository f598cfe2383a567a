"""Triggers and their fires as the API shows them."""

from typing import Any
from uuid import UUID

from horae.model.base.view import Time, View


class TriggerView(View, frozen=True, kw_only=True):
    """One of a job's triggers: its definition and its current state.

    `state` is active, paused or ended. A trigger does not fire while its job is paused (`jobState`). `definition` is
    in the format of PATCH, `text` describes it in words. `nextFireAt` is when the trigger fires next, including the
    fixed delay from `spread`.
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
    problem: str | None = None
    valid_from: Time
    version: int


class FireView(View, frozen=True, kw_only=True):
    """A nominal fire and its outcome, or `planned` if it is in the future.

    A row of the ledger may cover several consecutive fires with the same outcome: then `at` is the first of them,
    `until` the last, and `count` their number. `dueAt` is when a planned fire starts, including spread and jitter.
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
    """Fires in the order of time: decided fires first, then planned ones.

    `complete` is false if something is left out; `notes` explain what.
    """

    items: list[FireView]
    next_cursor: str | None = None
    complete: bool = True
    notes: list[str] = []


class FireCountView(View, frozen=True, kw_only=True):
    """An hour or a day: the outcome of its fires, the results of its executions, and the number of planned fires.

    Consecutive fires with the same outcome count once, at the last of them. `more` is true when there may be more
    planned fires than were counted. `success` and `failed` count all executions that ended in that hour or day,
    whatever started them.
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
    """Fires by hour or day of a time zone; `complete` is false if something is left out, and `notes` explain what."""

    timezone: str
    by: str
    items: list[FireCountView]
    complete: bool = True
    notes: list[str] = []


class UpcomingFireView(View, frozen=True, kw_only=True):
    """A future fire: its instant, the local time, and a note, for example about a clock change before it."""

    at: Time
    local: str
    note: str = ""


class PreviewView(View, frozen=True, kw_only=True):
    """The next fires of a trigger: their instants (`fires`), and their local times with notes (`details`).

    `text` describes the trigger in words.
    """

    fires: list[Time]
    text: str
    timezone: str
    details: list[UpcomingFireView]
    notes: list[str] = []
