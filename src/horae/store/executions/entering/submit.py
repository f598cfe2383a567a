"""Submit: store accepted executions, many requests in one transaction.

First the keys of requests are inserted, in sorted order, with ON CONFLICT DO NOTHING. Submissions whose key exists
already are answered with the execution of the key. The others are put into parcels. Requests were validated before, so
here they can be refused only because of quotas, or because their job was changed meanwhile.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.admission.key_gate import GateResult
from horae.model.admission.keys import KEYED, flags_of
from horae.model.admission.quota import UNBOUNDED, QuotaBounds
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.executions.parcel import Parcel
from horae.model.executions.submission import (
    Idempotency,
    NewBulk,
    NewItems,
    Receipt,
    RepeatedRequest,
    ReusedKey,
    Submission,
    SubmissionAnswer,
    SubmitResult,
    UniqueKey,
)
from horae.store.admission import quotas
from horae.store.executions.deduplication import deduplicate
from horae.store.executions.entering.idempotency import (
    assign_keys,
    known_requests,
    remember,
    stored_answer,
    take_keys,
)
from horae.store.executions.entering.placing import NO_ANSWERS, place
from horae.store.executions.item_states import StateRange, item_states, split_by_state
from horae.store.executions.parcels import enter_parcels, put_parcels
from horae.store.script import ForEach, Insert, Script, Statement
from horae.store.triggers.dependencies import waits
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.triggers.dependencies.waits import Wait

# The row of the job stays locked until the commit. So a deletion of the job either waits for the commit and then finds
# the executions, or has been committed before and is seen here.
CURRENT = Statement(
    "current_jobs",
    "SELECT j.id, j.version, j.state, j.rollout FROM given JOIN jobs j ON j.id = given.id FOR KEY SHARE OF j",
)


class JobMoved(Exception):
    """Raised if a job was edited or deleted after a request was resolved, so that the caller resolves it again."""

    def __init__(self, jobs: set[UUID]) -> None:
        super().__init__(f"{len(jobs)} jobs changed")
        self.jobs = jobs


def submit(
    submissions: Sequence[Submission], new_id: Callable[[], UUID], now: Instant, bounds: QuotaBounds = UNBOUNDED
) -> Script[SubmitResult]:
    """Accept these requests, each as a whole, and return their answers.

    Raises OverQuota if a quota leaves no room for them, JobMoved, or TwinRequests.
    """
    answers: dict[int, SubmissionAnswer] = {}
    everything = list(enumerate(submissions))
    drafted = draft_placement(everything, new_id, now)
    if any(s.idempotency for s in submissions):
        answers = yield from known_requests(submissions, drafted.answers if drafted else {}, now)
    fresh = [(i, s) for i, s in everything if i not in answers]
    asked = [e for _, s in fresh for e in s.executions]
    yield from _check_jobs(asked)
    met = deduplicate.DeduplicationResult()
    changes: list[ForEach | Insert]
    if drafted is not None and len(fresh) == len(everything):
        placed, changes = drafted, []
    else:
        known = yield from take_keys(asked, now)
        met = yield from deduplicate.deduplicate(asked, known, new_id, now)
        placed = _placed(fresh, known, new_id, now, met)
        changes = [
            *assign_keys(asked, placed.receipts, known),
            *remember((s, placed.answers[i]) for i, s in fresh),
            *met.changes(asked, lambda i: placed.receipts[i][0].execution_id),
        ]
    if bounds:
        made = [*((p.envelope, len(p)) for p, _ in placed.parcels), *met.created]
        changes += yield from quotas.admit(bounds, _submitted(asked), made, now)
    waiting = list(_waits(asked, placed.receipts, placed.parcels)) if any(e.patience is not None for e in asked) else []
    held = {parcel_of(wait.execution) for wait in waiting}
    keyed = [one for one in placed.parcels if flags_of(one[0].envelope.keys) & KEYED]
    admitted = (yield from enter_parcels(keyed, held, now)) if keyed else None
    lanes, wake_at = yield from put_parcels(placed.parcels, now, changes, held, admitted)
    consequences = Consequences(lanes=lanes, wake_at=wake_at)
    opened = (yield from deduplicate.settle(met, asked, new_id, now, consequences)) if met.has_changes else []
    if waiting:
        yield from waits.begin(waiting, new_id, now, consequences)
    apart = _pieces(admitted.passed) if admitted is not None else {}
    known_states = {} if met.has_changes or waiting else apart
    answers = yield from update_receipts({**answers, **placed.answers}, held | apart.keys(), known_states)
    ordered = [answers[i] for i in range(len(submissions))]
    return SubmitResult(ordered, [p for p, _ in placed.parcels], consequences.lanes, consequences.next, windows=opened)


def first_answer(own: Idempotency, now: Instant) -> Script[list[Receipt] | None]:
    """Return the answer to an earlier request with this key, with the present states; None if there is none."""
    answer = yield from stored_answer(own, now)
    if answer is None:
        return None
    restated = (yield from update_receipts({0: RepeatedRequest(answer)}))[0]
    return _receipts_of(restated)


def _pieces(passed: GateResult) -> dict[UUID, list[StateRange]]:
    """Return the states of all items of parcels with items that wait at the gates of their keys."""
    waiting = {item_slice.parcel for item_slice in passed.waiting}
    found: dict[UUID, list[StateRange]] = {parcel: [] for parcel in waiting}
    for state, slices in (("queued", passed.queued), ("waiting", passed.waiting)):
        for item_slice in slices:
            if item_slice.parcel in waiting:
                found[item_slice.parcel].append((item_slice.lo, item_slice.hi, state))
    return found


def _submitted(asked: Sequence[NewItems]) -> Iterable[tuple[int, int]]:
    """Return the number of submitted executions by namespace."""
    counts: dict[int, int] = {}
    for e in asked:
        count = len(e.items) if isinstance(e, NewBulk) else 1
        counts[e.envelope.namespace] = counts.get(e.envelope.namespace, 0) + count
    return counts.items()


def _waits(
    asked: Sequence[NewItems], receipts: Sequence[Sequence[Receipt]], parcels: Iterable[tuple[Parcel, int]]
) -> Iterator[Wait]:
    """Yield a `Wait` for each new execution that has to wait for the dependencies of its job."""
    due = {parcel.id: parcel.envelope.due_at for parcel, _ in parcels}
    for e, mine in zip(asked, receipts, strict=True):
        for receipt in mine if e.patience is not None else ():
            parcel, first = parcel_of(receipt.execution_id), index_of(receipt.execution_id)
            for item in range(first, first + receipt.count) if parcel in due and not receipt.deduplicated else ():
                yield Wait(
                    dependent=e.envelope.job, execution=execution_id(parcel, item), interval=e.extra.interval,
                    deadline=due[parcel] + (e.patience or 0), own=False,
                )  # fmt: skip


class PlacedRequests(Struct, frozen=True):
    """The parcels of new executions, and the answers to their requests."""

    receipts: list[list[Receipt]]  # the receipts of each submission, in order
    parcels: list[tuple[Parcel, int]]  # each with the lead of its rank
    answers: dict[int, list[Receipt]]  # index of a request -> the receipts of all its submissions


def draft_placement(
    submissions: Sequence[tuple[int, Submission]], new_id: Callable[[], UUID], now: Instant
) -> PlacedRequests | None:
    """Place all executions as if no request were repeated, which is nearly always the case.

    So the answers can be stored by the statement that reserves the idempotency keys. Return None if an execution has a
    unique or deduplication key.
    """
    if any(e.unique or e.deduplication for _, s in submissions for e in s.executions):
        return None
    return _placed(submissions, {}, new_id, now)


def _placed(
    submissions: Sequence[tuple[int, Submission]],
    known: dict[UniqueKey, UUID],
    new_id: Callable[[], UUID],
    now: Instant,
    met: deduplicate.DeduplicationResult | None = None,
) -> PlacedRequests:
    elsewhere = met.answered if met is not None else NO_ANSWERS
    receipts, parcels = place([e for _, s in submissions for e in s.executions], known, new_id, now, elsewhere)
    each = iter(receipts)
    answers = {i: [receipt for _ in s.executions for receipt in next(each)] for i, s in submissions}
    return PlacedRequests(receipts, parcels, answers)


def _check_jobs(executions: Iterable[NewItems]) -> Script[None]:
    """Raise JobMoved unless every job still has the version or rollout against which the request was resolved."""
    resolved = {(e.envelope.job, e.envelope.version, e.rollout) for e in executions}
    if not resolved:
        return
    rows = yield ForEach(CURRENT, (("id", "uuid"),), [(job,) for job in sorted({job for job, _, _ in resolved})])
    current = {job: (version, rolling) for job, version, state, rolling in rows if state != "deleted"}
    moved = {job for job, version, rolling in resolved if not _is_unmoved(version, rolling, current.get(job))}
    if moved:  # guard: jobs-unmoved
        raise JobMoved(moved)


def _is_unmoved(version: int, rolling: int | None, current: tuple[int, int | None] | None) -> bool:
    """Tell whether a job still has the version to which a request was resolved, or the rollout that chose it."""
    if current is None or current[1] != rolling:  # guard: submit-sees-rollout
        return False
    return rolling is not None or version == current[0]


NO_KNOWN_STATES: Mapping[UUID, Sequence[StateRange]] = {}


def update_receipts(
    answers: dict[int, SubmissionAnswer],
    held: Collection[UUID] = (),
    known: Mapping[UUID, Sequence[StateRange]] = NO_KNOWN_STATES,
) -> Script[dict[int, SubmissionAnswer]]:
    """Update receipts of executions that were accepted earlier to the present states of the executions.

    Receipts of `held` parcels are updated, too, because some of their executions may have been queued at once. `known`
    has the states of the items of some parcels, which are not read again.
    """
    old = [r for answer in answers.values() for r in _receipts_of(answer) if _is_old(r, answer, held)]
    if not old:
        return answers
    ranges = [(parcel_of(r.execution_id), index_of(r.execution_id), index_of(r.execution_id) + r.count) for r in old]
    unknown = [one for one in ranges if one[0] not in known]
    read = iter((yield from item_states(unknown)) if unknown else ())
    found = iter(
        [list(split_by_state(lo, hi, known[parcel])) if parcel in known else next(read) for parcel, lo, hi in ranges]
    )

    def restated(answer: SubmissionAnswer) -> list[Receipt]:
        states = ((r, next(found)) if _is_old(r, answer, held) else (r, None) for r in _receipts_of(answer))
        return [receipt for r, parts in states for receipt in ([r] if parts is None else _split_receipt(r, parts))]

    return {
        i: answer
        if isinstance(answer, ReusedKey)
        else RepeatedRequest(new)
        if isinstance(answer, RepeatedRequest)
        else new
        for i, answer in answers.items()
        for new in [restated(answer)]
    }


def _receipts_of(answer: SubmissionAnswer) -> list[Receipt]:
    return [] if isinstance(answer, ReusedKey) else answer.answer if isinstance(answer, RepeatedRequest) else answer


def _is_old(receipt: Receipt, answer: object, held: Collection[UUID]) -> bool:
    if receipt.deduplicated or isinstance(answer, RepeatedRequest):
        return True
    return bool(held) and parcel_of(receipt.execution_id) in held


def _split_receipt(receipt: Receipt, parts: Sequence[StateRange]) -> list[Receipt]:
    """Split a receipt by the states of its executions."""
    parcel = parcel_of(receipt.execution_id)
    return [
        msgspec.structs.replace(receipt, execution_id=execution_id(parcel, lo), state=state, count=hi - lo)
        for lo, hi, state in parts
    ]
