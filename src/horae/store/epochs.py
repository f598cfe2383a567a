"""The store's epoch: it grows when the store may have gone back in time, so that no old token stays valid.

One backup may be restored many times, in places that know nothing of each other, or be older than restores that came
after it: counting on from what it holds would give an epoch twice. So an epoch that begins is also at least the number
of seconds since 2026: whatever begins later is greater, wherever it is. It fits 31 bits until 2094, and its tokens 63.
"""

from horae.env import SECOND, Instant
from horae.store.moves.sessions import end_old_epochs
from horae.store.script import Fetch, Script, Statement

BEGINNING: Instant = 1_767_225_600 * SECOND  # 2026-01-01

_LAST = Statement("last_epoch", "SELECT value FROM store WHERE key = 'epoch'")
_GROW = Statement(
    "grow_epoch",
    "UPDATE store SET value = CAST(1 + CASE WHEN CAST(value AS int) < $1 THEN $1 ELSE CAST(value AS int) END AS text)"
    " WHERE key = 'epoch' RETURNING value",
)
_TIMELINE = Statement("timeline", "SELECT value FROM store WHERE key = 'timeline' FOR UPDATE")
_SET_TIMELINE = Statement(
    "set_timeline",
    "INSERT INTO store (key, value) VALUES ('timeline', $1) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
)


def last() -> Script[int]:
    """The epoch the store is in."""
    return int((yield Fetch(_LAST))[0][0])


def grow(now: Instant, above: int = 0) -> Script[int]:
    """Begin an epoch after the store's, `above` and the present second; end all sessions of old ones, uncharged."""
    epoch = int((yield Fetch(_GROW, (max(above, (now - BEGINNING) // SECOND),)))[0][0])
    yield from end_old_epochs(epoch, now)
    return epoch


def on_timeline(timeline: str, now: Instant) -> Script[bool]:
    """Remember PostgreSQL's timeline; another one than before (a failover, a restore) begins a new epoch."""
    known = yield Fetch(_TIMELINE)
    if known and known[0][0] == timeline:
        return False
    yield Fetch(_SET_TIMELINE, (timeline,))
    if not known:
        return False
    yield from grow(now)
    return True
