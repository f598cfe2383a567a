"""Deletion of old events with their fires, of ended webhooks, and of places that are no longer watched."""

from horae.env import Instant
from horae.store.expiry.expiry import Cutoffs
from horae.store.script import Fetch, ForEach, Script, Statement
from horae.store.tenancy.holdings import Holdings, drops, records, rows

OLD_EVENTS = Statement(
    "expire_events",
    "WITH old AS MATERIALIZED (SELECT id FROM events WHERE received_at < $1 ORDER BY received_at LIMIT $2)"
    " DELETE FROM events WHERE id IN (SELECT id FROM old) RETURNING id",
)
OLD_EVENT_FIRES = Statement(
    "expire_event_fires",
    "DELETE FROM event_fires WHERE (trigger_id, event) IN (SELECT f.trigger_id, f.event FROM given"
    " JOIN event_fires f ON f.event = given.event)",
)
ERASE = records("events", "id", "namespace = $1 AND received_at < $2")
ENDED_HOOKS = Statement("expire_hooks", "DELETE FROM hooks WHERE until <= $1")
# The webhooks of a removed trigger are deleted, so that their URLs do not fire a later trigger of the same name. The
# webhooks of a deleted job stay for a while, because the job can be restored.
LEFT_HOOKS = Statement(
    "forget_hooks",
    "DELETE FROM hooks WHERE NOT EXISTS (SELECT 1 FROM triggers g WHERE g.job = hooks.job AND g.name = hooks.trigger"
    " AND g.state <> 'ended') AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = hooks.job AND j.state = 'deleted'"
    " AND j.deleted_at >= $1)",
)
# Only watches that ended long ago are deleted, because a deleted job can be restored with its watches.
GONE_WATCHES = Statement(
    "gone_watches",
    "SELECT w.id FROM watches w LEFT JOIN triggers g ON g.id = w.trigger_id"
    " WHERE g.id IS NULL OR (g.state = 'ended' AND g.valid_to < $1) ORDER BY w.id LIMIT $2",
)
FORGET_OBJECTS = Statement(
    "forget_watched",
    "WITH gone AS MATERIALIZED (SELECT object FROM watched WHERE watch = $1 LIMIT $2)"
    " DELETE FROM watched WHERE watch = $1 AND object IN (SELECT object FROM gone) RETURNING 1",
)
DROP_WATCH = Statement("drop_watch", "DELETE FROM watches WHERE id = $1")
FEW = 10  # watches per sweep


def sweep(cutoffs: Cutoffs, most: int = 1000) -> Script[bool]:
    """Delete old events, ended webhooks and gone watches; return true if there may be more."""
    before = cutoffs.fires
    events = yield Fetch(OLD_EVENTS, (before, most))
    yield ForEach(OLD_EVENT_FIRES, (("event", "uuid"),), events)
    yield Fetch(ENDED_HOOKS, (cutoffs.now,))
    yield Fetch(LEFT_HOOKS, (before,))
    gone = yield Fetch(GONE_WATCHES, (before, FEW))
    more = len(events) == most or len(gone) == FEW
    for (watch,) in gone:
        forgotten = yield Fetch(FORGET_OBJECTS, (watch, most))
        if len(forgotten) == most:
            return True
        yield Fetch(DROP_WATCH, (watch,))
    return more


def _erase(namespace: int, before: Instant, most: int) -> Script[int]:
    """Delete up to `most` events of a namespace from before an instant, with their fires; return their number."""
    gone = yield Fetch(ERASE, (namespace, before, most))
    yield ForEach(OLD_EVENT_FIRES, (("event", "uuid"),), gone)
    return len(gone)


HOLDINGS = Holdings(
    drops=drops("hooks"),
    counted={"events": _erase},
    rows=(rows("watched", "watch, object", "watch IN (SELECT id FROM watches WHERE namespace = $1)"),),
)
