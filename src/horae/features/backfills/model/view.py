"""The API views of backfills."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from msgspec import Meta, Raw, field

from horae.env import Instant
from horae.features.backfills.model.plan import Outline
from horae.features.backfills.model.request import Order
from horae.features.backfills.model.values import Backfill, BackfillState
from horae.model.base.instant import format_instant
from horae.model.base.view import Time, View, shown_time


class BackfillPlan(View, frozen=True, kw_only=True):
    """The preview of a backfill."""

    job_id: UUID
    job_name: str
    trigger: str | None = None
    since: Time = field(name="from")
    until: Time = field(name="to")
    fires: Annotated[int, Meta(description="Nominal fires in the range.")]
    to_run: Annotated[int, Meta(description="Fires that would run.")]
    already_ran: Annotated[int, Meta(description="Fires that have an execution; they run again only with force.")]
    unknown: Annotated[
        int, Meta(description="Fires that are no longer in the ledger: they may have run, and run only with force.")
    ]
    before_trigger: Annotated[int, Meta(description="Fires from before their trigger was created.")]
    first_fire_at: Time | None = None
    last_fire_at: Time | None = None
    known_from: Annotated[Time, Meta(description="The time since which the ledger is complete.")] | None = None
    notes: list[str]


class BackfillView(View, frozen=True, kw_only=True):
    """A backfill and its progress."""

    backfill_id: UUID
    job_id: UUID
    job_name: str
    trigger: str | None = None
    since: Time = field(name="from")
    until: Time = field(name="to")
    order: Order
    force: bool
    max_concurrent: int
    priority: int | None = None
    params: Raw | None = None
    state: BackfillState
    progress: Annotated[float, Meta(description="The percentage of its fires that have ended or were skipped.")]
    fires: int
    already_ran: int
    unknown: int
    started: int
    live: int
    succeeded: int
    failed: int
    ended_otherwise: Annotated[
        int, Meta(description="Executions that were cancelled or skipped, or are no longer stored.")
    ]
    first_fire_at: Time | None = None
    last_fire_at: Time | None = None
    last_processed_fire_at: Annotated[Time, Meta(description="The last fire that it processed.")] | None = None
    known_from: Time | None = None
    notes: list[str]
    created_at: Time
    created_by: str | None = None
    completed_at: Time | None = None


class BackfillRunView(View, frozen=True, kw_only=True):
    """One fire that a backfill ran. `forced`: it had run before."""

    fire_at: Time
    trigger: str | None = None
    execution_id: UUID
    forced: bool
    outcome: str | None = None


def show_plan(backfill: Backfill, job_name: str, found: Outline, already: int, notes: Sequence[str]) -> BackfillPlan:
    """Return the view of a planned backfill."""
    return BackfillPlan(
        job_id=backfill.job, job_name=job_name, trigger=backfill.trigger, since=format_instant(backfill.since),
        until=format_instant(backfill.until), fires=found.total,
        to_run=count_to_run(backfill, found, already), already_ran=already,
        unknown=found.forgotten, before_trigger=found.before, first_fire_at=shown_time(found.first),
        last_fire_at=shown_time(found.last), known_from=_known(backfill.known_from), notes=list(notes),
    )  # fmt: skip


def count_to_run(backfill: Backfill, found: Outline, already: int) -> int:
    """Count the fires that a backfill would run; `already` is the number of fires that ran before."""
    return found.total if backfill.force else found.total - already - found.forgotten


def show_backfill(b: Backfill, job_name: str, notes: Sequence[str] = ()) -> BackfillView:
    """Return the view of a stored backfill."""
    c = b.counts
    over = c.already + c.unknown + c.succeeded + c.failed + c.ended
    return BackfillView(
        backfill_id=b.id, job_id=b.job, job_name=job_name, trigger=b.trigger, since=format_instant(b.since),
        until=format_instant(b.until), order="newest" if b.newest_first else "oldest", force=b.force,
        max_concurrent=b.max_concurrent, priority=b.priority,
        params=None if b.params is None else Raw(b.params.encode()),
        state=b.state, progress=100.0 if b.state == "done" or not c.total else round(100 * over / c.total, 1),
        fires=c.total, already_ran=c.already, unknown=c.unknown, started=c.started, live=c.live, succeeded=c.succeeded,
        failed=c.failed, ended_otherwise=c.ended, first_fire_at=shown_time(b.first_at),
        last_fire_at=shown_time(b.last_at), last_processed_fire_at=None if b.at is None else format_instant(b.at[0]),
        known_from=_known(b.known_from), notes=[*([b.note] if b.note else []), *notes],
        created_at=format_instant(b.created_at), created_by=b.created_by or None,
        completed_at=shown_time(b.completed_at),
    )  # fmt: skip


def _known(at: Instant) -> str | None:
    return format_instant(at) if at else None
