"""Suspects: executions that were lost with their worker twice or more, and how many of them a session may hold.

Nobody knows which of the executions that a worker held has killed it, or whether one has: most workers are killed from
outside. So a first loss changes nothing. From the second on the suspects run in halves: a session takes as many as half
its slots of those that were lost twice, a quarter of those that were lost three times, and so on. An execution that
kills its workers is lost with half as many others each time, and in the end as the only suspect; its neighbours finish.
"""

from msgspec import Struct, structs

from horae.model.definitions.retry import LOST, NoRetry

SUSPECT = 2  # losses from which on an execution is a suspect


def is_suspect(losses: int) -> bool:
    """Whether a session holds executions with these losses in halves."""
    return losses >= SUSPECT


def most(losses: int, slots: int) -> int:
    """How many suspects a session of so many slots may hold when one of them was lost so often."""
    return max(1, slots >> (losses - 1))


class SessionSuspects(Struct, frozen=True, kw_only=True):
    """The suspects that a session holds: how many, and the most losses of one."""

    slots: int
    held: int = 0
    losses: int = 0

    def room(self, losses: int) -> int:
        """How many more suspects it may hold that were lost so often."""
        return max(0, most(max(losses, self.losses), self.slots) - self.held)

    def joined(self, losses: int, count: int) -> "SessionSuspects":
        """The same with so many more."""
        return structs.replace(self, held=self.held + count, losses=max(losses, self.losses))


class Loss(Struct, frozen=True, kw_only=True):
    """How a worker was lost."""

    slots: int = 1
    alone: bool = True  # it held this execution and nothing else
    tries: int | None = None  # how often the execution is tried again after losses, if its job says so


def tries(slots: int) -> int:
    """How often an execution is tried again that was lost with workers of so many slots, beside others.

    Each halving of the suspects is tried twice. At its last two losses it is the only suspect.
    """
    return LOST + 2 * (max(1, slots).bit_length() - 1)


def after_loss(losses: int, alone: int, at_most_once: bool, loss: Loss) -> NoRetry | None:
    """Decide what follows the loss of a worker; None means back to the queue. `losses` and `alone` count this one.

    The loss of a worker that held nothing else is evidence, and three of them suffice. The loss of one that held more
    is hardly any: a worker that is killed from outside again and again must not end what it happens to run.
    """
    if at_most_once:
        return NoRetry("delivery")
    if loss.tries is not None:
        return NoRetry("poison") if losses > loss.tries else None
    return NoRetry("poison") if alone > LOST or losses > tries(loss.slots) else None
