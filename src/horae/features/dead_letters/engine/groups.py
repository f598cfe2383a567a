"""Groups of dead letters: counts by job and error type, with their distribution over time."""

from msgspec import Struct

from horae.env import SECOND, Instant
from horae.features.dead_letters.model import DeadLetterGroup, DeadLetterGroups
from horae.features.dead_letters.store import reads as letter_reads
from horae.features.dead_letters.store.reads import FailedSlice
from horae.model.base.ids import execution_id
from horae.model.base.instant import format_instant
from horae.store.contract import Store
from horae.store.executions.reads import execution_reads as reads
from horae.store.executions.reads.execution_lists import ExecutionFilter, Place

MOST_GROUPED = 20_000  # the most slices of failed executions that are read for groups
MOST_COUNTED = 100_000  # the most slices of failed executions that are read for a count
MOST_GROUPS = 200  # the most groups that are returned
HISTOGRAM_SPANS = 24  # the number of spans of a histogram


class FailureGroup(Struct):
    """The dead letters of one job with one error type."""

    newest: FailedSlice
    count: int = 0
    ends: list[tuple[Instant, int]] = []  # instants of failures, each with the number of failures


async def gather(
    store: Store, namespace: int, wanted: ExecutionFilter, place: Place, most: int
) -> tuple[list[FailureGroup], bool]:
    """Group the dead letters that match a filter and precede a place, until `most` rows were read.

    Return the groups, the largest first, and whether all matching dead letters were read.
    """
    groups: dict[tuple[int, str], FailureGroup] = {}
    left, following = most, place
    while left > 0:
        before = following
        found, after, looked_at = await store.look_up(lambda: letter_reads.matching_slices(namespace, wanted, before))  # noqa: B023
        for one in found:
            key = one.job.int, one.error_type
            group = groups.get(key)
            if group is None:
                group = groups[key] = FailureGroup(one)
            group.count += one.count
            group.ends.append((one.completed_at, one.count))
        if after is None:
            return sorted(groups.values(), key=lambda group: -group.count), True
        following, left = after, left - looked_at
    return sorted(groups.values(), key=lambda group: -group.count), False


async def show(
    store: Store, namespace: int, groups: list[FailureGroup], mark: str | None, since: Instant | None, until: Instant
) -> DeadLetterGroups:
    """Return the API view of groups. Their window begins at `since`, or else with the oldest failure."""
    newest = [group.newest for group in groups]
    places = await store.read(lambda: letter_reads.newest_items(newest, mark))
    ids = [None if place is None else (namespace, execution_id(*place)) for place in places]
    found = await store.read(lambda: reads.by_ids([key for key in ids if key is not None]))
    begin = min((at for group in groups for at, _ in group.ends), default=until) if since is None else since
    items = [
        _group_view(group, found[key], begin, until)
        for group, key in zip(groups, ids, strict=True)
        if key in found  # a missing one was retried, discarded or deleted meanwhile
    ]
    return DeadLetterGroups(items=items, from_=format_instant(begin), to=format_instant(until), complete=True)


def _group_view(group: FailureGroup, newest: reads.FoundExecution, since: Instant, until: Instant) -> DeadLetterGroup:
    e = newest.execution
    return DeadLetterGroup(
        job_id=e.job,
        job_name=newest.job_name,
        error_type=group.newest.error_type,
        count=group.count,
        newest_id=e.id,
        newest_at=format_instant(e.completed_at or e.due_at),
        oldest_at=format_instant(min(at for at, _ in group.ends)),
        trend=histogram(group.ends, since, until),
        error_message=e.error.message if e.error else None,
    )


def histogram(ends: list[tuple[Instant, int]], since: Instant, until: Instant) -> list[int]:
    """Count the failures in each of HISTOGRAM_SPANS equal spans of a window.

    Failures before or after the window count in the first or the last span.
    """
    counts, length = [0] * HISTOGRAM_SPANS, max(SECOND, until - since)
    for at, count in ends:
        counts[max(0, min(HISTOGRAM_SPANS - 1, (at - since) * HISTOGRAM_SPANS // length))] += count
    return counts
