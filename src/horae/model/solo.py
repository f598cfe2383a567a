"""Solo items: those that were lost with their worker, and which of them may meet in one session.

Nobody knows which of the items that a worker held has killed it. What kills mostly kills early, so one that was lost
once is kept from others of its kind for a probation; a second loss is evidence, and from then on it meets none.
"""

from enum import IntEnum

from horae.env import SECOND, Instant, Micros

PROBATION: Micros = 10 * SECOND  # from its grant, while an item that was lost once blocks other solo items
SUSPECT = 2  # losses from which on an item runs strictly alone among solo items


class Place(IntEnum):
    """What a session has place for among solo items; each includes those before it."""

    NONE = 0
    LOST_ONCE = 1
    ANY = 2


def place(losses: int, granted_at: Instant, now: Instant) -> Place:
    """The place in a session that holds solo items: the most losses among them and the last grant decide.

    A grant far in the future is of a clock that went wrong since: it blocks nothing, for safety does not rest on it.
    """
    if losses >= SUSPECT or abs(now - granted_at) < PROBATION:
        return Place.NONE
    return Place.LOST_ONCE


def admits(place: Place, losses: int) -> bool:
    """Whether a solo item with these losses may come to where there is such a place."""
    return place >= (Place.ANY if losses >= SUSPECT else Place.LOST_ONCE)
