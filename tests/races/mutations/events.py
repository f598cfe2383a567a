"""Guards of events and watches."""

from tests.races.mutating import code, sql
from tests.races.mutating.mutation import gone

EVENTS = (
    gone("events do not hold the jobs that hear them", sql.unlock("hold_jobs"), by="event / delete"),
    gone(
        "what an event trigger fired is counted without a lock",
        sql.unlock("hold_timers"),
        by="event / event, at most one fire",
    ),
    gone(
        "events are kept in the order they came",
        code.drop_statement("events-in-order"),
        by="event / event, the same ids in two orders",
    ),
    gone(
        "who looks too long goes on writing",
        code.drop_condition("look-not-overtaken"),
        by="test_watches.test_an_outdated_scan_writes_nothing",
    ),
    gone("watches that somebody takes are waited for", sql.wait("due_watches"), by="due / due, one place"),
    gone(
        "a look's place is read without a lock",
        sql.unlock("hold_watch"),
        because="An object version fires once by its key, whoever finds it; held, only one of two looks goes on.",
    ),
)
