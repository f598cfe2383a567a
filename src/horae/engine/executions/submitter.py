"""Submission: requests for executions are resolved and committed together."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.engine.admission.quotas import Quotas
from horae.engine.base.counters import Counters
from horae.engine.base.execution_sealing import ExecutionSealer
from horae.engine.base.hints import Hint, Hints
from horae.engine.batcher import Batcher
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.executions.resolver import Resolver, SubmissionRequest
from horae.engine.fleet.answers import ParcelCache
from horae.engine.fleet.parking import ParkingLot
from horae.engine.settings import EngineSettings
from horae.env import Env, Instant
from horae.errors import Busy, Conflict, HoraeError, KeyReused, NotFound, OverQuota
from horae.model.base.buckets import Buckets
from horae.model.base.event import ChangeEvent
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import Parcel
from horae.model.executions.submission import (
    Idempotency,
    NewExecution,
    NewItems,
    Receipt,
    RepeatedRequest,
    ReusedKey,
    Submission,
    SubmitResult,
)
from horae.model.executions.tracer import Tracer
from horae.model.fleet.submit import Submit
from horae.store.contract import Store
from horae.store.executions.entering.submit import JobMoved, first_answer

RESOLVE_TRIES = 3


Refused = dict[int, HoraeError] | None  # errors of refused items by index; None if one of them refuses the request


class _Pending(Struct, frozen=True):
    wanted: SubmissionRequest
    refused: Refused
    submission: Submission
    size: int


class Submitter:
    """Accepts executions. Many requests share one transaction, and each is on disk before it is answered."""

    def __init__(
        self,
        env: Env,
        store: Store,
        directory: LocalDirectory,
        hints: Hints,
        settings: EngineSettings,
        quotas: Quotas,
        seals: ExecutionSealer,
        counters: Counters,
        parcels: ParcelCache,
        parking_lot: ParkingLot,
        tracer: Tracer | None = None,
    ) -> None:
        self._env, self._store, self._directory, self._hints = env, store, directory, hints
        self._settings = settings
        self._quotas, self._counters, self._parcels, self._tracer = quotas, counters, parcels, tracer
        self._parking_lot = parking_lot  # new executions are handed over to its waiting exchanges
        self._resolver = Resolver(env, store, directory, seals)
        self._pending: dict[int, int] = {}  # running requests by namespace
        self._batcher: Batcher[_Pending, list[Receipt]] = Batcher(
            self._commit,
            most=settings.batch_requests,
            size=lambda pending: pending.size,
            most_size=settings.batch_bytes,
        )

    async def submit(
        self,
        namespace: int,
        requests: Sequence[Submit],
        *,
        origin: str,
        caller: str = "",
        idempotency: Idempotency | None = None,
        parent: UUID | None = None,
        extras: Sequence[Extra] | None = None,
        partial: bool = False,
    ) -> list[Receipt | HoraeError]:
        """Accept executions, in order.

        With `partial`, refused executions are returned as errors. Otherwise, if one is refused, all are.
        """
        wanted = SubmissionRequest(
            namespace=namespace, requests=requests, origin=origin, caller=caller, parent=parent, extras=extras,
            idempotency=idempotency,
        )  # fmt: skip
        refused: dict[int, HoraeError] = {}
        accepted = iter(await self._accept(wanted, refused if partial else None))
        return [refused[i] if i in refused else next(accepted) for i in range(len(requests))]

    async def submit_all(
        self,
        namespace: int,
        requests: Sequence[Submit],
        *,
        origin: str,
        caller: str = "",
        extras: Sequence[Extra] | None = None,
    ) -> list[Receipt]:
        """Accept all of these executions or none."""
        done = await self.submit(namespace, requests, origin=origin, caller=caller, extras=extras)
        return [receipt for receipt in done if isinstance(receipt, Receipt)]

    async def submit_bulk(
        self,
        namespace: int,
        terms: Submit,
        items: Sequence[bytes],
        *,
        origin: str,
        caller: str = "",
        idempotency: Idempotency | None = None,
        partial: bool = False,
    ) -> tuple[list[Receipt], dict[int, HoraeError]]:
        """Accept one execution for each item of params, on the same terms, in order.

        The receipts cover accepted items. With `partial`, the errors of refused items are returned by index. Otherwise,
        if one item is refused, all are.
        """
        wanted = SubmissionRequest(
            namespace=namespace, requests=[terms], items=items, origin=origin, caller=caller, idempotency=idempotency
        )
        refused: dict[int, HoraeError] = {}
        return await self._accept(wanted, refused if partial else None), refused

    async def _accept(self, wanted: SubmissionRequest, refused: Refused) -> list[Receipt]:
        """Resolve and commit a request. Refused items are collected and left out.

        A repeated request gets its first answer, also if it would be refused now. Raises Conflict if this answer
        belongs to other items than those that are accepted now.
        """
        if self._tracer is not None and wanted.requests:
            receipts = await self._traced(self._tracer, wanted, refused)
        else:
            receipts = await self._admit(wanted, refused)
        count = sum(receipt.count for receipt in receipts)
        if refused and count == wanted.count:
            refused.clear()
        if count != wanted.count - len(refused or ()):
            raise Conflict("Other items of this request were refused when it was first answered.", "Use a new key.")
        return receipts

    async def _traced(self, tracer: Tracer, wanted: SubmissionRequest, refused: Refused) -> list[Receipt]:
        """Accept a request in a trace span that its executions refer to."""
        span = tracer.submitting(wanted.requests)
        if span is None:
            return await self._admit(wanted, refused)
        header, state = span.context.header, span.context.state
        requests = [structs.replace(request, trace=header, trace_state=state) for request in wanted.requests]
        receipts: list[Receipt] = []
        error: BaseException | None = None
        try:
            receipts = await self._admit(structs.replace(wanted, requests=requests), refused)
            return receipts
        except BaseException as raised:
            error = raised
            raise
        finally:
            alone = [receipt.execution_id for receipt in receipts if receipt.count == 1]
            tracer.submitted(span, wanted.requests[0].job[:128], wanted.count, alone, error)

    async def _admit(self, wanted: SubmissionRequest, refused: Refused) -> list[Receipt]:
        namespace = wanted.namespace
        if len(self._batcher) >= self._settings.max_pending // 2 and self._is_crowded(namespace):
            raise Busy("Too many submissions wait for the store.")
        self._pending[namespace] = self._pending.get(namespace, 0) + 1
        try:
            return await self._commit_soon(wanted, refused)
        finally:
            if self._pending[namespace] == 1:
                del self._pending[namespace]
            else:
                self._pending[namespace] -= 1

    def _is_crowded(self, namespace: int) -> bool:
        """Return whether a namespace has too many pending requests.

        It may use the whole room if no other namespace has pending requests, and otherwise its weighted part of it.
        """
        most, weight = self._settings.max_pending, self._directory.weight
        if not self._pending.keys() - {namespace}:
            return len(self._batcher) >= most
        together = sum(map(weight, self._pending.keys() | {namespace}))
        return self._pending.get(namespace, 0) >= most * weight(namespace) / together

    async def _commit_soon(self, wanted: SubmissionRequest, refused: Refused) -> list[Receipt]:
        self._quotas.check_submit_rate(wanted.namespace, wanted.count)
        try:
            submission = await self._resolver.resolve(wanted, refused)
        except HoraeError:
            if (answer := await self._first_answer(wanted)) is not None:
                return answer
            raise
        if not submission.executions:
            return await self._first_answer(wanted) or []
        size = sum(map(_bytes_of, submission.executions))
        pending = _Pending(wanted, refused, submission, size)
        try:
            place = wanted.namespace, submission.executions[0].envelope.queue
            return await self._quotas.retry_while_full(place, wanted.count, lambda: self._batcher.do(pending))
        except OverQuota:
            self._quotas.count_refused(wanted.namespace, wanted.count)
            raise

    async def _first_answer(self, wanted: SubmissionRequest) -> list[Receipt] | None:
        """Return the answer to an earlier request with the same key."""
        own, now = wanted.idempotency, self._env.now()
        if own is None:
            return None
        known = await self._store.read(lambda: first_answer(own, now))
        return None if known is None else _repeated(known, wanted)

    @property
    def batches(self) -> Buckets:
        """The numbers of requests that shared a transaction."""
        return self._batcher.sizes

    async def close(self) -> None:
        """Finish accepted requests."""
        await self._batcher.close()

    async def _commit(self, batch: Sequence[_Pending]) -> Sequence[list[Receipt] | BaseException]:
        """Commit a batch in one transaction. A request with a job that changed meanwhile is resolved again, alone."""
        try:
            done = await self._store_all([pending.submission for pending in batch])
        except JobMoved as moved:
            self._directory.forget(moved.jobs)
            if len(batch) > 1:
                raise
            return [await self._commit_anew(batch[0].wanted, batch[0].refused)]
        return [_answer(answer, pending.wanted) for answer, pending in zip(done.answers, batch, strict=True)]

    async def _store_all(self, submissions: Sequence[Submission]) -> SubmitResult:
        """Store submissions, hand executions over to waiting exchanges, and announce the remaining executions."""
        amounts = _amounts(submissions)
        takers = self._parking_lot.takers(amounts) if amounts else []
        done = await self._store.submit(submissions, takers, self._directory.paused)
        self._parcels.add(done.parcels)
        self._counters.submitted(done)
        self._parking_lot.handed_over(done.running)
        self._tell(done)
        return done

    async def _commit_anew(self, wanted: SubmissionRequest, refused: Refused) -> list[Receipt] | BaseException:
        for _ in range(RESOLVE_TRIES):
            if refused is not None:
                refused.clear()
            try:
                submission = await self._resolver.resolve(wanted, refused)
                if not submission.executions:
                    return []
                done = await self._store_all([submission])
            except JobMoved as moved:
                self._directory.forget(moved.jobs)
            except HoraeError as error:
                return error
            else:
                return _answer(done.answers[0], wanted)
        return NotFound("The job was changed again and again while this was submitted.", "Try again.")

    def _tell(self, done: SubmitResult) -> None:
        """Publish events of new executions, and hints of the lanes that received some."""
        now = self._env.now()
        events = [creation_event(parcel, now) for parcel in done.parcels[:20]]
        events += [creation_event(parcel, now, "waiting") for parcel in done.windows[:20]]
        amounts: dict[int, int] = {}
        for parcel in done.parcels:
            lane = parcel.envelope.lane
            amounts[lane] = amounts.get(lane, 0) + len(parcel)
        for running in done.running:
            amounts[running.lane] -= running.hi - running.lo
        self._hints.send(Hint(lanes=done.lanes, amounts=amounts, wake_at=done.wake_at, events=events))


def _amounts(submissions: Sequence[Submission]) -> dict[int, int]:
    """Count the executions that enter each lane at once."""
    amounts: dict[int, int] = {}
    for submission in submissions:
        for new in submission.executions:
            if not new.envelope.due_at:
                count = 1 if isinstance(new, NewExecution) else len(new.items)
                amounts[new.envelope.lane] = amounts.get(new.envelope.lane, 0) + count
    return amounts


def creation_event(parcel: Parcel, now: Instant, state: str | None = None) -> ChangeEvent:
    """Return the event of a new parcel."""
    envelope = parcel.envelope
    state = state or ("queued" if envelope.due_at <= now else "waiting")
    return ChangeEvent("execution", parcel.id, state, envelope.namespace, now, envelope.job, len(parcel))


def _bytes_of(new: NewItems) -> int:
    return len(new.item) if isinstance(new, NewExecution) else sum(map(len, new.items))


def _answer(
    answer: list[Receipt] | RepeatedRequest | ReusedKey, wanted: SubmissionRequest
) -> list[Receipt] | BaseException:
    """Return the answer of one request. A repeated request gets its first answer."""
    if isinstance(answer, ReusedKey):
        return KeyReused("This Idempotency-Key was used with another body before.", "Use a new key for a new request.")
    if not isinstance(answer, RepeatedRequest):
        return answer
    return _repeated(answer.answer, wanted)


def _repeated(receipts: list[Receipt], wanted: SubmissionRequest) -> list[Receipt]:
    """Return the first answer to a repeated request.

    If an execution repeated a call that submits children, the receipts are marked as deduplicated.
    """
    if wanted.origin == "child":
        return [structs.replace(receipt, deduplicated=True) for receipt in receipts]
    return receipts
