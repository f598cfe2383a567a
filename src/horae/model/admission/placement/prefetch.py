"""The rule that keeps prefetched work from delaying better ranked work.

A worker holds executions of short jobs beyond its idle slots: about 100 ms of work. An execution that ranks well before
them must not wait behind them. So nothing is prefetched past it, and prefetched items are returned when it arrives.
"""

from horae.env import SECOND
from horae.model.admission.placement.preempt import is_in_front

MARGIN = 1 * SECOND  # of rank: a smaller difference is not worth a return; a level of priority is 60 seconds


def goes_before(waiting: int, held: int) -> bool:
    """Return whether an item that waits at one rank must not wait behind prefetched items of another."""
    return waiting + MARGIN < held or (is_in_front(waiting) and not is_in_front(held))
