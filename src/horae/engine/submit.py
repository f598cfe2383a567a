"""Submit: requests for executions, resolved, checked, and committed together."""

from collections.abc import Callable, Sequence
from uuid import UUID

from msgspec import Raw, Struct, structs

from horae.engine.batcher import Batcher
from horae.engine.deadlines import deadline_of
from horae.engine.directory import Directory
from horae.engine.hints import Hint, Hints
from horae.engine.limit_keys import MIXED, keyed, keys_of_lot
from horae.engine.meetings import meeting, whole_params
from horae.engine.params import Params
from horae.engine.parking import ParkingLot
from horae.engine.quotas import Quotas
from horae.engine.settings import EngineSettings
from horae.engine.share_lanes import ShareLanes, split
from horae.env import Env, Instant, Micros
from horae.errors import BadInput, Busy, Conflict, HoraeError, KeyReused, NotFound, OverQuota
from horae.model.affinity_key import by_affinity
from horae.model.circuit_key import by_circuit
from horae.model.event import Event
from horae.model.execution import Extra
from horae.model.job import PRIORITIES
from horae.model.limit_keys import is_keyed
from horae.model.parcel import AT_LEAST_ONCE, AT_MOST_ONCE, Envelope, Parcel
from horae.model.protocol import Submit
from horae.store.contract import Store
from horae.store.moves.jobs import StoredJob
from horae.store.moves.repeats import TwinRequests
from horae.store.moves.submission import (
    Asked,
    Idempotency,
    NewExecution,
    NewLot,
    Receipt,
    Repeated,
    Reused,
    Submission,
    Submitted,
)
from horae.store.moves.submit import JobMoved

MOST_KEY = 256
FAR = 50 * 366 * 86_400 * 1_000_000  # nothing is scheduled further ahead than this
RESOLVE_TRIES = 3


class Wanted(Struct, frozen=True, kw_only=True):
    """One request as it came in: what it wants, and under what circumstances.

    With `items`, the single request says on which terms each of them is wanted as params.
    """

    namespace: int
    requests: Sequence[Submit]
    items: Sequence[bytes] | None = None
    origin: str
    caller: str = ""
    parent: UUID | None = None
    extras: Sequence[Extra] | None = None
    idempotency: Idempotency | None = None

    @property
    def count(self) -> int:
        """How many executions it asks for."""
        return len(self.requests if self.items is None else self.items)


class _Pending(Struct, frozen=True):
    wanted: Wanted
    submission: Submission
    size: int


class Submitter:
    """Accepts executions: on disk before it answers, many requests in one transaction."""

    def __init__(self, env: Env, store: Store, directory: Directory, hints: Hints, settings: EngineSettings) -> None:
        self._env, self._store, self._directory, self._hints = env, store, directory, hints
        self._settings = settings
        self._params = Params()
        self._shares = ShareLanes(env, store, directory)
        self.on_parcels: Callable[[Sequence[Parcel]], object] = lambda parcels: None  # told of what was written
        self.lot: ParkingLot | None = None  # whose exchanges wait for what is submitted here
        self.quotas: Quotas | None = None  # what bounds it
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
        """Accept executions, in order. With `partial`, refused ones come back as errors; otherwise they refuse all."""
        wanted = Wanted(
            namespace=namespace, requests=requests, origin=origin, caller=caller, parent=parent, extras=extras,
            idempotency=idempotency,
        )  # fmt: skip
        refused: dict[int, HoraeError] = {}
        receipts = await self._accept(wanted, refused if partial else None)
        if len(receipts) != len(requests) - len(refused):
            raise Conflict("Other items of this request were refused when it was first answered.", "Use a new key.")
        accepted = iter(receipts)
        return [refused[i] if i in refused else next(accepted) for i in range(len(requests))]

    async def submit_lot(
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
        """Accept an execution for each of these params, on the same terms, in order.

        The receipts cover what was accepted. With `partial`, refused ones are told by their index; otherwise they
        refuse all.
        """
        wanted = Wanted(
            namespace=namespace, requests=[terms], items=items, origin=origin, caller=caller, idempotency=idempotency
        )
        refused: dict[int, HoraeError] = {}
        return await self._accept(wanted, refused if partial else None), refused

    async def _accept(self, wanted: Wanted, refused: dict[int, HoraeError] | None) -> list[Receipt]:
        """Resolve a request and have it committed; what was refused is noted, and left out."""
        if len(self._batcher) >= self._settings.max_pending:
            raise Busy("Too many submissions wait for the store.")
        submission = await self._resolve(wanted, refused)
        if not submission.executions:
            return []
        size = sum(map(_bytes_of, submission.executions))
        pending = _Pending(_without(wanted, refused or {}), submission, size)
        if self.quotas is None:
            return await self._batcher.do(pending)
        try:
            place = wanted.namespace, submission.executions[0].envelope.queue
            return await self.quotas.patiently(place, wanted.count, lambda: self._batcher.do(pending))
        except OverQuota:
            self.quotas.refused(wanted.namespace, wanted.count)
            raise

    async def close(self) -> None:
        """Finish what was accepted."""
        await self._batcher.close()

    async def _resolve(self, wanted: Wanted, refused: dict[int, HoraeError] | None) -> Submission:
        """Check each request against its job; everything that can be refused is refused here."""
        now = self._env.now()
        if wanted.items is not None:
            return await self._resolve_lot(wanted, wanted.items, refused, now)
        executions = []
        missing: dict[str, HoraeError] = {}  # looked for once, however many items name it
        for i, request in enumerate(wanted.requests):
            try:
                if request.job in missing:
                    raise missing[request.job]
                stored = await self._job(wanted, request)
                executions.append(self._execution(wanted, i, request, stored, now))
            except HoraeError as error:
                if refused is None:
                    raise _placed(error, i, len(wanted.requests)) from None
                refused[i] = error
                if isinstance(error, NotFound):
                    missing[request.job] = error
        return await self._shares.in_lanes(Submission(executions=executions, idempotency=wanted.idempotency))

    async def _resolve_lot(
        self, wanted: Wanted, items: Sequence[bytes], refused: dict[int, HoraeError] | None, now: Instant
    ) -> Submission:
        """Terms are checked once, params one by one."""
        (terms,) = wanted.requests
        stored = await self._job(wanted, terms)
        spec = stored.job.spec
        keys = keys_of_lot(stored, items, terms) if is_keyed(spec) else None
        by_item = spec.affinity is not None or (spec.circuit is not None and spec.circuit.key is not None)
        if spec.meets or keys is MIXED or by_item:
            return await self._shares.in_lanes(self._resolve_each(wanted, items, stored, refused, now))
        wrong = self._params.check_all(items, stored.job)
        shares = self._shares.shares(stored, items, _extra(wanted, 0, terms), wrong)
        if wrong and refused is None:
            first = min(wrong)
            raise _placed(wrong[first], first, len(items))
        if refused is not None:
            refused |= wrong
        kept = [item for i, item in enumerate(items) if i not in wrong] if wrong else items
        envelope = self._envelope(wanted, terms, stored, now)
        envelope = envelope if keys is None else structs.replace(envelope, keys=keys)
        envelope = by_circuit(envelope, spec, b"{}", terms.tags)
        lot = NewLot(
            envelope=envelope, rank_lead=self._lead(envelope), items=kept,
            extra=_extra(wanted, 0, terms), patience=_patience(terms, stored),
        )  # fmt: skip
        if wrong and shares is not None:
            shares = [share for i, share in enumerate(shares) if i not in wrong]
        lots = split(lot, shares) if kept else []
        return await self._shares.in_lanes(Submission(executions=lots, idempotency=wanted.idempotency))

    def _resolve_each(
        self,
        wanted: Wanted,
        items: Sequence[bytes],
        stored: StoredJob,
        refused: dict[int, HoraeError] | None,
        now: Instant,
    ) -> Submission:
        """Items of a job whose submissions share something have keys of their own."""
        executions = []
        for i, item in enumerate(items):
            request = structs.replace(wanted.requests[0], params=Raw(bytes(item)))
            try:
                executions.append(self._execution(wanted, 0, request, stored, now))
            except HoraeError as error:
                if refused is None:
                    raise _placed(error, i, len(items)) from None
                refused[i] = error
        return Submission(executions=executions, idempotency=wanted.idempotency)

    async def _job(self, wanted: Wanted, request: Submit) -> StoredJob:
        stored = self._directory.known(wanted.namespace, request.job) or await self._directory.job(
            wanted.namespace, request.job
        )
        self._directory.check_accepts(stored.queue)
        return stored

    def _execution(self, wanted: Wanted, index: int, request: Submit, stored: StoredJob, now: Instant) -> NewExecution:
        item = bytes(request.params) or b"{}"
        spec, extra = stored.job.spec, _extra(wanted, index, request)
        self._params.check(whole_params(item, spec, retries=extra.retry_of is not None), stored.job)
        envelope = by_circuit(self._envelope(wanted, request, stored, now), spec, item, request.tags)
        envelope = by_affinity(envelope, spec, item, request.tags)
        one = NewExecution(
            envelope=envelope,
            rank_lead=self._lead(envelope),
            item=item,
            extra=extra,
            unique=None if request.key is None else (wanted.namespace, f"job:{stored.job.id}", _key(request.key)),
            unique_for=request.key_for if request.key_for is not None else spec.key_for,
            patience=_patience(request, stored),
            share=self._shares.share(stored, item, extra),
        )
        one = keyed(one, spec) if is_keyed(spec) else one
        return meeting(one, spec) if spec.meets else one

    def _envelope(self, wanted: Wanted, request: Submit, stored: StoredJob, now: Instant) -> Envelope:
        check_key(request)
        spec, due_at = stored.job.spec, _due(request, now)
        return Envelope(
            namespace=wanted.namespace, job=stored.job.id, version=stored.job.version, queue=stored.queue,
            lane=stored.lane, priority=_priority(request.priority, spec.priority), due_at=due_at,
            deadline=deadline_of(request, due_at, now), keys=spec.keys, parent=wanted.parent,
            delivery=AT_MOST_ONCE if spec.delivery == "at-most-once" else AT_LEAST_ONCE, bounds=spec.bounds,
        )  # fmt: skip

    def _lead(self, envelope: Envelope) -> int:
        return self._directory.lead(envelope.queue, envelope.priority, envelope.job, envelope.deadline)

    async def _commit(self, batch: Sequence[_Pending]) -> Sequence[list[Receipt] | BaseException]:
        """One transaction for the batch; a job that changed meanwhile is resolved again, alone."""
        try:
            done = await self._store_all([pending.submission for pending in batch])
        except JobMoved as moved:
            self._directory.forget(moved.jobs)
            if len(batch) > 1:
                raise
            return [await self._commit_anew(batch[0].wanted)]
        except TwinRequests:
            if len(batch) > 1:
                raise
            return [
                Conflict("The same request is under way.", "Wait for its answer, then repeat it with the same key.")
            ]
        return [_answer(answer) for answer in done.answers]

    async def _store_all(self, submissions: Sequence[Submission]) -> Submitted:
        """Have them stored, and handed over to whoever waits for them; tell of the rest."""
        amounts = _amounts(submissions)
        takers = self.lot.takers(amounts) if self.lot is not None and amounts else []
        done = await self._store.submit(submissions, takers, self._directory.paused)
        self.on_parcels(done.parcels)
        if self.lot is not None:
            self.lot.handed_over(done.running)
        self._tell(done)
        return done

    async def _commit_anew(self, wanted: Wanted) -> list[Receipt] | BaseException:
        for _ in range(RESOLVE_TRIES):
            try:
                done = await self._store_all([await self._resolve(wanted, None)])
            except JobMoved as moved:
                self._directory.forget(moved.jobs)
            except HoraeError as error:
                return error
            else:
                return _answer(done.answers[0])
        return NotFound("The job was changed again and again while this was submitted.", "Try again.")

    def _tell(self, done: Submitted) -> None:
        """Tell of new executions, and of the lanes where some are to be had."""
        now = self._env.now()
        events = [created(parcel, now) for parcel in done.parcels[:20]]
        events += [created(parcel, now, "waiting") for parcel in done.windows[:20]]
        amounts: dict[int, int] = {}
        for parcel in done.parcels:
            lane = parcel.envelope.lane
            amounts[lane] = amounts.get(lane, 0) + len(parcel)
        for slice in done.running:
            amounts[slice.lane] -= slice.hi - slice.lo
        self._hints.tell(Hint(lanes=done.lanes, amounts=amounts, wake_at=done.wake_at, events=events))


def _amounts(submissions: Sequence[Submission]) -> dict[int, int]:
    """How many executions go into each lane at once."""
    amounts: dict[int, int] = {}
    for submission in submissions:
        for asked in submission.executions:
            if not asked.envelope.due_at:
                count = 1 if isinstance(asked, NewExecution) else len(asked.items)
                amounts[asked.envelope.lane] = amounts.get(asked.envelope.lane, 0) + count
    return amounts


def check_key(request: Submit) -> None:
    """Refuse a span for a key that is not there: whoever gave it believes that repeats are recognised."""
    if request.key_for is not None and request.key is None:
        raise BadInput(
            "keyFor is given without a key.", "Give the key that it is for, or leave keyFor out.", field="keyFor"
        )


def created(parcel: Parcel, now: Instant, state: str | None = None) -> Event:
    """A parcel arrived."""
    e = parcel.envelope
    state = state or ("queued" if e.due_at <= now else "waiting")
    return Event("execution", parcel.id, state, e.namespace, now, e.job, len(parcel))


def _bytes_of(asked: Asked) -> int:
    return len(asked.item) if isinstance(asked, NewExecution) else sum(map(len, asked.items))


def _without(wanted: Wanted, refused: dict[int, HoraeError]) -> Wanted:
    """The request less what was refused, in case it must be resolved again."""
    if not refused:
        return wanted
    if wanted.items is not None:
        return structs.replace(wanted, items=[item for i, item in enumerate(wanted.items) if i not in refused])
    kept = [i for i in range(len(wanted.requests)) if i not in refused]
    extras = None if wanted.extras is None else [wanted.extras[i] for i in kept]
    return structs.replace(wanted, requests=[wanted.requests[i] for i in kept], extras=extras)


def _answer(answer: list[Receipt] | Repeated | Reused) -> list[Receipt] | BaseException:
    if isinstance(answer, Reused):
        return KeyReused("This Idempotency-Key came with another body before.", "Use a new key for a new request.")
    return answer.answer if isinstance(answer, Repeated) else answer


def _placed(error: HoraeError, index: int, count: int) -> HoraeError:
    """Say which of several items an error is about."""
    if count > 1:
        error.fields["index"] = index
        error.detail = f"Item {index}: {error.detail}"
    return error


def _extra(wanted: Wanted, index: int, request: Submit) -> Extra:
    base = wanted.extras[index] if wanted.extras is not None else Extra()
    if not (wanted.caller or request.tags or request.key or request.trace or wanted.origin):
        return base
    return structs.replace(
        base, origin=wanted.origin, caller=wanted.caller, tags=request.tags or base.tags, key=request.key,
        trace=request.trace or base.trace, interval=_interval(request) or base.interval,
        propagate=request.propagate and base.propagate,
    )  # fmt: skip


def _interval(request: Submit) -> tuple[Instant, Instant] | None:
    if request.interval is not None and request.interval[0] >= request.interval[1]:
        raise BadInput("The interval does not begin before it ends.", "Give its start and its end.", field="interval")
    return request.interval


def _patience(request: Submit, stored: StoredJob) -> Micros | None:
    """How long it waits for what its job depends on, if it was asked to and there is something."""
    spec = stored.job.spec
    return spec.dependency_timeout if request.wait_for_dependencies and spec.dependencies else None


def _priority(asked: int | None, default: int) -> int:
    if asked is None:
        return default
    if asked not in PRIORITIES:
        remedy = "Priorities run from 0 (least urgent) to 9 (most urgent); the default is 4."
        raise BadInput(f"priority {asked} is out of range.", remedy, field="priority")
    return asked


def _due(request: Submit, now: Instant) -> Instant:
    """0 stands for now: the instant of the commit."""
    if request.delay is not None and request.at is not None:
        raise BadInput("Both delay and at are given.", "Give one of them.", field="delay")
    at = request.at if request.at is not None else now + request.delay if request.delay else 0
    if at > now + FAR:
        raise BadInput("That is more than 50 years ahead.", "Check the year of `at`.", field="at")
    return at if at > now else 0


def _key(key: str) -> str:
    if not 0 < len(key) <= MOST_KEY:
        raise BadInput(f"key has {len(key)} characters.", f"Use 1 to {MOST_KEY}.", field="key")
    return key
