"""What follows a failure: try again after a delay, or give up."""

from random import Random
from typing import Literal

from msgspec import Struct

from horae.env import SECOND, Instant, Micros
from horae.model.protocol import Failure

POISON_BOUND = 3  # losses with their worker after which an execution is quarantined


class RetryPolicy(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How often and how soon the job's own failures are tried again.

    `delays` lists the waits one by one (the last repeats); otherwise they grow from `delay` by `factor` up to `max`,
    each lengthened or shortened by at most the share `jitter`.
    """

    retries: int = 0
    delay: Micros = SECOND
    factor: float = 2.0
    max: Micros = 300 * SECOND
    jitter: float = 0.1
    delays: tuple[Micros, ...] = ()
    permanent: tuple[str, ...] = ()  # error types that no retry will help

    def wait(self, failures: int, rng: Random) -> Micros:
        """The wait after the n-th failure (n from 1)."""
        if self.delays:
            base = self.delays[min(failures, len(self.delays)) - 1]
        else:
            base = min(self.max, int(self.delay * self.factor ** min(failures - 1, 64)))
        return int(base * (1 + self.jitter * rng.uniform(-1, 1)))


class RetryAt(Struct, frozen=True):
    """Try again at this instant."""

    at: Instant


class GiveUp(Struct, frozen=True):
    """No further try: the execution ends as failed, among the dead letters, for this reason."""

    reason: Literal["retries", "permanent", "poison", "delivery", "cancelled"]


def after_failure(failures: int, failure: Failure, policy: RetryPolicy, now: Instant, rng: Random) -> RetryAt | GiveUp:
    """Decide what follows the job's own failure; `failures` counts this one. Lost workers are counted elsewhere."""
    if failure.permanent or failure.type in policy.permanent:
        return GiveUp("permanent")
    if failures > policy.retries:
        return GiveUp("retries")
    if failure.retry_after is not None:
        return RetryAt(now + failure.retry_after)
    return RetryAt(now + policy.wait(failures, rng))


def after_loss(losses: int, at_most_once: bool) -> GiveUp | None:
    """Decide what follows the loss of a worker; None means back to the queue. `losses` counts this one."""
    if at_most_once:
        return GiveUp("delivery")
    return GiveUp("poison") if losses >= POISON_BOUND else None
