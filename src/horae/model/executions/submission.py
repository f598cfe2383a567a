"""Requests for executions and the answers to them, as the store's submitting functions use them."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant, Micros
from horae.model.executions.deduplication import DeduplicationKey
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import Envelope, Parcel
from horae.model.executions.slice import RunningSlice

GRAIN = 10_000  # microseconds to which deadlines are rounded up, so that more executions share a parcel

UniqueKey = tuple[int, str, str]  # namespace, scope, key


class NewExecution(Struct, frozen=True, kw_only=True, gc=False):
    """One requested execution that has been checked against its job: its envelope, its item and its keys."""

    envelope: Envelope  # due_at 0 means "now": the instant at which the store writes a batch of requests
    rank_lead: int  # microseconds by which its rank is before its arrival, see model/admission/rank.py
    item: bytes
    extra: Extra = Extra()
    unique: UniqueKey | None = None  # the key of the submission, with which a repeat gets the same execution
    unique_for: int = 0  # microseconds for which this key stays taken
    patience: Micros | None = None  # how long it waits for its job's dependencies; None: it does not
    share: str = ""  # its share of a fair queue; the envelope does not have the share's lane yet
    deduplication: tuple[DeduplicationKey, ...] = ()  # its keys under the job's deduplication rules
    rollout: int | None = None  # the number of the rollout that chose its version


class NewBulk(Struct, frozen=True, kw_only=True):
    """Many executions that were requested at once with the same properties, without keys of submissions."""

    envelope: Envelope
    rank_lead: int
    items: Sequence[bytes]
    extra: Extra = Extra()
    share: str = ""
    unique: None = None
    patience: Micros | None = None
    deduplication: tuple[()] = ()
    rollout: None = None


NewItems = NewExecution | NewBulk


class Idempotency(Struct, frozen=True):
    """The idempotency key of a request: a repeat with the same body gets the stored answer, another body is refused."""

    namespace: int
    route: str
    key: str
    body_hash: bytes
    until: Instant


class Submission(Struct, frozen=True, kw_only=True):
    """One request: executions that are accepted together."""

    executions: Sequence[NewItems]
    idempotency: Idempotency | None = None


class Receipt(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The answer for one requested execution, or for `count` consecutive executions of a parcel."""

    execution_id: UUID
    deduplicated: bool = False
    state: str = "queued"
    count: int = 1
    cached: bool = False  # its result came from the cache
    batched: bool = False
    index: int | None = None  # its place in the batch


class RepeatedRequest(Struct, frozen=True):
    """A request that was answered before."""

    answer: list[Receipt]


class ReusedKey(Struct, frozen=True):
    """An idempotency key that belongs to another body."""


SubmissionAnswer = list[Receipt] | RepeatedRequest | ReusedKey


class SubmitResult(Struct, frozen=True):
    """The result of a transaction that stores submissions.

    `answers` are in the order of the submissions; `parcels` were written. `lanes` (with their lowest new rank) and
    `wake_at` are for hints. Slices of `running` were handed to workers at once. The params of parcels of `windows`
    (debounce and batch) may still change, so these parcels must not be cached.
    """

    answers: list[SubmissionAnswer]
    parcels: list[Parcel]
    lanes: dict[int, int]
    wake_at: Instant | None
    running: list[RunningSlice] = []
    windows: list[Parcel] = []


def deadline_after(since: Instant, within: Micros | None) -> Instant | None:
    """Return the instant that is `within` after `since`, rounded up; None if `within` is None."""
    return None if within is None else -(-(since + within) // GRAIN) * GRAIN
