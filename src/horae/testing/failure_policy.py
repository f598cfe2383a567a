"""Decide what follows an attempt of the inline runner, by the same functions as the engine."""

from collections import Counter
from random import Random
from typing import Any

from horae.env import Instant
from horae.model.definitions.reading.read import parse_definition
from horae.model.definitions.retry import NoRetry, RetryAt
from horae.model.executions.parcel import AT_LEAST_ONCE, AT_MOST_ONCE
from horae.model.executions.settle import FailurePolicy
from horae.model.fleet.protocol import Failure
from horae.model.fleet.suspects import Loss, after_loss
from horae.worker.code.failure import TIMED_OUT, outcome_of


class TimedOut(TimeoutError):
    """An attempt, or all attempts together, took longer than the job allows."""

    def __init__(self, kind: str) -> None:
        self.failure = TIMED_OUT[kind].error
        super().__init__("" if self.failure is None else self.failure.message)


class _Middle(Random):
    """A random generator that always returns the middle of a range, so that delays in tests have no jitter."""

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2


class ExecutionRules:
    """The rules of a job for timeouts and retries, applied to one execution, whose failures are counted here."""

    def __init__(self, job: Any, began: Instant) -> None:
        spec = parse_definition(job.definition(), namespace_name="default", created_at=began).spec
        self._retry_function = getattr(job, "retry_function", None)
        self.spec = spec
        self._began, self._timeout, self._retry = began, spec.timeout, spec.retry
        self._delivery = AT_MOST_ONCE if spec.delivery == "at-most-once" else AT_LEAST_ONCE
        self._failed: Counter[str] = Counter()
        self._losses = 0

    @property
    def rules(self) -> FailurePolicy:
        tried = tuple((0, 1, kind, times) for kind, times in self._failed.items())
        return FailurePolicy(retry=self._retry, delivery=self._delivery, due_at=self._began, failure_counts=tried)

    def limit(self, now: Instant) -> tuple[Instant, str] | None:
        """Return when an attempt that begins now must end, and the name of the timeout, or None without a timeout."""
        run = [] if self._timeout is None else [(now + self._timeout, "timeout")]
        total = self.rules.ends_at
        return min([*run, *([] if total is None else [(total, "total")])], default=None)

    def deadline(self, now: Instant) -> Instant | None:
        """Return the value of `ctx.deadline` for an attempt that begins now."""
        limit, within = self.limit(now), self.spec.within
        ends = [*([] if limit is None else [limit[0]]), *([] if within is None else [self._began + within])]
        return min(ends, default=None)

    def after_failure(self, error: BaseException, failures: int, now: Instant) -> RetryAt | NoRetry:
        """Decide what follows a failed attempt. `failures` is the number of failures so far, including this one."""
        failure = self._failure(error, failures)
        [(_, _, spent)] = self.rules.spent(0, 1)
        decision = self.rules.decide(failures, failure, now, _Middle(), spent=spent)
        self._failed[failure.kind] += 1
        return decision

    def after_crash(self) -> NoRetry | None:
        """Decide what follows a crash: return None for another attempt, or the reason why there is none."""
        self._losses += 1
        loss = Loss(tries=self._retry.budgets.lost)
        return after_loss(self._losses, self._losses, self._delivery == AT_MOST_ONCE, loss)

    def _failure(self, error: BaseException, failures: int) -> Failure:
        told = error.failure if isinstance(error, TimedOut) else outcome_of(error, self._retry_function, failures).error
        return told or Failure(type=type(error).__name__)
