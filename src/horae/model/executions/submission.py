"""What is asked for and what it is answered, as the submitting moves speak of them."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant, Micros
from horae.model.executions.deduplication import DeduplicationKey
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import Envelope, Parcel
from horae.model.executions.slice import Running

GRAIN = 10_000  # microseconds to which a deadline is rounded up: executions made together may travel together

UniqueKey = tuple[int, str, str]  # namespace, scope, key


class NewExecution(Struct, frozen=True, kw_only=True, gc=False):
    """One execution asked for, resolved: its envelope (without the batch's instant), its item and its keys."""

    envelope: Envelope  # due_at 0 stands for "now": the batch's instant
    rank_lead: int  # how far its rank lies before its arrival
    item: bytes
    extra: Extra = Extra()
    unique: UniqueKey | None = None
    unique_for: int = 0
    patience: Micros | None = None  # how long it waits for what its job depends on; None: it does not
    share: str = ""  # of a fair queue, whose lane is still to be looked up
    meets: tuple[DeduplicationKey, ...] = ()  # what it shares with others of its job
    rolling: int | None = None  # the number of the rollout that chose its version


class NewBulk(Struct, frozen=True, kw_only=True):
    """Many executions asked for at once on the same terms, without keys."""

    envelope: Envelope
    rank_lead: int
    items: Sequence[bytes]
    extra: Extra = Extra()
    share: str = ""
    unique: None = None
    patience: Micros | None = None
    meets: tuple[()] = ()
    rolling: None = None


NewItems = NewExecution | NewBulk


class Idempotency(Struct, frozen=True):
    """A request's own key: a repeat is answered with the stored answer, another body is refused."""

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
    """What became of an execution asked for, or of `count` of a lot that stand one after another in a parcel."""

    execution_id: UUID
    deduplicated: bool = False
    state: str = "queued"
    count: int = 1
    cached: bool = False  # its result was there already
    batched: bool = False
    index: int | None = None  # its place in the batch


class RepeatedRequest(Struct, frozen=True):
    """The request was answered before."""

    answer: list[Receipt]


class ReusedKey(Struct, frozen=True):
    """The idempotency key belongs to another body."""


SubmissionAnswer = list[Receipt] | RepeatedRequest | ReusedKey


class SubmitResult(Struct, frozen=True):
    """Answers in the order of the submissions; the parcels written; lanes and timers to hint; and what already runs.

    Parcels of `windows` may still change: nobody may keep them.
    """

    answers: list[SubmissionAnswer]
    parcels: list[Parcel]
    lanes: dict[int, int]
    wake_at: Instant | None
    running: list[Running] = []
    windows: list[Parcel] = []


def deadline_after(since: Instant, within: Micros | None) -> Instant | None:
    """Return the instant that lies `within` after another; None without a span."""
    return None if within is None else -(-(since + within) // GRAIN) * GRAIN
