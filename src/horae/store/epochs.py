"""The store's epoch: it grows when the store may have gone back in time, so that no old token stays valid."""

from horae.env import Instant
from horae.store.moves.sessions import end_old_epochs
from horae.store.script import Fetch, Script, Statement

_GROW = Statement(
    "grow_epoch", "UPDATE store SET value = CAST(CAST(value AS int) + 1 AS text) WHERE key = 'epoch' RETURNING value"
)
_TIMELINE = Statement("timeline", "SELECT value FROM store WHERE key = 'timeline' FOR UPDATE")
_SET_TIMELINE = Statement(
    "set_timeline",
    "INSERT INTO store (key, value) VALUES ('timeline', $1) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
)


def grow(now: Instant) -> Script[int]:
    """Begin a new epoch and end all sessions of the old; nothing is charged to what they held."""
    epoch = int((yield Fetch(_GROW))[0][0])
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
