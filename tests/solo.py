"""What a session may hold together of what was lost before."""

from collections.abc import Iterable
from itertools import pairwise

from horae.model.solo import PROBATION, SUSPECT


def in_order(held: Iterable[tuple[int, int]]) -> bool:
    """Whether solo items of one session, as (losses, granted_at), may meet: a probation apart, suspects alone."""
    items = sorted(held, key=lambda item: item[1])
    if len(items) > 1 and any(losses >= SUSPECT for losses, _ in items):
        return False
    return all(later[1] - earlier[1] >= PROBATION for earlier, later in pairwise(items))
