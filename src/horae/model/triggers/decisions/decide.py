"""The outcome of each nominal fire. Exactly one run of the ledger must cover each fire."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Literal

from msgspec import Struct

from horae.env import Instant
from horae.model.base.duration import format_duration
from horae.model.triggers.decisions.lost_times import can_lose_times, first_lost_time, lost_times_between
from horae.model.triggers.decisions.rules import Misfire, Rules
from horae.model.triggers.decisions.values import Trigger, due_from, next_fire, previous_fire

Disposition = Literal[
    "fired",
    "coalesced",
    "skipped-misfire",
    "skipped-overlap",
    "skipped-paused",
    "skipped-calendar",
    "skipped-nonexistent",
    "skipped-unique",
    "skipped-quota",
    "backfilled",
    "moved",
]

# For wall times that a clock change skips. They are not fires, but the ledger records them in the same way.
NONEXISTENT: Disposition = "skipped-nonexistent"


class Fire(Struct, frozen=True, gc=False):
    """A nominal fire that runs. Its data interval is [since, at); `since` is None if there is no earlier fire."""

    at: Instant
    since: Instant | None
    due: Instant | None = None  # set if a calendar moved the fire


class LedgerRun(Struct, frozen=True, gc=False):
    """Consecutive nominal fires, from the first to the last, with the same disposition and cause."""

    first: Instant
    last: Instant
    disposition: Disposition
    cause: str


class Decision(Struct, frozen=True, gc=False):
    """The fires of a trigger that run now, and the runs to record in the ledger.

    Each fire that runs is a ledger run of its own. The ledger runs are in order and leave out no fire up to
    `decided_through`. Wall times skipped by a clock change get a ledger run of their own, or are part of a longer one
    around them.
    """

    fires: tuple[Fire, ...]
    ledger: tuple[LedgerRun, ...]
    decided_through: Instant
    next_fire_at: Instant | None
    moved_to: Instant | None = None  # the new instant of the last fire moved by a calendar


def decide(
    trigger: Trigger,
    rules: Rules,
    decided_through: Instant,
    now: Instant,
    limit: int,
    *,
    fired: int = 0,
    busy: bool = False,
    waiting: int = 0,
) -> Decision:
    """Decide the nominal fires in (decided_through, now]; at most `limit` of them run.

    A fire that is at most the grace time old runs; the misfire policy decides about older fires. If the limit leaves
    fires undecided, `next_fire_at` is the first of them and already due. The cost depends on the size of the result,
    not on the elapsed time. `fired` is the number of fires that ran so far, for `max_fires`. For `overlap`, `busy` says
    that an earlier execution has not ended, and `waiting` is the number of further executions that wait for it.

    The fires of a trigger with `spread` are decided `rules.offset` after their instants; `next_fire_at` includes that
    delay.
    """
    if limit < 1:
        raise ValueError("limit must be at least 1")
    now -= rules.offset
    left = limit if rules.max_fires is None else min(limit, rules.max_fires - fired)
    first = upcoming(trigger, rules, decided_through) if left > 0 else None
    if first is None or first > now:
        return _decide_nothing(trigger, rules, decided_through, max(decided_through, now), first, left <= 0)
    if not busy and not waiting:
        after = upcoming(trigger, rules, first)
        if (after is None or after > now) and first >= due_from(trigger, now - rules.grace):
            return _decide_single(trigger, rules, decided_through, first, after, now, is_spent(rules, fired + 1))
    resume = _resume_at(trigger, rules, first, now)
    missed = _missed_run(trigger, rules, first, resume)
    resumed = first if first >= resume else upcoming(trigger, rules, resume - 1)
    held, resumed = _skip_overlapping(trigger, rules, resumed, now, busy)
    room = _room(rules, busy, waiting)
    fires, following = _fires_from(trigger, rules, resumed, now, left if room is None else min(left, room))
    spent = is_spent(rules, fired + len(fires))
    full: tuple[LedgerRun, ...] = ()
    if not spent and len(fires) == room and following is not None and following <= now:
        full, following = _skip_without_room(trigger, rules, following, now)
    through = fires[-1].at if following is not None and following <= now else now
    ledger = chain(missed, held, (_fired(rules, fire, now) for fire in fires), full)
    return Decision(
        fires=fires,
        ledger=tuple(with_lost_times(trigger, rules, ledger, decided_through, through)),
        decided_through=through,
        next_fire_at=None if spent else _next_decision_with_offset(trigger, rules, through, following),
    )


def _decide_nothing(
    trigger: Trigger, rules: Rules, decided_through: Instant, through: Instant, first: Instant | None, spent: bool
) -> Decision:
    """Decide that no fire is due."""
    ledger = with_lost_times(trigger, rules, (), decided_through, through)
    return Decision(
        (), tuple(ledger), through, None if spent else _next_decision_with_offset(trigger, rules, through, first)
    )


def _decide_single(
    trigger: Trigger,
    rules: Rules,
    decided_through: Instant,
    at: Instant,
    after: Instant | None,
    now: Instant,
    spent: bool,
) -> Decision:
    """Decide the most common case: one fire, due now, with nothing else to consider."""
    fire = Fire(at, previous_fire(trigger, at))
    return Decision(
        fires=(fire,),
        ledger=tuple(with_lost_times(trigger, rules, (_fired(rules, fire, now),), decided_through, now)),
        decided_through=now,
        next_fire_at=None if spent else _next_decision_with_offset(trigger, rules, now, after),
    )


def with_lost_times(
    trigger: Trigger, rules: Rules, runs: Iterable[LedgerRun], after: Instant, through: Instant
) -> Iterator[LedgerRun]:
    """Yield the given runs in (after, through], and between them runs for wall times that clock changes skipped."""
    if not can_lose_times(trigger):
        yield from runs
        return
    for run in runs:
        yield from _lost(trigger, rules, after, run.first)
        yield run
        after = run.last
    yield from _lost(trigger, rules, after, through + 1)


def _lost(trigger: Trigger, rules: Rules, after: Instant, before: Instant) -> Iterator[LedgerRun]:
    for lost in lost_times_between(trigger, rules, after, before):
        yield LedgerRun(lost.at, lost.at, NONEXISTENT, lost.cause)


def next_decision_at(trigger: Trigger, rules: Rules, through: Instant, following: Instant | None) -> Instant | None:
    """Return when a trigger must be decided next: at the fire `following`, or earlier to record skipped wall times.

    The delay `rules.offset` is not included. If no fire follows, skipped wall times are recorded up to `end_at`.
    """
    until = rules.end_at if following is None else following
    if until is None or not can_lose_times(trigger):
        return following
    return first_lost_time(trigger, rules, through, until) or following


def _next_decision_with_offset(
    trigger: Trigger, rules: Rules, through: Instant, following: Instant | None
) -> Instant | None:
    at = next_decision_at(trigger, rules, through, following)
    return None if at is None else at + rules.offset


def is_spent(rules: Rules, fired: int) -> bool:
    """Return whether a trigger with this many fires has reached `max_fires`."""
    return rules.max_fires is not None and fired >= rules.max_fires


def cover(
    trigger: Trigger, rules: Rules, decided_through: Instant, now: Instant, disposition: Disposition, cause: str
) -> tuple[LedgerRun, ...]:
    """Return one run for all nominal fires in (decided_through, now], and runs for skipped wall times around it.

    Such a run is recorded when a pause ends, for example.
    """
    first = upcoming(trigger, rules, decided_through)
    runs: tuple[LedgerRun, ...] = ()
    if first is not None and first <= now:
        runs = (LedgerRun(first, _last_of(trigger, rules, first, now + 1), disposition, cause),)
    return tuple(with_lost_times(trigger, rules, runs, decided_through, now))


def due_after(trigger: Trigger, rules: Rules, decided_through: Instant) -> Instant | None:
    """Return when a trigger with this `decided_through` must be decided next."""
    if rules.calendars and rules.outside == "advance":
        return decided_through + rules.offset  # at once, because a decision loads the calendar, which is needed here
    return _next_decision_with_offset(trigger, rules, decided_through, upcoming(trigger, rules, decided_through))


def upcoming(trigger: Trigger, rules: Rules, after: Instant) -> Instant | None:
    """Return the first nominal fire strictly after an instant, within the bounds of the rules."""
    found = next_fire(trigger, after if rules.start_at is None else max(after, rules.start_at - 1))
    return None if found is None or (rules.end_at is not None and found >= rules.end_at) else found


def latest(trigger: Trigger, rules: Rules, before: Instant) -> Instant | None:
    """Return the last nominal fire strictly before an instant, within the bounds of the rules."""
    found = previous_fire(trigger, before if rules.end_at is None else min(before, rules.end_at))
    return None if found is None or (rules.start_at is not None and found < rules.start_at) else found


def _resume_at(trigger: Trigger, rules: Rules, first: Instant, now: Instant) -> Instant:
    """Return the instant from which on fires run; fires from `first` to before it are missed.

    Each misfire policy lets only the newest missed fires run, or none.
    """
    resume = due_from(trigger, now - rules.grace)
    if rules.misfire.policy == "window":
        return min(resume, due_from(trigger, now - rules.misfire.within))
    keep = {"skip": 0, "latest": 1, "all": rules.misfire.most}[rules.misfire.policy]
    while keep and resume > first:
        resume = _last_of(trigger, rules, first, resume)
        keep -= 1
    return resume


def _last_of(trigger: Trigger, rules: Rules, first: Instant, before: Instant) -> Instant:
    """Return the last nominal fire that is before an instant, but not before the fire `first`."""
    found = latest(trigger, rules, before)
    return first if found is None else max(first, found)


def _missed_run(trigger: Trigger, rules: Rules, first: Instant, resume: Instant) -> tuple[LedgerRun, ...]:
    """Return the run of missed fires, from `first` to the last one before `resume`; empty if none was missed."""
    if first >= resume:
        return ()
    disposition: Disposition = "coalesced" if rules.misfire.policy == "latest" else "skipped-misfire"
    cause = f"missed by more than {format_duration(rules.grace)}; {_policy_in_words(rules.misfire)}"
    return (LedgerRun(first, _last_of(trigger, rules, first, resume), disposition, cause),)


def _policy_in_words(misfire: Misfire) -> str:
    words = {
        "skip": "misfire is skip",
        "latest": "the newest missed fire stands for all",
        "all": f"only the newest {misfire.most} run",
        "window": f"only those of the last {format_duration(misfire.within)} run",
    }
    return words[misfire.policy]


def _skip_overlapping(
    trigger: Trigger, rules: Rules, first: Instant | None, now: Instant, busy: bool
) -> tuple[tuple[LedgerRun, ...], Instant | None]:
    """Return the run of fires that the overlap policy skips, if any, and the first fire after it.

    With `skip`, no fire runs while the last execution runs. With `queueOne` and `cancelOther`, only the newest of
    several due fires runs, because it would replace the others anyway.
    """
    if rules.overlap in ("allow", "queueAll") or first is None or first > now:
        return (), first
    newest = _last_of(trigger, rules, first, now + 1)
    if busy and rules.overlap == "skip":
        run = LedgerRun(first, newest, "skipped-overlap", "the previous execution had not ended")
        return (run,), upcoming(trigger, rules, newest)
    if first == newest:
        return (), newest
    last = _last_of(trigger, rules, first, newest)
    return (LedgerRun(first, last, "skipped-overlap", "a newer fire was due as well and ran instead"),), newest


def _room(rules: Rules, busy: bool, waiting: int) -> int | None:
    """Return how many executions a `queueAll` trigger may add: as many as may still wait, and one that runs at once.

    No added execution runs at once if another one runs or waits. For other policies return None: there is no bound.
    """
    if rules.overlap != "queueAll":
        return None
    return max(0, rules.most_queued - waiting) + (0 if busy or waiting else 1)


def _skip_without_room(
    trigger: Trigger, rules: Rules, first: Instant, now: Instant
) -> tuple[tuple[LedgerRun, ...], Instant | None]:
    """Return the run of fires that exceed `most_queued`, and the fire that follows them."""
    newest = _last_of(trigger, rules, first, now + 1)
    cause = f"{rules.most_queued} executions waited for the previous one already"
    return (LedgerRun(first, newest, "skipped-overlap", cause),), upcoming(trigger, rules, newest)


def _fires_from(
    trigger: Trigger, rules: Rules, first: Instant | None, now: Instant, limit: int
) -> tuple[tuple[Fire, ...], Instant | None]:
    """Return up to `limit` fires from `first` to `now`, and the nominal fire that follows them."""
    fires: list[Fire] = []
    at = first
    while at is not None and at <= now and len(fires) < limit:
        fires.append(Fire(at, fires[-1].at if fires else previous_fire(trigger, at)))
        at = upcoming(trigger, rules, at)
    return tuple(fires), at


def _fired(rules: Rules, fire: Fire, now: Instant) -> LedgerRun:
    missed = now - fire.at > rules.grace
    return LedgerRun(fire.at, fire.at, "fired", f"missed; misfire is {rules.misfire.policy}" if missed else "due")
