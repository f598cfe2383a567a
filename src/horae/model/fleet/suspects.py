"""Suspects: executions that were lost with their worker at least twice, and the number that a session may hold.

The scheduler cannot know which of a lost worker's executions killed it, if any: most workers are killed from outside.
So a first loss changes nothing. From the second on, suspects run in halves: a session takes up to half its slots of
executions lost twice, a quarter of those lost three times, and so on. An execution that kills its workers is lost with
half as many others each time, and finally as the only suspect, while its neighbours finish.
"""

from msgspec import Struct, structs

from horae.model.definitions.retry import LOST, NoRetry

SUSPECT = 2  # losses that make an execution a suspect


def is_suspect(losses: int) -> bool:
    """Return whether an execution with these losses is a suspect."""
    return losses >= SUSPECT


def most(losses: int, slots: int) -> int:
    """Return how many suspects a session may hold when one of them was lost this often."""
    return max(1, slots >> (losses - 1))


class SessionSuspects(Struct, frozen=True, kw_only=True):
    """The suspects that a session holds: their number, and the most losses of any."""

    slots: int
    held: int = 0
    losses: int = 0

    def room(self, losses: int) -> int:
        """Return how many more suspects with these losses it may hold."""
        return max(0, most(max(losses, self.losses), self.slots) - self.held)

    def joined(self, losses: int, count: int) -> "SessionSuspects":
        """Return the suspects with `count` more."""
        return structs.replace(self, held=self.held + count, losses=max(losses, self.losses))


class Loss(Struct, frozen=True, kw_only=True):
    """The circumstances of a lost worker."""

    slots: int = 1
    alone: bool = True  # the worker held only this execution
    tries: int | None = None  # the job's own bound on tries after losses


def tries(slots: int) -> int:
    """Return how often an execution is tried again after losses of workers with this many slots and other executions.

    Each halving of the suspects is tried twice. At its last two losses it is the only suspect.
    """
    return LOST + 2 * (max(1, slots).bit_length() - 1)


def after_loss(losses: int, alone: int, at_most_once: bool, loss: Loss) -> NoRetry | None:
    """Decide what follows the loss of a worker; None means back to the queue. `losses` and `alone` count this loss.

    The loss of a worker that held only this execution is evidence, and three of them suffice. The loss of a worker that
    held more is weak evidence: workers that are killed from outside again and again must not end their executions.
    """
    if at_most_once:
        return NoRetry("delivery")
    if loss.tries is not None:
        return NoRetry("poison") if losses > loss.tries else None
    return NoRetry("poison") if alone > LOST or losses > tries(loss.slots) else None
