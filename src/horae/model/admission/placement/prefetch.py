"""The rule that keeps prefetched work from delaying better ranked work.

In addition to the executions in its slots, a worker prefetches executions of short jobs: about 100 ms of work. An
execution that ranks well before them must not wait behind them. So while such an execution waits, nothing behind it is
prefetched, and when it arrives, prefetched executions are returned to the queue.
"""

from horae.env import SECOND

MARGIN = 1 * SECOND  # a smaller difference in rank is not worth a return (a level of priority is 60 seconds)


def goes_before(waiting: int, held: int) -> bool:
    """Return whether an item that waits at the rank `waiting` must not wait behind prefetched items of rank `held`."""
    return waiting + MARGIN < held
