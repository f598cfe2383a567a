"""Wall times lost at clock changes: each is recorded once, and no record collides with a fire."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from time import perf_counter
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.env import SECOND
from horae.model.base.duration import DAY, HOUR, MINUTE
from horae.model.base.instant import format_instant, parse_instant
from horae.model.triggers.calendars.compiled import compile_times
from horae.model.triggers.calendars.read import parse_times
from horae.model.triggers.cron.parse import parse_cron
from horae.model.triggers.cron.wall import ceil_wall
from horae.model.triggers.decisions.by_calendar import decide_by_calendar
from horae.model.triggers.decisions.coverage import CoverageCheck, FireSpan, Flaw
from horae.model.triggers.decisions.decide import cover, decide, due_after, latest, upcoming
from horae.model.triggers.decisions.lost_times import lost_times_between
from horae.model.triggers.decisions.preview import preview
from horae.model.triggers.decisions.rules import Misfire, Rules
from horae.model.triggers.decisions.shared_decisions import SharedDecisions
from horae.model.triggers.decisions.values import Cron, next_fire
from horae.model.triggers.ledger import LedgerRow, cut
from tests.model.zones import PECULIAR, changes

NEW_YORK, APIA = "America/New_York", "Pacific/Apia"
SPRING = parse_instant("2026-03-08T07:00:00Z")
ALL = Rules(overlap="allow", misfire=Misfire(policy="all", most=1000))
DISPOSITION = "skipped-nonexistent"
EXPRESSIONS = ("30 2 * * *", "0,15,30,45 0-4 * * *", "0 12 * * *", "0 0 30 12 *", "30 */1 * * *", "5 30 2 * * *")
NAMES = tuple(zone for zone in PECULIAR if changes(zone))
LONG = 3 * 3600


def skipping(expression, zone=NEW_YORK, gap="skip", **more):
    return Cron(expression=expression, timezone=zone, dst_gap=gap, **more)


def recorded(decision):
    return [(format_instant(run.first), run.disposition) for run in decision.ledger]


def lost(trigger, after, before, rules=ALL):
    return [one.at for one in lost_times_between(trigger, rules, after, before)]


@pytest.mark.parametrize(
    ("trigger", "after", "now", "expected"),
    [
        (
            skipping("30 2 * * *"), "2026-03-07T12:00:00Z", "2026-03-09T06:30:00Z",
            [("2026-03-08T06:59:59.999999Z", DISPOSITION), ("2026-03-09T06:30:00Z", "fired")],
        ),
        (  # a fire at the gap's end keeps its instant
            skipping("0 2,3 * * *"), "2026-03-08T06:00:00Z", "2026-03-08T07:00:00Z",
            [("2026-03-08T06:59:59.999999Z", DISPOSITION), ("2026-03-08T07:00:00Z", "fired")],
        ),
        (skipping("30 2 * * *", gap="shift"), "2026-03-08T06:00:00Z", "2026-03-08T07:00:00Z",
         [("2026-03-08T07:00:00Z", "fired")]),
        (skipping("*/30 2 * * *"), "2026-03-08T06:00:00Z", "2026-03-08T08:00:00Z", []),
        (
            skipping("0 12 * * *", APIA, "shift"), "2011-12-29T22:00:00Z", "2011-12-30T22:00:00Z",
            [("2011-12-30T09:59:59.999999Z", DISPOSITION), ("2011-12-30T22:00:00Z", "fired")],
        ),
        (skipping("0 12 30 * *", APIA, "shift"), "2011-12-29T00:00:00Z", "2012-01-01T00:00:00Z",
         [("2011-12-30T09:59:59.999999Z", DISPOSITION)]),
    ],
)  # fmt: skip
def test_the_ledger_records_lost_times(trigger, after, now, expected):
    assert recorded(decide(trigger, ALL, parse_instant(after), parse_instant(now), 10)) == expected


def test_the_cause_names_the_wall_times_and_the_change():
    (one,) = decide(skipping("0,30 2 * * *"), ALL, SPRING - HOUR, SPRING, 10).ledger
    assert one.cause == (
        "2 times from 2026-03-08 02:00 to 2026-03-08 02:30 did not exist in America/New_York: clocks went forward by 1h"
        " at 2026-03-08T07:00:00Z, from 2026-03-08 02:00 to 2026-03-08 03:00"
    )
    (one,) = decide(skipping("0 12 30 12 *", APIA), ALL, parse_instant("2011-12-30T00:00:00Z"), SPRING, 10).ledger[:1]
    assert one.cause.startswith("2011-12-30 12:00 did not exist in Pacific/Apia: clocks went forward by 1d")


def test_a_trigger_is_decided_when_lost_times_must_be_recorded():
    trigger = skipping("30 2 8 3 *")  # its next fire is a year away
    assert due_after(trigger, ALL, SPRING - DAY) == SPRING - 1
    met = decide(trigger, ALL, SPRING - DAY, SPRING - 1, 10)
    assert recorded(met) == [("2026-03-08T06:59:59.999999Z", DISPOSITION)]
    assert met.next_fire_at == parse_instant("2027-03-08T07:30:00Z")
    assert due_after(trigger, Rules(spread=HOUR, offset=7 * MINUTE), SPRING - DAY) == SPRING - 1 + 7 * MINUTE


def test_lost_times_outside_the_bounds_are_not_recorded():
    trigger = skipping("30 2 * * *")
    assert lost(trigger, SPRING - DAY, SPRING + DAY, Rules(start_at=SPRING)) == []
    ends = Rules(end_at=SPRING)
    assert lost(trigger, SPRING - DAY, SPRING + DAY, ends) == [SPRING - 1]
    assert due_after(trigger, ends, SPRING - 20 * HOUR) == SPRING - 1  # no fire is left, but these lost times are
    assert due_after(trigger, ends, SPRING) is None


def test_a_run_around_lost_times_covers_them_and_a_century_costs_nothing():
    trigger, rules = skipping("30 2 * * *"), Rules(misfire=Misfire(policy="skip"))
    begun = perf_counter()
    missed = decide(trigger, rules, SPRING, SPRING + 36_525 * DAY, 10)
    assert [run.disposition for run in missed.ledger] == ["skipped-misfire"]
    sparse = decide(skipping("30 2 8 3 *"), rules, SPRING - DAY, SPRING + 36_525 * DAY, 10)
    assert [run.disposition for run in sparse.ledger] == [DISPOSITION, "skipped-misfire"]
    assert perf_counter() - begun < 2


def test_the_end_of_a_pause_records_lost_times_beside_its_run():
    runs = cover(skipping("30 2 * * *"), ALL, SPRING - DAY, SPRING + HOUR, "skipped-paused", "the job was paused")
    assert [run.disposition for run in runs] == ["skipped-paused", DISPOSITION]


def test_shared_decisions_record_lost_times_for_each_trigger():
    trigger, rules, now = skipping("30 2 * * *"), Rules(), SPRING + 24 * HOUR - 30 * MINUTE
    alike = SharedDecisions(now, 10)
    for through in (SPRING, SPRING - HOUR, SPRING + HOUR):
        decision = alike.decide(trigger, rules, through, fired=0, busy=False, waiting=0)
        assert decision == decide(trigger, rules, through, now, 10)


def test_a_calendar_does_not_hide_lost_times():
    trigger = skipping("30 2 * * *")
    rules, work = Rules(calendars=("work",)), compile_times(parse_times({"hours": ["MON-FRI 00:00-24:00"]}), {})
    met = decide_by_calendar(trigger, rules, work, SPRING - 24 * HOUR, SPRING - 24 * HOUR + 2, 10)
    assert met.next_fire_at == SPRING - 24 * HOUR + 30 * MINUTE
    friday = decide_by_calendar(trigger, rules, work, SPRING - 12 * HOUR, SPRING - HOUR, 10)
    assert friday.next_fire_at == SPRING - 1
    sunday = decide_by_calendar(trigger, rules, work, SPRING - 12 * HOUR, SPRING, 10)
    assert recorded(sunday) == [("2026-03-08T06:59:59.999999Z", DISPOSITION)]


def test_a_preview_mentions_lost_times_at_the_change():
    shown = preview(skipping("30 2 * * *"), Rules(), SPRING - 30 * HOUR, 3)
    change = "clocks go forward by 1h at 2026-03-08T07:00:00Z, from 02:00 to 03:00"
    assert [one.note for one in shown] == ["", f"{change}; 2026-03-08 02:30 did not exist and was skipped", ""]


# --- in every zone -------------------------------------------------------------------------------------------------


def oracle(trigger):
    """Yield the changes, 1970 to 2037, that skip a wall time which never fires, by the zone's own record."""
    x = parse_cron(trigger.expression)
    found = []
    for at, old, new in changes(trigger.timezone):
        long = new - old >= LONG
        if new > old and not x.wild and (trigger.dst_gap == "skip" or long):
            wall = ceil_wall(x, at + old)
            if wall is not None and wall < at + new:
                found.append(at * SECOND - 1)
    return found


@pytest.mark.parametrize("zone", NAMES)
@pytest.mark.parametrize("gap", ["shift", "skip"])
def test_each_clock_change_with_lost_times_is_recorded_once(zone, gap):
    for expression in EXPRESSIONS:
        trigger = skipping(expression, zone, gap)
        found = lost(trigger, 0, 2_145_916_800 * SECOND)
        assert found == sorted(set(found))
        # A clock that was set back less than two days earlier shows these times again: nothing is lost then.
        assert set(found) <= set(oracle(trigger))
        apart = [at for at in oracle(trigger) if not _set_back_before(zone, (at + 1) // SECOND)]
        assert set(apart) <= set(found)


def _set_back_before(zone, second):
    return any(second - 3 * 86_400 < at < second and new < old for at, old, new in changes(zone))


def test_recorded_lost_times_are_shown_by_no_clock():
    for zone in NAMES:
        rules = ZoneInfo(zone)
        for at in lost(skipping("0,15,30,45 0-4 * * *", zone), 0, 2_145_916_800 * SECOND):
            before, after = (
                (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=one)).astimezone(rules).replace(tzinfo=None)
                for one in (at, at + 1)
            )
            assert after - before > timedelta(microseconds=1)


@st.composite
def outages(draw):
    zone = draw(st.sampled_from(NAMES))
    near = draw(st.sampled_from(changes(zone)))[0] * SECOND
    after = near - draw(st.integers(0, 3 * DAY))
    steps = draw(st.lists(st.integers(1, 2 * DAY), min_size=1, max_size=6))
    trigger = skipping(draw(st.sampled_from(EXPRESSIONS)), zone, draw(st.sampled_from(["shift", "skip"])))
    policy = draw(st.sampled_from(["skip", "latest", "all"]))
    return trigger, Rules(overlap="allow", misfire=Misfire(policy=policy, most=5)), after, steps


@given(outages(), st.integers(1, 5))
def test_an_audit_finds_no_flaw_for_any_order_of_decisions(outage, limit):
    trigger, rules, begun, steps = outage
    now = through = begun
    rows = []
    for step in steps:
        now += step
        while True:
            decision = decide(trigger, rules, through, now, limit)
            rows += decision.ledger
            through = decision.decided_through
            if decision.next_fire_at is None or decision.next_fire_at > now:
                break
    assert [row.last for row in rows] == sorted({row.last for row in rows})
    assert all(before.last < after.first for before, after in pairwise(rows))
    assert flaws(trigger, rules, rows, begun, through) == []
    for gone in (row for row in rows if row.disposition == DISPOSITION):
        left = [row for row in rows if row is not gone]
        assert flaws(trigger, rules, left, begun, through) == [Flaw("uncovered", FireSpan(gone.last, gone.last))]


def flaws(trigger, rules, rows, begun, until):
    coverage = CoverageCheck(trigger, rules, begun, begun + 1, until)
    for row in sorted(rows, key=lambda row: row.last):
        if row.disposition == DISPOSITION:
            coverage.add_lost(row.last)
        else:
            coverage.add(row.first, row.last)
    return coverage.finish()


def test_an_audit_reports_invented_and_doubled_lost_times():
    trigger = skipping("30 2 * * *")
    run = cover(trigger, ALL, SPRING - 2 * DAY, SPRING + 2 * DAY, "skipped-paused", "paused")
    (extra,) = cover(trigger, ALL, SPRING - HOUR, SPRING, "skipped-paused", "paused")
    assert [flaw.kind for flaw in flaws(trigger, ALL, run, SPRING - 2 * DAY, SPRING + 2 * DAY)] == []
    twice = flaws(trigger, ALL, [*run, extra], SPRING - 2 * DAY, SPRING + 2 * DAY)
    assert twice == [Flaw("duplicate", FireSpan(SPRING - 1, SPRING - 1))]
    shifted = skipping("30 2 * * *", gap="shift")
    found = flaws(shifted, ALL, [extra], SPRING - HOUR, SPRING - 1)
    assert found == [Flaw("unexpected", FireSpan(SPRING - 1, SPRING - 1))]


@given(st.sampled_from(NAMES), st.data())
def test_a_backfill_that_splits_a_run_keeps_lost_times_recorded(zone, data):
    trigger = skipping("30 2 * * *", zone)
    gaps = lost(trigger, 0, 2_145_916_800 * SECOND)
    if not gaps:
        return
    middle = data.draw(st.sampled_from(gaps))
    first, last = upcoming(trigger, ALL, middle - 4 * DAY), latest(trigger, ALL, middle + 4 * DAY)
    row = LedgerRow(
        trigger=UUID(int=1), first=first, last=last, disposition="skipped-paused", cause="why", decided_at=last
    )
    fires = [first]
    while fires[-1] < last:
        fires.append(next_fire(trigger, fires[-1]))
    out = sorted(data.draw(st.sets(st.sampled_from(fires), min_size=1)))

    left = list(cut(row, out, trigger, ALL))
    backfilled = [LedgerRow(**{**_fields(row), "first": at, "last": at, "disposition": "backfilled"}) for at in out]

    assert flaws(trigger, ALL, [*left, *backfilled], first - 1, last) == []


def _fields(row):
    return {name: getattr(row, name) for name in row.__struct_fields__}
