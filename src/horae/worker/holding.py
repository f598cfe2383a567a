"""The work that a worker holds: granted slices, backlogs of unstarted items, and the chunks that slots work on.

The loop's thread owns all of it. A thread that runs a chunk touches only the chunk's three deques `left`, `at` and
`done`, whose operations are atomic: the thread takes items from the front of `left`, while the loop may remove items.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol
from uuid import UUID

import msgspec
from msgspec import Raw, Struct

from horae.env import SECOND, Instant
from horae.model.admission.placement.placement import PLAIN
from horae.model.base.ids import execution_id
from horae.model.definitions.job import Spec
from horae.model.executions.execution import Extra
from horae.model.fleet.protocol import Grant, OutcomeKind, ReportedFailure
from horae.worker.pace import may_fetch_ahead
from horae.worker.secrets import HeldSecrets, ParamsUnavailable, ReceivedSecrets, SecretProviders, reuse_secrets


class ItemOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of an item. A success with nothing but a result is represented by the encoded result instead."""

    outcome: OutcomeKind
    error: ReportedFailure | None = None
    exit_code: int | None = None
    result: bytes = b"null"
    wake_at: Instant | None = None  # if suspended: when to resume at the latest
    waits: tuple[str, ...] = ()  # if suspended: the steps that wait for a signal


RELEASED = ItemOutcome(outcome="released")
CANCELLED = ItemOutcome(outcome="cancelled")


class StartFence(Protocol):
    """An object, such as a session, with the monotonic time from which no item may start."""

    fence: float


_NO_EXTRA = Extra()


class HeldSlice:
    """A granted slice, held until the server has answered the exchange with the last of its outcomes."""

    __slots__ = (
        "_extras",
        "applied_requests",
        "backlog",
        "confirmed",
        "grant",
        "held_at",
        "order",
        "received",
        "secrets",
        "traced",
        "unconfirmed",
    )

    def __init__(self, grant: Grant, backlog: "JobBacklog", number: int = 0, held_at: float = 0.0) -> None:
        self.grant = grant
        self.held_at = held_at  # a time of the monotonic clock
        self.backlog = backlog
        self.order = number << 16  # sorts slices by arrival; `order + index` sorts items
        self.unconfirmed = grant.hi - grant.lo  # items without an outcome in an answered exchange
        self.confirmed: list[tuple[int, int]] = []  # the ranges of the other items
        self.applied_requests: set[tuple[int, str]] = set()  # the server's requests (item, kind) that were applied
        self._extras: list[Extra] | None = None
        self.traced = b'"trace":' in bytes(grant.extras)  # whether an item may belong to a trace
        self.received: ReceivedSecrets | None = None  # the secrets of the job that the server sent
        self.secrets: HeldSecrets | None = None  # all secrets of the job, once its first chunk has started

    def provide(self, providers: SecretProviders) -> None:
        """Look up the job's secrets, unless this was done before.

        Raises SecretUnavailable if a secret is missing, and its subclass ParamsUnavailable if the params are.
        """
        if self.grant.problem:
            raise ParamsUnavailable(f"the server could not provide the params: {self.grant.problem}")
        if self.secrets is None and self.received is not None:
            values = providers.hold(self.backlog.references, self.received)
            self.backlog.secrets = self.secrets = reuse_secrets(values, self.backlog.secrets)

    def item(self, index: int) -> Raw:
        """Return the params of one item as they were submitted."""
        return self.grant.items[index - self.grant.lo]

    def execution(self, index: int) -> UUID:
        return execution_id(self.grant.parcel, index)

    def extra(self, index: int) -> Extra:
        """Return the data that belongs to one item alone."""
        if not self.grant.extras:
            return _NO_EXTRA
        if self._extras is None:
            decoded = msgspec.json.decode(self.grant.extras, type=Extra | list[Extra])
            self._extras = decoded if isinstance(decoded, list) else [decoded] * (self.grant.hi - self.grant.lo)
        return self._extras[index - self.grant.lo]


Item = tuple[HeldSlice, int]
StartedItem = tuple[HeldSlice, int, float]  # a slice, an item, and the monotonic time of its start
# An ended item: its slice and index, monotonic start and end (None: never started), and its result or outcome.
EndedItem = tuple[HeldSlice, int, float | None, float | None, bytes | ItemOutcome]


def masked(ending: EndedItem) -> EndedItem:
    """Mask the secrets of an item in its ending."""
    held_slice, index, started, ended, outcome = ending
    if held_slice.secrets is None:
        return ending
    return held_slice, index, started, ended, held_slice.secrets.mask_outcome(outcome)


class JobBacklog:
    """The unstarted items of one version of a job, and the chunks that run its items."""

    __slots__ = (
        *("chunks", "cost", "is_sensitive", "job", "plan", "problem", "ready", "references", "secrets", "spec"),
        *("spread", "used_at", "version"),
    )

    def __init__(self, job: UUID, version: int, spec: Spec | None, problem: str = "") -> None:
        self.job = job
        self.version = version
        self.spec = spec
        self.cost = spec.cost if spec is not None else PLAIN  # the cost of each chunk: its items run in sequence
        self.problem = problem  # the reason why there is no spec
        self.references = spec.references if spec is not None else ()  # the references to secrets
        self.is_sensitive = spec is not None and spec.sensitive
        self.secrets: HeldSecrets | None = None  # those of the latest slice
        self.ready: deque[Item] = deque()  # items that are in no chunk
        self.chunks: dict[Chunk, None] = {}  # chunks that slots work on, in the order they were taken
        self.spread: dict[Chunk, None] = {}  # the chunks of more than one item
        self.used_at = 0.0  # a time of the monotonic clock
        self.plan: Any = None  # the `PreparedJob` that the loop makes from the spec

    @property
    def start_within(self) -> float | None:
        """Return the seconds within which its items must start once they are held."""
        start = None if self.spec is None else self.spec.timeouts.start
        return None if start is None else start / SECOND

    @property
    def may_fetch_ahead(self) -> bool:
        return self.spec is not None and may_fetch_ahead(self.spec)

    def __len__(self) -> int:
        """Count the items that have not started."""
        return len(self.ready) + sum(len(chunk.left) for chunk in self.spread)


class Chunk:
    """Items of one backlog that a slot runs one after another."""

    __slots__ = ("at", "backlog", "done", "fence", "left", "run", "size")

    def __init__(self, fence: StartFence, backlog: JobBacklog, items: deque[Item]) -> None:
        self.fence = fence
        self.backlog = backlog
        self.size = len(items)
        self.left = items  # unstarted items: the slot takes from the front, the loop from anywhere
        self.at: deque[StartedItem] = deque()  # the running item; the thread that removes it decides its outcome
        self.done: deque[EndedItem] = deque()  # ended and not collected yet
        self.run: Any = None  # owned by the runner

    def begin(self, now: float) -> StartedItem | None:
        """Start the next item; return None if none is left or the session may have expired."""
        if now >= self.fence.fence:
            return None
        try:
            held_slice, index = self.left.popleft()
        except IndexError:
            return None
        begun = (held_slice, index, now)
        self.at.append(begun)
        return begun

    def end(self, begun: StartedItem, now: float, outcome: bytes | ItemOutcome) -> bool:
        """End a started item; return False if its outcome is decided already."""
        try:
            self.at.remove(begun)
        except ValueError:
            return False
        self.done.append((begun[0], begun[1], begun[2], now, outcome))
        return True

    def running(self) -> StartedItem | None:
        """Return the item that runs now, if any."""
        try:
            return self.at[0]
        except IndexError:
            return None

    def take_back(self) -> Iterator[Item]:
        """Take the unstarted items away from the slot, the last item first."""
        while True:
            try:
                yield self.left.pop()
            except IndexError:
                return

    def collect(self) -> list[EndedItem]:
        """Take out the items that have ended so far."""
        endings: list[EndedItem] = []
        while True:
            try:
                endings.append(self.done.popleft())
            except IndexError:
                return endings
