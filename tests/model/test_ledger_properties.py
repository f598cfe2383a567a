"""Ledger rows: after a split they still cover every fire exactly once; flaws are named exactly."""

from collections import Counter
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from horae.env import SECOND
from horae.features.backfills.model.plan import Stretch, next_fires, outline, stretches
from horae.features.backfills.model.work import choose, rewrite
from horae.model.base.duration import HOUR, MINUTE
from horae.model.base.instant import parse_instant
from horae.model.triggers.calendars.compiled import compile_times
from horae.model.triggers.calendars.read import parse_times
from horae.model.triggers.decisions.coverage import CoverageCheck, FireSpan, Flaw, name_fires
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Cron, Interval, next_fire
from horae.model.triggers.ledger import LedgerRow, TriggerVersion, cut, row_of

T0 = parse_instant("2026-11-15T08:00:00Z")
EVERY = Interval(every=MINUTE, anchor=T0)
RULES = Rules()
ID, BACKFILL = UUID(int=1), UUID(int=99)
MINUTES = st.integers(0, 59)


def at(minute):
    return T0 + minute * MINUTE


def row(first, last, disposition="skipped-paused", execution=None):
    return LedgerRow(
        trigger=ID, first=at(first), last=at(last), disposition=disposition, cause="why", execution=execution,
        decided_at=at(last),
    )  # fmt: skip


def fires(rows):
    """Count how often each minute is covered."""
    covered = Counter()
    for one in rows:
        covered.update(minute for minute in range(-60, 120) if one.first <= at(minute) <= one.last)
    return covered


@st.composite
def ledgers(draw):
    """Draw adjacent rows over the first sixty minutes, some of a single fire with an execution."""
    ends = sorted({59, *draw(st.sets(MINUTES, max_size=12))})
    starts = [0, *(end + 1 for end in ends[:-1])]
    made = []
    for number, (first, last) in enumerate(zip(starts, ends, strict=True)):
        ran = first == last and draw(st.booleans())
        made.append(row(first, last, "fired" if ran else "skipped-paused", UUID(int=1000 + number) if ran else None))
    return made


# --- splitting ------------------------------------------------------------------------------------------------


@given(st.integers(0, 20), st.integers(20, 59), st.data())
def test_a_split_row_covers_each_other_fire_once(first, last, data):
    out = sorted(data.draw(st.sets(st.integers(first, last), min_size=1)))

    left = list(cut(row(first, last), [at(minute) for minute in out], EVERY, RULES))

    assert fires(left) == Counter(set(range(first, last + 1)) - set(out))
    assert len(left) <= len(out) + 1


def test_taking_out_adjacent_fires_leaves_two_runs():
    left = list(cut(row(0, 59), [at(20), at(21), at(22)], EVERY, RULES))

    assert [(one.first, one.last) for one in left] == [(at(0), at(19)), (at(23), at(59))]
    assert {one.decided_at for one in left} == {at(59)}


@given(ledgers(), MINUTES)
def test_the_row_that_covers_a_fire_is_found(rows, minute):
    found = row_of(rows, at(minute))

    assert found.first <= at(minute) <= found.last
    assert [row_of(rows, at(-1)), row_of(rows, at(60))] == [None, None]


# --- coverage ------------------------------------------------------------------------------------------------------


def flaws(rows, begun=-1, since=0, until=59):
    coverage = CoverageCheck(EVERY, RULES, at(begun), at(since), at(until))
    for one in sorted(rows, key=lambda one: one.last):
        coverage.add(one.first, one.last)
    return coverage.finish()


def named(found, kind):
    """Return the minutes named by a kind of flaw."""
    return {
        minute
        for flaw in found
        if flaw.kind == kind
        for minute in range(60)
        if flaw.span.first <= at(minute) <= flaw.span.last
    }


@given(ledgers())
def test_a_complete_ledger_has_no_flaw(rows):
    assert flaws(rows) == []


@given(st.lists(st.tuples(MINUTES, MINUTES).map(sorted), max_size=8, unique_by=lambda span: span[1]))
def test_holes_and_doubled_fires_are_reported_exactly_for_any_rows(spans):
    covered = Counter(minute for first, last in spans for minute in range(first, last + 1))

    found = flaws([row(first, last) for first, last in spans])

    assert named(found, "uncovered") == set(range(60)) - set(covered)
    assert named(found, "duplicate") == {minute for minute, times in covered.items() if times > 1}
    assert named(found, "unexpected") == set()


def test_rows_are_checked_inside_the_range_only():
    assert flaws([row(-30, 90)], since=0, until=59) == []
    assert flaws([row(-30, 10)], since=0, until=59) == [Flaw("uncovered", FireSpan(at(11), at(59)))]


def test_before_a_trigger_was_made_rows_may_be_missing_but_not_doubled():
    assert flaws([row(3, 3, "backfilled"), row(10, 59)], begun=9) == []
    assert flaws([row(3, 5), row(4, 4), row(10, 59)], begun=9) == [Flaw("duplicate", FireSpan(at(4), at(4)))]


def test_a_row_that_ends_between_fires_is_reported():
    coverage = CoverageCheck(EVERY, RULES, at(-1), at(0), at(1))
    coverage.add(at(0), at(1) - SECOND)

    assert [flaw.kind for flaw in coverage.finish()] == ["unexpected", "uncovered"]


def test_fires_are_named_up_to_a_bound_and_counted():
    instants, count = name_fires(EVERY, RULES, FireSpan(at(0), at(59)), 3)

    assert (instants, count) == ([at(0), at(1), at(2)], 60)


# --- backfills -----------------------------------------------------------------------------------------------------


def version(after=-1, through=59, trigger=EVERY, id=ID, name="schedule"):
    return TriggerVersion(
        id=id, name=name, trigger=trigger, rules=RULES, after=at(after), through=at(through), job_created_at=at(after)
    )


def worked(rows, parts, room, *, force=False, newest_first=False):
    """Run a backfill to its end; return the rows at that point, and the minutes in the order of their runs."""
    place, ran, already = None, [], 0
    while candidates := next_fires(parts, place, 7, newest_first=newest_first):
        chosen = choose(candidates, {ID: rows}, room, force=force)
        gone, come = rewrite(chosen.picks, [UUID(int=5000 + i) for i, _ in enumerate(chosen.picks)], BACKFILL, at(60))
        rows = sorted([one for one in rows if one not in gone] + come, key=lambda one: one.last)
        ran += [(pick.at - T0) // MINUTE for pick in chosen.picks]
        place, already = chosen.place, already + chosen.already_ran
    return rows, ran, already


@given(ledgers(), st.integers(1, 9), MINUTES, MINUTES, st.booleans(), st.booleans())
def test_a_backfill_runs_each_missed_fire_once_and_the_ledger_stays_complete(rows, room, a, b, force, newest_first):
    since, until = min(a, b), max(a, b) + 1
    parts = stretches([version()], at(since), at(until), 0)
    had_run = {minute for minute in range(60) if row_of(rows, at(minute)).execution is not None}

    after, ran, already = worked(rows, parts, room, force=force, newest_first=newest_first)

    wanted = [minute for minute in range(since, until) if force or minute not in had_run]
    assert ran == (wanted[::-1] if newest_first else wanted)
    assert already == (until - since) - len(wanted)
    assert fires(after) == Counter(range(60))
    assert {row_of(after, at(minute)).disposition for minute in had_run} <= {"fired"}
    assert all(row_of(after, at(minute)).disposition == "backfilled" for minute in set(ran) - had_run)


def test_each_version_owns_its_fires_and_none_fire_between_versions():
    half = Interval(every=30 * MINUTE, anchor=T0)
    versions = [version(-1, 20), version(40, 59, half, UUID(int=2))]

    parts = stretches(versions, at(-3), at(100), 0)

    assert [(fire - T0) // MINUTE for fire, _ in next_fires(parts, None, 100)] == [*range(-3, 21)]
    assert outline(parts).before == 3
    parts = stretches([version(-1, 20), version(40, 95, half, UUID(int=2))], at(0), at(100), 0)
    assert [(fire - T0) // MINUTE for fire, _ in next_fires(parts, None, 100)] == [*range(21), 60, 90]


def test_fires_no_longer_in_the_ledger_are_distinguished():
    parts = stretches([version()], at(-10), at(60), at(20))

    told = {part.known: part.count() for part in parts}

    assert told == {"before": 10, "forgotten": 20, "known": 40}
    whole = outline(parts)
    assert (whole.total, whole.first, whole.last) == (70, at(-10), at(59))


def test_fires_of_deleted_versions_are_not_taken_for_new():
    first = structs.replace(version(30, 59), job_created_at=at(0))

    parts = stretches([first], at(-10), at(60), at(20))

    told = [(part.known, part.count()) for part in parts]
    assert told == [("before", 11), ("forgotten", 19), ("before", 11), ("known", 29)]
    assert [part.known for part in stretches([first], at(-10), at(60), 0)] == ["before", "before", "known"]


@given(st.integers(0, 80), st.booleans())
def test_several_triggers_are_merged_and_resumed_at_any_place(cut_at, newest_first):
    other = version(-1, 59, Interval(every=15 * MINUTE, anchor=T0), UUID(int=2), "quarters")
    parts = stretches([version(), other], at(0), at(60), 0)
    whole = next_fires(parts, None, 1000, newest_first=newest_first)
    order = [(fire, part.version.name) for fire, part in whole]

    assert order == sorted(set(order), reverse=newest_first)
    assert len(order) == 64
    cut_at = min(cut_at, 63)
    assert next_fires(parts, order[cut_at], 1000, newest_first=newest_first) == whole[cut_at + 1 :]


WORK = compile_times(parse_times({"hours": ["MON-SUN 08:10-08:25", "MON-SUN 08:40-08:41"]}), {})


@given(st.sampled_from(["skip", "postpone", "advance"]), st.integers(-90, 120), st.integers(0, 200), st.integers(1, 9))
def test_counts_under_a_calendar_equal_enumeration(outside, since, length, every):
    trigger, rules = Interval(every=every * MINUTE, anchor=T0), Rules(calendars=("work",), outside=outside)
    made = structs.replace(version(-200, 400, trigger), rules=rules, calendar=WORK)
    part = Stretch(made, at(since), at(since + length))

    forwards, backwards = list(part.forwards(None)), list(part.backwards(None))

    assert forwards == backwards[::-1]
    assert part.count() == len(forwards)
    assert (part.first(), part.last()) == ((forwards[0], forwards[-1]) if forwards else (None, None))
    if outside == "skip":
        assert all(WORK.is_open(fire) for fire in forwards)


def test_an_outline_costs_no_more_than_its_months():
    secondly = version(-1, 10, Cron(expression="* * * * * *"))
    part = Stretch(secondly, T0 - 876_600 * HOUR, T0)

    assert outline([part]).total == 876_600 * 3600
    assert next_fire(EVERY, T0) == at(1)
