"""What workers hold ready, and what goes before it.

A worker is given executions of short jobs beyond its idle slots: about 100 ms of work. Something that ranks well before
those must not wait behind them. So nothing is fetched ahead past it, and what was fetched goes back when it comes.
"""

from horae.env import SECOND
from horae.model.admission.placement.preempt import is_in_front

MARGIN = 1 * SECOND  # of rank: arrivals that lie closer together are not worth the way back; a level of priority is 60


def goes_before(waiting: int, held: int) -> bool:
    """Whether what waits at this rank must not wait behind what a worker holds ready at that one."""
    return waiting + MARGIN < held or (is_in_front(waiting) and not is_in_front(held))
