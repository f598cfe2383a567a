"""The decision after a failure: retry after a delay, or give up."""

from collections.abc import Mapping
from random import Random
from typing import Annotated, Literal, get_args

from msgspec import Struct

from horae.env import SECOND, Instant, Micros
from horae.model.definitions.failure_rules import matches
from horae.model.fields.kinds import Integer
from horae.model.fields.table import Field, Object
from horae.model.fleet.protocol import Failure, FailureKind

LOST = 2  # default number of retries after a lost worker

Reason = Literal[
    "retries",
    "permanent",
    "platform",
    "poison",
    "delivery",
    "cancelled",
    "queueTimeout",
    "startTimeout",
    "runTimeout",
    "heartbeatTimeout",
    "totalTimeout",
]
# Timeouts by the type of their error. Any other timeout that a worker reports counts as a run timeout.
TIMEOUTS: Mapping[str, Reason] = {
    "QueueTimeout": "queueTimeout",
    "StartTimeout": "startTimeout",
    "RunTimeout": "runTimeout",
    "HeartbeatTimeout": "heartbeatTimeout",
    "TotalTimeout": "totalTimeout",
}
LAST_TIMEOUTS = ("QueueTimeout", "TotalTimeout")  # these end the execution: no retry follows
MOST_RETRIES = 1000
MOST_LOST = 100
_BUDGETS = (
    'Write how many further tries each class of failure has: {"error": 3, "timeout": 1, "lost": 2, "platform": 5}.'
)
_TRIES = Integer(0, MOST_RETRIES, _BUDGETS)
KINDS: tuple[FailureKind, ...] = get_args(FailureKind)
FailureCounts = Mapping[str, int]  # class of failure -> earlier failures of this class


class Budgets(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The number of retries for each class of failure.

    The classes are the job's own error, a timeout, a lost worker, and a fault of the platform. Classes without a budget
    of their own share the `retries` of the policy; only lost workers have a budget of `LOST` by default.
    """

    error: Annotated[int | None, Field(_TRIES, "Further tries after the job's own error.", example=3)] = None
    timeout: Annotated[int | None, Field(_TRIES, "Further tries after a timeout.", example=1)] = None
    lost: Annotated[
        int | None, Field(Integer(0, MOST_LOST, _BUDGETS), "Further tries after its worker was lost.", example=2)
    ] = None
    platform: Annotated[int | None, Field(_TRIES, "Further tries after a fault of the platform.", example=5)] = None

    def of(self, kind: FailureKind) -> int | None:
        budget: int | None = getattr(self, kind)
        return budget

    @property
    def own(self) -> tuple[FailureKind, ...]:
        """Return the classes, except lost workers, that have their own budget."""
        return tuple(kind for kind in KINDS if kind != "lost" and self.of(kind) is not None)


BUDGETS = Object(Budgets, _BUDGETS, what="budgets")


class RetryPolicy(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The number and the delays of retries, and the failures to retry.

    `delays` lists the wait before each retry; its last element also applies to all further retries. Without `delays`,
    the waits grow from `delay` by `factor` up to `max`. Each wait is changed at random by at most the share `jitter`.
    """

    retries: int = 0
    delay: Micros = SECOND
    factor: float = 2.0
    max: Micros = 300 * SECOND
    jitter: float = 0.1
    delays: tuple[Micros, ...] = ()
    budgets: Budgets = Budgets()
    retry_on: tuple[str, ...] = ()  # the only errors of the job that are retried; empty: all
    give_up_on: tuple[str, ...] = ()  # failures that are not retried
    within: Micros | None = None  # the time for all attempts together, from the time the execution was due

    def wait(self, failures: int, rng: Random) -> Micros:
        """Return the wait after the n-th failure (n from 1)."""
        if self.delays:
            base = self.delays[min(failures, len(self.delays)) - 1]
        else:
            base = min(self.max, int(self.delay * self.factor ** min(failures - 1, 64)))
        return int(base * (1 + self.jitter * rng.uniform(-1, 1)))

    def is_spent(self, failures: int, kind: FailureKind, spent: FailureCounts) -> bool:
        """Return whether this failure exceeds the budget of its class.

        `failures` counts all failures of the execution, including this one, but not lost workers. `spent` counts
        earlier failures of classes with a budget of their own.
        """
        budget = self.budgets.of(kind)
        if budget is not None:
            return spent.get(kind, 0) + 1 > budget
        return failures - sum(spent.get(own, 0) for own in self.budgets.own) > self.retries

    @property
    def most_tries(self) -> int:
        """Return the largest budget of retries."""
        return max(self.retries, *(self.budgets.of(kind) or 0 for kind in KINDS))


class RetryAt(Struct, frozen=True):
    """A retry at this instant."""

    at: Instant


class NoRetry(Struct, frozen=True):
    """No retry: the execution fails and becomes a dead letter, for this reason."""

    reason: Reason


def after_failure(
    failures: int,
    failure: Failure,
    policy: RetryPolicy,
    now: Instant,
    rng: Random,
    *,
    exit_code: int | None = None,
    spent: FailureCounts | None = None,
    ends_at: Instant | None = None,
) -> RetryAt | NoRetry:
    """Decide what follows a failed attempt; `failures` counts this one. Lost workers are counted separately.

    `spent` counts earlier failures of classes with their own budget. The execution must end before `ends_at`, so there
    is no retry that would start then or later.
    """
    if failure.type in LAST_TIMEOUTS and failure.kind == "timeout":
        return NoRetry(TIMEOUTS[failure.type])
    if failure.permanent or not _may_help(failure, policy, exit_code):
        return NoRetry("permanent")
    if policy.is_spent(failures, failure.kind, spent or {}):
        return NoRetry(_spent(failure))
    after = failure.retry_after if failure.retry_after is not None else policy.wait(failures, rng)
    return NoRetry("totalTimeout") if ends_at is not None and now + after >= ends_at else RetryAt(now + after)


def _may_help(failure: Failure, policy: RetryPolicy, exit_code: int | None) -> bool:
    """Return whether the job's rules allow a retry of this failure; `retryOn` applies to its own errors only."""
    if policy.give_up_on and matches(policy.give_up_on, failure, exit_code):
        return False
    return failure.kind != "error" or not policy.retry_on or matches(policy.retry_on, failure, exit_code)


def _spent(failure: Failure) -> Reason:
    if failure.kind == "timeout":
        return TIMEOUTS.get(failure.type, "runTimeout")
    return "platform" if failure.kind == "platform" else "retries"
