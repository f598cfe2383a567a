"""Fires under calendars: each nominal fire has the disposition found by brute force, whenever it is decided."""

from itertools import pairwise
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.env import SECOND
from horae.model.triggers.calendars.compiled import Calendar
from horae.model.triggers.calendars.read import parse_times
from horae.model.triggers.calendars.resolve import current_calendar
from horae.model.triggers.decisions.by_calendar import TOGETHER, decide_by_calendar, runs_after
from horae.model.triggers.decisions.decide import decide, latest, upcoming
from horae.model.triggers.decisions.rules import Misfire, Rules
from horae.model.triggers.decisions.values import Cron, Interval, next_fire, previous_fire

START = 1_800_000_000 * SECOND  # Friday, 2027-01-15 08:00 UTC
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
CALENDARS = {
    "office": {"hours": "MON-FRI 09:00-17:00"},
    "night": {"hours": "22:00-02:00"},
    "minutes": {"hours": ["08:00-08:01", "08:02-08:05", "08:30-08:31"]},
    "weekend": {"hours": "SAT,SUN 00:00-24:00"},
    "day": {"dates": ["2027-01-16"]},
    "always": {"hours": "00:00-24:00"},
    "passed": {"dates": ["2027-01-14"]},
}
TRIGGERS = {
    "second": Interval(every=SECOND, anchor=0),
    "20s": Interval(every=20 * SECOND, anchor=0),
    "odd": Interval(every=7 * MINUTE + 700_000, anchor=START - 5),
    "hourly": Cron(expression="0 * * * *"),
    "daily": Cron(expression="30 3 * * *", timezone="Europe/Paris"),
}
OUTSIDE = ("skip", "postpone", "advance")


def compiled(name: str) -> Calendar:
    return current_calendar(name, {name: parse_times(CALENDARS[name])})


def nominal(trigger, after, through):
    at = next_fire(trigger, after)
    while at is not None and at <= through:
        yield at
        at = next_fire(trigger, at)


def expected(trigger, calendar, outside, begun, through):
    """Return (disposition, due) of each nominal fire by brute force."""
    fates, taken = {}, set()
    before = previous_fire(trigger, begun + 1)
    if before is not None and before == begun:
        taken.add(before)
    for at in nominal(trigger, begun, through):
        if calendar.is_open(at):
            due = at
        else:
            due = {"postpone": calendar.next_open, "advance": calendar.last_open}.get(outside, lambda _: None)(at)
        if due is None or (due < at and due <= begun and due not in taken):
            fates[at] = ("skipped-calendar", None)
        elif due in taken:
            fates[at] = ("coalesced", None)
        else:
            fates[at] = ("fired" if due == at else "moved", due)
            taken.add(due)
    return fates


def dispositions(trigger, decisions):
    """Return the ledger's disposition of each nominal fire, and check that each is covered once."""
    fates = {}
    for decision in decisions:
        dues = {fire.at: fire.due or fire.at for fire in decision.fires}
        for run in decision.ledger:
            for at in nominal(trigger, run.first - 1, run.last):
                assert at not in fates
                fates[at] = (run.disposition, dues.get(at) if run.disposition in ("fired", "moved") else None)
            assert next_fire(trigger, run.first - 1) == run.first
            assert previous_fire(trigger, run.last + 1) == run.last
    return fates


def steps(trigger, rules, calendar, times, limit=1_000):
    """Decide at these times, each time from where the previous decision ended."""
    through, moved_to, done = START, None, []
    for now in times:
        again = True
        while again:
            done.append(decide_by_calendar(trigger, rules, calendar, through, now, limit, moved_to=moved_to))
            through, moved_to = done[-1].decided_through, done[-1].moved_to
            again = done[-1].next_fire_at is not None and done[-1].next_fire_at <= now
    return done


EVERYTHING = Misfire(policy="window", within=400 * DAY)
spans = st.integers(1, 3_000).map(lambda n: n * 7 * SECOND) | st.integers(1, 90).map(lambda n: n * SECOND)
names = st.sampled_from(sorted(CALENDARS))
kinds = st.sampled_from(sorted(TRIGGERS))
outsides = st.sampled_from(OUTSIDE)


@given(names, kinds, outsides, st.lists(spans, min_size=1, max_size=8), st.sampled_from([3, 1_000]))
def test_every_fire_has_the_disposition_found_by_brute_force(name, kind, outside, waits, limit):
    trigger, calendar = TRIGGERS[kind], compiled(name)
    rules = Rules(overlap="allow", misfire=EVERYTHING, calendars=(name,), outside=outside)
    if kind == "second":
        waits = [min(wait, 300 * SECOND) for wait in waits]
    times = [START + sum(waits[: n + 1]) for n in range(len(waits))]
    done = steps(trigger, rules, calendar, times, limit)

    through = done[-1].decided_through
    assert through >= times[-1]
    assert dispositions(trigger, done) == expected(trigger, calendar, outside, START, through)
    ahead = list(nominal(trigger, times[-1], through))
    assert len(ahead) <= (outside == "advance")


@given(names, kinds, outsides, st.integers(0, 2 * DAY // SECOND))
def test_the_timer_decides_each_fire_in_time(name, kind, outside, seconds):
    trigger, calendar = TRIGGERS[kind], compiled(name)
    rules = Rules(overlap="allow", misfire=EVERYTHING, calendars=(name,), outside=outside)
    begun = START + seconds * SECOND
    decision = decide_by_calendar(trigger, rules, calendar, begun, begun, 1_000)
    assert decision.ledger == ()
    for _ in range(40):
        now, through = decision.next_fire_at, decision.decided_through
        if now is None:
            break
        decision = decide_by_calendar(trigger, rules, calendar, through, now, 1_000, moved_to=decision.moved_to)
        assert decision.ledger, "it was met for nothing"
        for fire in decision.fires:
            assert now == min(fire.at, fire.due or fire.at)
        for run in decision.ledger:
            if run.disposition not in ("fired", "moved"):
                assert run.first <= now <= run.first + TOGETHER
        assert decision.next_fire_at is None or decision.next_fire_at > now


@given(names, kinds, st.sampled_from(["skip", "latest", "all", "window"]), outsides, st.integers(0, 4 * DAY // SECOND))
def test_after_an_outage_the_misfire_policy_applies_and_all_fires_are_covered(name, kind, policy, outside, seconds):
    trigger, calendar = TRIGGERS[kind], compiled(name)
    now = START + (min(seconds, 3_000) if kind == "second" else seconds) * SECOND
    misfire = Misfire(policy=policy, most=3, within=2 * HOUR)
    rules = Rules(overlap="allow", misfire=misfire, calendars=(name,), outside=outside)
    done = steps(trigger, rules, calendar, [now])
    fates = dispositions(trigger, done)

    assert sorted(fates) == list(nominal(trigger, START, max(now, done[-1].decided_through)))
    meant = expected(trigger, calendar, outside, START, max(fates, default=START))
    running = {at: due for at, (disposition, due) in meant.items() if disposition in ("fired", "moved")}
    kept = {at for at, due in running.items() if due >= now - rules.grace}
    missed = [at for at in running if at not in kept]
    kept |= {
        "skip": set(), "latest": set(missed[-1:]), "all": set(missed[-3:]),
        "window": {at for at in missed if running[at] >= now - misfire.within},
    }[policy]  # fmt: skip
    assert {at for at, (disposition, _) in fates.items() if disposition in ("fired", "moved")} == kept
    assert {at: fates[at][1] for at in kept} == {at: running[at] for at in kept}


@given(names, kinds, outsides)
def test_an_always_open_calendar_changes_no_decision(name, kind, outside):
    trigger, rules = TRIGGERS[kind], Rules(calendars=("always",), outside=outside)
    plain = decide(trigger, rules, START, START + 3 * HOUR, 100)
    by_calendar = decide_by_calendar(trigger, rules, compiled("always"), START, START + 3 * HOUR, 100)
    assert by_calendar == plain


@pytest.mark.parametrize("outside", OUTSIDE)
@pytest.mark.parametrize("name", sorted(CALENDARS))
def test_a_century_of_fires_every_second_is_decided_quickly(name, outside):
    """A hundred years of fires every second: few rows, quickly decided, and all covered."""
    trigger, calendar = TRIGGERS["second"], compiled(name)
    rules = Rules(calendars=(name,), outside=outside)
    century = 100 * 365 * DAY
    decide_by_calendar(trigger, rules, calendar, START, START + century, 100)  # load the years before the measurement
    began = perf_counter()
    decision = decide_by_calendar(trigger, rules, calendar, START, START + century, 100)
    took = perf_counter() - began

    assert len(decision.ledger) <= 80
    assert decision.ledger[0].first == upcoming(trigger, rules, START)
    assert decision.ledger[-1].last == latest(trigger, rules, decision.decided_through + 1)
    for one, other in pairwise(decision.ledger):
        assert other.first == one.last + SECOND
    assert took < 0.5


def test_a_closed_decade_is_one_row():
    calendar = current_calendar("d", {"d": parse_times({"dates": ["2027-01-14", "2037-01-14"]})})
    rules = Rules(calendars=("d",))
    now = START + 9 * 365 * DAY
    decision = decide_by_calendar(TRIGGERS["second"], rules, calendar, START, now, 100)
    assert [(run.first, run.last, run.disposition) for run in decision.ledger] == [
        (START + SECOND, now, "skipped-calendar")
    ]
    assert decision.ledger[0].cause == 'calendar "d" was closed'


def test_fires_that_are_never_open_share_one_row_and_are_found_quickly():
    """A fire at 03:00 under office hours: it is closed every day at that instant, and open later."""
    rules = Rules(calendars=("office",))
    began = perf_counter()
    decision = decide_by_calendar(TRIGGERS["daily"], rules, compiled("office"), START, START + 20 * 365 * DAY, 100)
    assert [run.disposition for run in decision.ledger] == ["skipped-calendar"]
    assert decision.fires == ()
    assert perf_counter() - began < 2


@given(names, kinds, outsides)
def test_a_preview_shows_the_fires_that_will_run(name, kind, outside):
    trigger, calendar = TRIGGERS[kind], compiled(name)
    rules = Rules(calendars=(name,), outside=outside, end_at=START + 3 * HOUR)
    shown = [each for each, _ in zip(runs_after(trigger, rules, calendar, START), range(200), strict=False)]
    meant = expected(trigger, calendar, outside, START, START + 3 * HOUR - 1)
    running = [(at, due) for at, (disposition, due) in meant.items() if disposition in ("fired", "moved")]
    assert shown == running[:200]


def test_an_advanced_fire_respects_the_queue_limit():
    """An advanced fire at the end of an opening, with undecided fires before it and one place left in the queue."""
    calendar = current_calendar("d", {"d": parse_times({"hours": "08:00-08:05"})})
    rules = Rules(overlap="queueAll", most_queued=2, calendars=("d",), outside="advance")
    trigger, now = Interval(every=2 * MINUTE, anchor=START), START + 5 * MINUTE - SECOND
    for waiting, ran in ((0, ["fired", "fired", "moved"]), (1, ["fired", "skipped-overlap"])):
        decision = decide_by_calendar(trigger, rules, calendar, START, now, 100, busy=bool(waiting), waiting=waiting)
        assert [run.disposition for run in decision.ledger] == ran
    skipping = Rules(calendars=("d",), outside="advance")
    ledger = decide_by_calendar(trigger, skipping, calendar, START + 2 * MINUTE, now, 100).ledger
    assert [run.disposition for run in ledger] == ["fired", "skipped-overlap"]
