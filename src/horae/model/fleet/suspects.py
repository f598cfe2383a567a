"""Suspects: executions that were lost with their worker at least twice, and the number that a session may hold.

The scheduler cannot know which of a lost worker's executions killed it, if any: most workers are killed from outside.
So a first loss changes nothing. From the second loss on, a session holds only a limited number of suspects: half as
many as it has slots if they were lost twice, a quarter if one was lost three times, and so on. So an execution that
kills its workers is lost together with half as many other suspects each time, and finally as the only one, while the
harmless suspects finish.
"""

from msgspec import Struct, structs

from horae.model.definitions.retry import LOST, NoRetry

SUSPECT = 2  # losses that make an execution a suspect


def is_suspect(losses: int) -> bool:
    """Return whether an execution with these losses is a suspect."""
    return losses >= SUSPECT


def most_suspects(losses: int, slots: int) -> int:
    """Return how many suspects a session with this number of slots may hold when one of them was lost this often."""
    return max(1, slots >> (losses - 1))


class SessionSuspects(Struct, frozen=True, kw_only=True):
    """The suspects that a session holds: their number (`held`), and the largest number of losses of one of them."""

    slots: int
    held: int = 0
    losses: int = 0

    def room(self, losses: int) -> int:
        """Return how many more suspects with these losses it may hold."""
        return max(0, most_suspects(max(losses, self.losses), self.slots) - self.held)

    def joined(self, losses: int, count: int) -> "SessionSuspects":
        """Return the suspects of the session after it got `count` more."""
        return structs.replace(self, held=self.held + count, losses=max(losses, self.losses))


class Loss(Struct, frozen=True, kw_only=True):
    """The circumstances of a lost worker."""

    slots: int = 1  # the slots of the lost worker
    alone: bool = True  # the worker held only this execution
    tries: int | None = None  # the job's own number of further tries after losses


def tries(slots: int) -> int:
    """Return how often an execution is tried again if its lost workers had this many slots and held other executions.

    The number is twice the number of losses after which it is the only suspect that its session holds.
    """
    return LOST + 2 * (max(1, slots).bit_length() - 1)


def after_loss(losses: int, alone: int, at_most_once: bool, loss: Loss) -> NoRetry | None:
    """Decide what follows the loss of a worker; None means that the execution goes back to the queue.

    `losses` counts the lost workers of the execution, `alone` those that held only this execution; both include this
    loss. A lost worker that held only this execution is evidence that the execution kills workers; three of them
    suffice. A lost worker that held more executions is weak evidence, because workers that are killed from outside
    again and again must not end their executions.
    """
    if at_most_once:
        return NoRetry("delivery")
    if loss.tries is not None:
        return NoRetry("poison") if losses > loss.tries else None
    return NoRetry("poison") if alone > LOST or losses > tries(loss.slots) else None
