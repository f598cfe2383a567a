"""Resolution: each request is checked against its job. Everything that can be refused is refused here."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Raw, Struct, structs

from horae.engine.admission.share_lanes import ShareLanes, split_by_share
from horae.engine.base.execution_sealing import ExecutionSealer
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.definitions.job_cache import arm_of
from horae.engine.definitions.owned_changes import refuse_part
from horae.engine.definitions.params import ParamsChecker
from horae.env import Env, Instant, Micros
from horae.errors import BadInput, HoraeError, NotFound
from horae.model.admission.execution_keys import (
    common_keys,
    envelope_keys,
    is_keyed,
    with_affinity_key,
    with_circuit_key,
)
from horae.model.base.instant import format_instant
from horae.model.base.trace import checked_state, checked_trace
from horae.model.definitions.job import Spec
from horae.model.definitions.spec_fields import PRIORITIES
from horae.model.executions.bulk_items import refuse_submission
from horae.model.executions.deduplication import start_batch
from horae.model.executions.deduplication_keys import deduplication_keys, refuse_timed, unique_key
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import AT_LEAST_ONCE, AT_MOST_ONCE, Envelope, mark_replay, mark_rollout
from horae.model.executions.submission import Idempotency, NewBulk, NewExecution, Submission, deadline_after
from horae.model.expressions.meter import ITEM_STEPS, MOST_STEPS, Meter, shared_budget
from horae.model.fleet.submit import Submit
from horae.store.contract import Store
from horae.store.definitions.jobs import StoredJob

MIXED = "mixed"  # stands for the keys of a bulk if its items have different ones
MOST_KEY = 256  # characters
BY_NAME = ("submit", "trigger", "child")  # origins of executions that are requested by a job's name
FAR = 50 * 366 * 86_400 * 1_000_000  # microseconds: the farthest time of a scheduled execution


class SubmissionRequest(Struct, frozen=True, kw_only=True):
    """One request as it arrived, with its origin and caller.

    With `items`, `requests` has only one request, with the common terms, and each item is the params of one execution.
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
        """The number of requested executions."""
        return len(self.requests if self.items is None else self.items)


class Resolver:
    """Turns requests into submissions for the store: with envelopes, ranks, keys and shares."""

    def __init__(self, env: Env, store: Store, directory: LocalDirectory, seals: ExecutionSealer) -> None:
        self._env, self._directory = env, directory
        self._params = ParamsChecker()
        self._seals = seals  # seals the params of sensitive jobs
        self._shares = ShareLanes(env, store, directory)

    async def resolve(self, wanted: SubmissionRequest, refused: dict[int, HoraeError] | None) -> Submission:
        """Check a request against its jobs.

        Collect errors in `refused` by index; if it is None, raise the first error.
        """
        now = self._env.now()
        if wanted.items is not None:
            return await self._resolve_bulk(wanted, wanted.items, refused, now)
        executions = []
        missing: dict[str, HoraeError] = {}  # unknown jobs are searched for once per request
        meter = Meter(MOST_STEPS + ITEM_STEPS * len(wanted.requests))
        for i, request in enumerate(wanted.requests):
            await self._params.yield_turn()
            try:
                if request.job in missing:
                    raise missing[request.job]
                stored = await self._job(wanted, request)
                with shared_budget(meter):
                    executions.append(self._execution(wanted, i, request, stored, now))
            except HoraeError as error:
                if refused is None:
                    raise _placed(error, i, len(wanted.requests)) from None
                refused[i] = error
                if isinstance(error, NotFound):
                    missing[request.job] = error
        return await self._shares.assign_lanes(Submission(executions=executions, idempotency=wanted.idempotency))

    async def _resolve_bulk(
        self, wanted: SubmissionRequest, items: Sequence[bytes], refused: dict[int, HoraeError] | None, now: Instant
    ) -> Submission:
        """Resolve a bulk: its terms are checked once, its params one by one."""
        (terms,) = wanted.requests
        stored = await self._job(wanted, terms)
        spec = stored.job.spec
        items = [self._opened(stored, item) for item in items] if spec.sensitive else items
        unfit = {i: error for i, item in enumerate(items) if (error := refuse_submission(bytes(item), spec))}
        meter = Meter(MOST_STEPS + ITEM_STEPS * len(items))
        with shared_budget(meter):
            keys = keys_of_bulk(stored, items, terms) if is_keyed(spec) else None
        by_item = spec.affinity is not None or (spec.circuit is not None and spec.circuit.key is not None)
        if spec.deduplicates or keys is MIXED or by_item or stored.choice is not None:
            each = await self._resolve_each(wanted, items, stored, refused, unfit, now, meter)
            return await self._shares.assign_lanes(each)
        wrong = await self._params.check_all(items, stored.job) | unfit
        with shared_budget(meter):
            shares = self._shares.shares(stored, items, _extra(wanted, 0, terms), wrong)
        if wrong and refused is None:
            first = min(wrong)
            raise _placed(wrong[first], first, len(items))
        if refused is not None:
            refused |= wrong
        accepted = [item for i, item in enumerate(items) if i not in wrong] if wrong else items
        envelope = self._envelope(wanted, terms, stored, now)
        envelope = envelope if keys is None else structs.replace(envelope, keys=keys)
        with shared_budget(meter):
            envelope = with_circuit_key(envelope, spec, b"{}", terms.tags)
        if spec.sensitive:
            accepted = [self._stored(stored, item) for item in accepted]
        bulk = NewBulk(
            envelope=envelope, rank_lead=self._lead(envelope), items=accepted,
            extra=_extra(wanted, 0, terms), patience=_patience(terms, stored),
        )  # fmt: skip
        if wrong and shares is not None:
            shares = [share for i, share in enumerate(shares) if i not in wrong]
        bulks = split_by_share(bulk, shares) if accepted else []
        return await self._shares.assign_lanes(Submission(executions=bulks, idempotency=wanted.idempotency))

    async def _resolve_each(
        self,
        wanted: SubmissionRequest,
        items: Sequence[bytes],
        stored: StoredJob,
        refused: dict[int, HoraeError] | None,
        unfit: Mapping[int, HoraeError],
        now: Instant,
        meter: Meter,
    ) -> Submission:
        """Resolve the items of a bulk one by one, because each may have its own keys or its own version of the job."""
        executions = []
        for i, item in enumerate(items):
            request = structs.replace(wanted.requests[0], params=Raw(bytes(item)))
            await self._params.yield_turn()
            try:
                if i in unfit:
                    raise unfit[i]
                with shared_budget(meter):
                    executions.append(self._execution(wanted, 0, request, stored, now))
            except HoraeError as error:
                if refused is None:
                    raise _placed(error, i, len(items)) from None
                refused[i] = error
        return Submission(executions=executions, idempotency=wanted.idempotency)

    async def _job(self, wanted: SubmissionRequest, request: Submit) -> StoredJob:
        stored = self._directory.jobs.cached(wanted.namespace, request.job) or await self._directory.jobs.get(
            wanted.namespace, request.job
        )
        if wanted.origin in BY_NAME:
            refuse_part(stored.job)
        self._directory.check_accepts(stored.queue)
        return stored

    def _execution(
        self, wanted: SubmissionRequest, index: int, request: Submit, stored: StoredJob, now: Instant
    ) -> NewExecution:
        item = self._opened(stored, bytes(request.params) or b"{}")
        if stored.choice is not None:
            stored = self._arm(stored, item, request.tags)
        spec, extra = stored.job.spec, _extra(wanted, index, request)
        self._params.check(whole_params(item, spec, repeats=extra.repeats), stored.job)
        envelope = with_circuit_key(self._envelope(wanted, request, stored, now), spec, item, request.tags)
        envelope = with_affinity_key(envelope, spec, item, request.tags)
        if stored.chosen:
            envelope = mark_rollout(envelope, stored.chosen)
        if extra.retry_of is not None:
            envelope = mark_replay(envelope)
        execution = NewExecution(
            envelope=envelope,
            rank_lead=self._lead(envelope),
            item=item,
            extra=extra,
            unique=None if request.key is None else (wanted.namespace, f"job:{stored.job.id}", _key(request.key)),
            unique_for=request.key_for if request.key_for is not None else spec.key_for,
            patience=_patience(request, stored),
            share=self._shares.share(stored, item, extra),
            rollout=stored.rolling,
        )
        execution = with_keys(execution, spec) if is_keyed(spec) else execution
        execution = with_deduplication(execution, spec) if spec.deduplicates else execution
        return structs.replace(execution, item=self._stored(stored, item)) if spec.sensitive else execution

    def _opened(self, stored: StoredJob, item: bytes) -> bytes:
        """Return params in plain form. Those of a rerun may arrive sealed."""
        return self._seals.open_params(stored.job.id, item)

    def _stored(self, stored: StoredJob, item: bytes) -> bytes:
        """Return params as they are stored."""
        return self._seals.seal_params(stored.job.id, item) if stored.job.spec.sensitive else item

    def _arm(self, stored: StoredJob, item: bytes, tags: Mapping[str, str]) -> StoredJob:
        """Return the version of a job that an execution runs while a rollout is on."""
        arm = arm_of(stored, item, tags, self._env)
        self._directory.check_accepts(arm.queue)
        return arm

    def _envelope(self, wanted: SubmissionRequest, request: Submit, stored: StoredJob, now: Instant) -> Envelope:
        check_key(request)
        spec, due_at = stored.job.spec, _due(request, now)
        return Envelope(
            namespace=wanted.namespace, job=stored.job.id, version=stored.job.version, queue=stored.queue,
            lane=stored.lane, priority=_priority(request.priority, spec.priority), due_at=due_at,
            deadline=deadline_of(request, spec.within, due_at, now), keys=spec.keys, parent=wanted.parent,
            delivery=AT_MOST_ONCE if spec.delivery == "at-most-once" else AT_LEAST_ONCE, bounds=spec.parcel_timeouts,
        )  # fmt: skip

    def _lead(self, envelope: Envelope) -> int:
        return self._directory.lead(envelope.queue, envelope.priority, envelope.job, envelope.deadline)


def check_key(request: Submit) -> None:
    """Refuse `keyFor` without a key, because the caller expects that repetitions are recognised. Raises BadInput."""
    if request.key_for is not None and request.key is None:
        raise BadInput("`keyFor` is given without `key`.", "Give `key`, too, or remove `keyFor`.", field="keyFor")


def _placed(error: HoraeError, index: int, count: int) -> HoraeError:
    """Add the item's index to an error if there are several items."""
    if count > 1:
        error.fields["index"] = index
        error.detail = f"Item {index}: {error.detail}"
    return error


def _extra(wanted: SubmissionRequest, index: int, request: Submit) -> Extra:
    base = wanted.extras[index] if wanted.extras is not None else Extra()
    if not (wanted.caller or request.tags or request.key or request.trace or wanted.origin):
        return base
    trace = checked_trace(request.trace)
    return structs.replace(
        base, origin=wanted.origin, caller=wanted.caller, tags=request.tags or base.tags, key=request.key,
        trace=trace or base.trace, trace_state=checked_state(request.trace_state) if trace else base.trace_state,
        interval=_interval(request) or base.interval,
        propagate=request.propagate and base.propagate,
    )  # fmt: skip


def _interval(request: Submit) -> tuple[Instant, Instant] | None:
    if request.interval is not None and request.interval[0] >= request.interval[1]:
        raise BadInput("The start of the interval is not before its end.", "Give an earlier start.", field="interval")
    return request.interval


def _patience(request: Submit, stored: StoredJob) -> Micros | None:
    """Return how long an execution waits for its job's dependencies; None if it waits for none."""
    spec = stored.job.spec
    return spec.dependency_timeout if request.wait_for_dependencies and spec.dependencies else None


def _priority(requested: int | None, default: int) -> int:
    if requested is None:
        return default
    if requested not in PRIORITIES:
        remedy = "Priorities run from 0 (least urgent) to 9 (most urgent); the default is 4."
        raise BadInput(f"priority {requested} is out of range.", remedy, field="priority")
    return requested


def _due(request: Submit, now: Instant) -> Instant:
    """Return the due time of a request. 0 stands for now: the instant of the commit."""
    if request.delay is not None and request.at is not None:
        raise BadInput("Both `delay` and `at` are given.", "Give only one of them.", field="delay")
    at = request.at if request.at is not None else now + request.delay if request.delay else 0
    if at > now + FAR:
        raise BadInput("The execution would be due more than 50 years from now.", "Check the year of `at`.", field="at")
    return at if at > now else 0


def _key(key: str) -> str:
    if not 0 < len(key) <= MOST_KEY:
        raise BadInput(f"key has {len(key)} characters.", f"Use 1 to {MOST_KEY} characters.", field="key")
    return key


def deadline_of(request: Submit, usual: Micros | None, due_at: Instant, now: Instant) -> Instant | None:
    """Return the deadline of a request or of its job, or None. Raises BadInput for a deadline that cannot be met."""
    if request.deadline is None and request.within is None:
        return deadline_after(due_at or now, usual)
    if request.deadline is not None and request.within is not None:
        raise BadInput("deadline and within are both given.", "Give one of them.", field="within")
    start = due_at or now
    if request.within is not None:
        if request.within == 0:
            raise BadInput("within cannot be 0.", 'Say how long it may take, such as "5m".', field="within")
        return deadline_after(start, request.within)
    assert request.deadline is not None
    if request.deadline <= start:
        problem = "has passed" if request.deadline <= now else f"is before the due time ({format_instant(start)})"
        remedy = "Give a deadline that can still be met, or remove the deadline."
        raise BadInput(f"The deadline {format_instant(request.deadline)} {problem}.", remedy, field="deadline")
    return request.deadline


def whole_params(item: bytes, spec: Spec, *, repeats: bool) -> bytes:
    """Return the params that an execution will see, as far as they are known: a batch gets a list of items.

    The params of an execution that runs again already have this form.
    """
    return item if spec.batch is None or repeats else start_batch(item)


def with_deduplication(execution: NewExecution, spec: Spec) -> NewExecution:
    """Return a submission with the deduplication keys of its job's rules. Raises BadInput when one cannot be filled in.

    An execution that runs again is not batched, debounced or answered from the cache, because a user wants it to run.
    Only a live execution with the same unique key conflicts with it, not the one that ended.
    """
    if execution.extra.repeats:
        live = None if spec.unique is None else structs.replace(spec.unique, span=None, keep="first")
        return structs.replace(execution, deduplication=unique_key(spec, execution.item, live))
    refuse_timed(spec, delayed=execution.envelope.due_at > 0, waits=execution.patience is not None)
    return structs.replace(
        execution,
        deduplication=deduplication_keys(
            spec, execution.envelope, execution.item, execution.extra.tags, execution.share
        ),
    )


def with_keys(execution: NewExecution, spec: Spec) -> NewExecution:
    """Return an execution with its job's key templates filled in. Raises BadInput when one cannot be filled in."""
    envelope = execution.envelope
    keys = envelope_keys(envelope.keys, envelope.job, spec, execution.item, execution.extra.tags)
    return structs.replace(execution, envelope=structs.replace(envelope, keys=keys))


def keys_of_bulk(stored: StoredJob, items: Sequence[bytes], terms: Submit) -> str:
    """Return the common keys of a bulk's items, or MIXED.

    An invalid item also gives MIXED; its error is reported later.
    """
    spec = stored.job.spec
    try:
        return common_keys(spec.keys, stored.job.id, spec, items, terms.tags) or MIXED
    except (BadInput, ValueError):
        return MIXED
