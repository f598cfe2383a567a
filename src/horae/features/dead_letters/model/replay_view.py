"""The API view of replays."""

from collections.abc import Mapping
from typing import Annotated
from uuid import UUID

from msgspec import Meta, Raw

from horae.features.dead_letters.model.replay import Replay, ReplayState
from horae.model.base.view import Time, View, shown_time


class DeadLetterFilterView(View, frozen=True, kw_only=True):
    """The filter of a replay."""

    job: str | None = None
    queue: str | None = None
    error_type: str | None = None
    reason: str | None = None
    text: str | None = None
    since: Time | None = None
    until: Time | None = None


class ReplayView(View, frozen=True, kw_only=True):
    """A replay of dead letters and its progress."""

    replay_id: UUID
    state: ReplayState
    filter: DeadLetterFilterView
    rate: str | None = None
    params: Annotated[Raw, Meta(description="The merge patch of the params of all dead letters.")] | None = None
    total: (
        Annotated[
            int,
            Meta(description="How many dead letters matched when the replay was created; null if too many to count."),
        ]
        | None
    ) = None
    matched: Annotated[int, Meta(description="How many dead letters were processed so far.")]
    retried: int
    skipped: Annotated[int, Meta(description="How many were processed but not retried; `note` has a reason.")]
    note: str
    next_at: Time | None = None
    created_by: str
    created_at: Time
    completed_at: Time | None = None


def show_replay(r: Replay, names: Mapping[UUID, str]) -> ReplayView:
    """Return the view of a replay; `names` are the names of jobs."""
    letters = r.letters
    return ReplayView(
        replay_id=r.id, state=r.state, rate=None if r.rate is None else str(r.rate),
        filter=DeadLetterFilterView(
            job=None if letters.job is None else names.get(letters.job, str(letters.job)), queue=letters.queue,
            error_type=letters.error_type, reason=letters.reason, text=letters.text, since=shown_time(letters.since),
            until=shown_time(letters.until),
        ),
        params=None if r.params is None else Raw(r.params.encode()), total=r.total, matched=r.matched,
        retried=r.retried, skipped=r.skipped, note=r.note,
        next_at=shown_time(r.next_at) if r.state == "running" else None, created_by=r.created_by,
        created_at=shown_time(r.created_at) or "", completed_at=shown_time(r.completed_at),
    )  # fmt: skip
