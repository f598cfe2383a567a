"""Guards of events and watches."""

from tests.races.mutating import code, sql
from tests.races.mutating.mutation import gone

EVENTS = (
    gone("events do not lock the jobs that listen to them", sql.unlock("hold_jobs"), by="event / delete"),
    gone(
        "fires of an event trigger are counted without a lock",
        sql.unlock("hold_timers"),
        by="event / event, at most one fire",
    ),
    gone(
        "events are stored in the order of the request",
        code.drop_statement("events-in-order"),
        by="event / event, the same ids in two orders",
    ),
    gone(
        "an outdated scan goes on writing",
        code.drop_condition("look-not-overtaken"),
        by="test_watches.test_an_outdated_scan_writes_nothing",
    ),
    gone("taking watches waits for locked ones", sql.wait("due_watches"), by="due / due, one watch"),
    gone(
        "a scan reads its watch without a lock",
        sql.unlock("hold_watch"),
        because="An object version fires once by its key; with the lock, only one of two scans goes on.",
    ),
)
