"""Dead letters that failed alike: counted by job and error."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from horae.env import Instant
from horae.model.dead_letter_view import DeadLetterGroup
from horae.model.instant import format_instant
from horae.store.moves.execution_lists import Chosen
from horae.store.moves.execution_reads import Found


def grouped(chosen: Iterable[Chosen]) -> list[list[Chosen]]:
    """By job and error type, largest first; members newest first."""
    groups: dict[tuple[UUID, str], list[Chosen]] = {}
    for slice, item in chosen:
        groups.setdefault((slice.job, slice.error_type), []).append((slice, item))
    return sorted(groups.values(), key=len, reverse=True)


def told(members: Sequence[Chosen], newest: Found) -> DeadLetterGroup:
    """A group as the API tells it; the newest of its members speaks for it."""
    e = newest.execution
    at: Instant = e.completed_at or e.due_at
    return DeadLetterGroup(
        job_id=e.job,
        job_name=newest.job_name,
        error_type=members[0][0].error_type,
        count=len(members),
        newest_id=e.id,
        newest_at=format_instant(at),
        error_message=e.error.message if e.error else None,
    )
