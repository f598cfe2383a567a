"""Scripts that define, drain and purge queues, and that give queued executions new ranks after a change of policy."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct, structs

from horae.env import Instant
from horae.model.admission.limits import NO_LIMIT
from horae.model.admission.placement.preempt import is_in_front, to_front
from horae.model.admission.policy import PRIORITY, FairPolicy
from horae.model.admission.queue import Queue, QueueSpec, QueueState
from horae.model.admission.rank import RankLeads
from horae.model.admission.share_key import share_or_unnamed, shares_of
from horae.model.definitions.job import Spec
from horae.model.executions.execution import READS_AS_RUNNING
from horae.model.executions.parcel import Parcel, extras_of
from horae.model.executions.slice import QueuedSlice, part
from horae.store.admission import coarse, lanes
from horae.store.admission.share_lanes import lanes_of
from horae.store.base import shelves
from horae.store.executions.leaving.cancel_job import START, cancel_slices
from horae.store.executions.leaving.cancel_job import Place as Walked
from horae.store.executions.parcels import read_parcels
from horae.store.script import Fetch, ForEach, Lock, Row, Rows, Script, Statement
from horae.store.triggers.dependencies.starts import Consequences, NewId

# A new revision with the same policy: executions that are ranked by the old revision are ranked by the new one, too.
_NEXT = "ranked = CASE WHEN ranked = revision THEN revision + 1 ELSE ranked END, revision = revision + 1"
SAVE = Statement(
    "save_queue",
    "UPDATE queues SET policy = $3, spec = $4, is_default = $5, revision = revision + 1"
    " WHERE namespace = $1 AND name = $2",
)
NO_DEFAULT = Statement(
    "no_default_queue",
    f"UPDATE queues SET is_default = false, {_NEXT} WHERE namespace = $1 AND is_default",
)
SET_STATE = Statement("set_queue_state", f"UPDATE queues SET state = $2, {_NEXT} WHERE id = $1")
RANKED = Statement("queue_ranked", "UPDATE queues SET ranked = $2 WHERE id = $1 AND ranked < $2")
LANES = Statement("lanes_of_queue", "SELECT id FROM lanes WHERE queue = $1 ORDER BY id")
# In the order of the present ranks. A slice that gets a later rank is read a second time, which does not change it.
UNRANKED = Statement(
    "queued_of_lane",
    f"SELECT {shelves.names(shelves.QUEUED, 'q.')}, p.due_at, p.priority, p.deadline, v.spec, v.lane FROM queued q"
    " JOIN parcels p ON p.id = q.parcel JOIN job_versions v ON v.job = p.job AND v.version = p.version"
    " WHERE q.lane = $1 AND (q.rank, q.parcel, q.lo) > ($2, $3, $4)"
    " ORDER BY q.lane, q.rank, q.parcel, q.lo LIMIT $5 FOR UPDATE OF q SKIP LOCKED",
)
RERANK = Statement(
    "rerank_queued",
    "UPDATE queued SET rank = given.rank, lane = given.lane FROM given"
    " WHERE queued.parcel = given.parcel AND queued.lo = given.lo",
)
# A server that still has a deleted lane in its cache may put slices into it: `rerank` with `astray` moves them.
FORGET = Statement(
    "forget_lanes_of_shares",
    "DELETE FROM lanes WHERE share <> '' AND used_at < $1"
    " AND NOT EXISTS (SELECT 1 FROM queued q WHERE q.lane = lanes.id)"
    " AND NOT EXISTS (SELECT 1 FROM running r WHERE r.lane = lanes.id) RETURNING id",
)
PURGED = Statement(
    "purge_queued",
    f"SELECT {shelves.names(shelves.QUEUED)} FROM queued WHERE lane = $1 ORDER BY lane, rank, parcel, lo LIMIT $2"
    " FOR UPDATE SKIP LOCKED",
)
_BEGUN = ", ".join(f"'{reason}'" for reason in sorted(READS_AS_RUNNING))
PURGED_WAITING = Statement(
    "purge_waiting",
    f"SELECT {shelves.names(shelves.WAITING)} FROM waiting WHERE queue = $1 AND (parcel, lo) > ($2, $3)"
    f" AND reason NOT IN ({_BEGUN}) ORDER BY parcel, lo LIMIT $4 FOR UPDATE SKIP LOCKED",
)

MAX_ITEMS = 10_000  # items whose params one transaction reads to compute their shares
MAX_BYTES = 4 * 1024 * 1024  # size of these params, estimated by the largest item of each slice
QueuePosition = tuple[int, UUID, int]  # rank, parcel, lo
FIRST: QueuePosition = (-(1 << 62), UUID(int=0), -1)


class RerankStep(Struct, frozen=True):
    """The result of one call of `rerank`."""

    lanes: dict[int, int]  # lanes of the slices, each with their least new rank
    next: QueuePosition | None  # the `after` of the next call; None at the end of the lane


class PurgeStep(Struct, frozen=True):
    """The result of one batch of a purge."""

    jobs: dict[UUID, int]  # the number of cancelled executions by job
    next: Walked | None  # where the next batch begins; None at the end


def define(
    namespace: int, name: str, change: Callable[[Queue | None], tuple[QueueSpec, bool | None]], now: Instant
) -> Script[Queue]:
    """Create or change a queue.

    `change` is called while the queues of the namespace are locked. It receives the queue, or None if it does not
    exist, and returns the new definition and whether the queue is the default (None: unchanged). A new default queue
    replaces the old one.
    """
    yield Lock((f"queues:{namespace}",))
    rows = yield Fetch(lanes.QUEUE, (namespace, name))
    before = lanes.read_queue(rows[0]) if rows else None
    spec, default = change(before)
    is_default = before is not None and before.is_default if default is None else default
    policy = msgspec.json.encode(spec.policy).decode()
    if before is None:
        yield Fetch(lanes.ADD_QUEUE, (namespace, name, policy, now))
    if is_default and not (before is not None and before.is_default):
        yield Fetch(NO_DEFAULT, (namespace,))
    rest = msgspec.json.encode(structs.replace(spec, policy=PRIORITY)).decode()
    yield Fetch(SAVE, (namespace, name, policy, rest, is_default))
    after = lanes.read_queue((yield Fetch(lanes.QUEUE, (namespace, name)))[0])
    if spec.limit != (NO_LIMIT if before is None else before.spec.limit):
        yield from coarse.put(spec.limit, queue=after.id)
    if before is None or (before.policy == after.policy and before.ranked == before.revision):
        yield Fetch(RANKED, (after.id, after.revision))
        return structs.replace(after, ranked=after.revision)
    return after


def set_state(queue: int, state: QueueState) -> Script[None]:
    """Set the state of a queue: whether it accepts submissions or is drained."""
    yield Fetch(SET_STATE, (queue, state))


def set_ranked(queue: int, revision: int) -> Script[None]:
    """Record that queued executions are ranked by this revision's policy."""
    yield Fetch(RANKED, (queue, revision))


def forget_lanes(before: Instant) -> Script[int]:
    """Delete empty lanes of shares that were not used since an instant, and return their number."""
    return len((yield Fetch(FORGET, (before,))))


def lanes_of_queue(queue: int) -> Script[list[int]]:
    """Return the lanes of a queue."""
    return [row[0] for row in (yield Fetch(LANES, (queue,)))]


def rerank(
    lane: int, lead: RankLeads, after: QueuePosition, limit: int, now: Instant, *, astray: bool = False
) -> Script[RerankStep]:
    """Rank a batch of a lane's slices by the current policy of the queue, and move them to the lanes of their shares.

    Slices that another transaction has locked are left out, because a claim takes them. With `astray`, the lane was
    deleted, and its slices move to the lanes of their jobs.
    """
    found = yield Fetch(UNRANKED, (lane, *after, limit))
    if not found:
        return RerankStep({}, None)
    rows, policy = found, lead.policy(found[0][4])
    parcels: dict[UUID, Parcel] = {}
    if isinstance(policy, FairPolicy) and policy.by != "job":
        rows = _soon_read(found)
        parcels = {parcel.id: parcel for parcel in (yield from read_parcels(sorted({row[0] for row in rows})))}
    wanted = [
        (queued, (row[-1] if astray else lane, share))
        for row in rows
        for queued, share in _by_share(row, lead, parcels)
    ]
    places = yield from lanes_of({place for _, place in wanted}, now)
    moved = [structs.replace(queued, lane=places[place]) for queued, place in wanted]
    yield from _put_back([shelves.queued(row) for row in rows], moved)
    last = shelves.queued(rows[-1])
    least_ranks: dict[int, int] = {}
    for queued in moved:
        least_ranks[queued.lane] = min(queued.rank, least_ranks.get(queued.lane, queued.rank))
    has_more = len(rows) < len(found) or len(found) == limit
    return RerankStep(least_ranks, (last.rank, last.parcel, last.lo) if has_more else None)


def _soon_read(rows: Rows) -> Rows:
    """Return as many of the first slices as have few enough params to be read in a few milliseconds.

    The reason for this bound: the transaction has locked the slices, and others may wait for it.
    """
    items = size = 0
    for at, row in enumerate(rows):
        count = row[2] - row[1]
        items, size = items + count, size + count * row[_WIDTH]
        if at and (items > MAX_ITEMS or size > MAX_BYTES):
            return rows[:at]
    return rows


_COLUMNS = len(shelves.QUEUED)
_WIDTH = [name for name, _ in shelves.QUEUED].index("width")
_read_spec = lru_cache(maxsize=64)(msgspec.json.Decoder(Spec).decode)


def _by_share(row: Row, lead: RankLeads, parcels: dict[UUID, Parcel]) -> Iterator[tuple[QueuedSlice, str]]:
    """Yield a slice with its new rank, divided into parts whose items have the same share.

    A slice that preemption has moved to the front stays in front.
    """
    queued = shelves.queued(row)
    due_at, priority, deadline, spec = row[_COLUMNS : _COLUMNS + 4]
    rank = lead.rank(queued.queue, due_at, priority, deadline, queued.job)
    queued = structs.replace(queued, rank=to_front(rank) if is_in_front(queued.rank) else rank)
    policy = lead.policy(queued.queue)
    if not isinstance(policy, FairPolicy):
        yield queued, ""
        return
    shares = _shares_in(queued, policy, _read_spec(spec), parcels.get(queued.parcel))
    if shares.count(shares[0]) == len(shares):
        yield queued, shares[0]
        return
    lo = queued.lo
    for item in range(queued.lo + 1, queued.hi + 1):
        if item == queued.hi or shares[item - queued.lo] != shares[lo - queued.lo]:
            yield part(queued, lo, item), shares[lo - queued.lo]
            lo = item


def _shares_in(queued: QueuedSlice, policy: FairPolicy, spec: Spec, parcel: Parcel | None) -> Sequence[str]:
    """Return the share of each item of a slice; it is empty for an item whose share cannot be computed."""
    if parcel is None:
        return [spec.name] * (queued.hi - queued.lo)
    extras = extras_of(parcel.extras, queued.lo, queued.hi)
    if policy.by == "caller":
        return [extra.caller for extra in extras]
    items, tags = parcel.items.part(queued.lo, queued.hi), extras[0].tags
    if all(extra.tags == tags for extra in extras):
        return shares_of(policy, spec, items, tags, "")[0]
    return [share_or_unnamed(policy, spec, item, extra.tags) for item, extra in zip(items, extras, strict=True)]


def _put_back(before: Sequence[QueuedSlice], after: Sequence[QueuedSlice]) -> Script[None]:
    """Write slices with their new ranks and lanes: update those that were not divided, replace the others."""
    whole = {(s.parcel, s.lo, s.hi) for s in before}
    same = [s for s in after if (s.parcel, s.lo, s.hi) in whole]
    kept = {(s.parcel, s.lo) for s in same}
    columns: shelves.Columns = (*shelves.SPAN, ("rank", "bigint"), ("lane", "int"))
    if same:
        yield ForEach(RERANK, columns, [(s.parcel, s.lo, s.rank, s.lane) for s in same])
    split = [s for s in before if (s.parcel, s.lo) not in kept]
    if split:
        yield shelves.take("queued", split)
        yield shelves.put_queued([s for s in after if (s.parcel, s.lo, s.hi) not in whole])


def purge_lane(
    lane: int, new_id: NewId, limit: int, reason: str, now: Instant, consequences: Consequences | None = None
) -> Script[PurgeStep]:
    """Cancel a batch of a lane's queued executions; `consequences` collects the consequences.

    Executions that another transaction has locked are left out, because a claim takes them.
    """
    slices = [shelves.queued(row) for row in (yield Fetch(PURGED, (lane, limit)))]
    if slices:
        yield from cancel_slices(slices, new_id, reason, now, consequences)
    return PurgeStep(_counted(slices), START if len(slices) == limit else None)


def purge_waiting(
    queue: int,
    new_id: NewId,
    after: Walked,
    limit: int,
    reason: str,
    now: Instant,
    consequences: Consequences | None = None,
) -> Script[PurgeStep]:
    """Cancel a batch of executions that wait to be queued: for their due time, for a retry or at a gate.

    Suspended executions and workflows are not cancelled, because they have begun.
    """
    slices = [shelves.waiting(row) for row in (yield Fetch(PURGED_WAITING, (queue, *after, limit)))]
    if slices:
        yield from cancel_slices(slices, new_id, reason, now, consequences)
    more = len(slices) == limit
    return PurgeStep(_counted(slices), (slices[-1].parcel, slices[-1].lo) if more else None)


def _counted(slices: Sequence[Any]) -> dict[UUID, int]:
    jobs: dict[UUID, int] = {}
    for ended in slices:
        jobs[ended.job] = jobs.get(ended.job, 0) + ended.hi - ended.lo
    return jobs
