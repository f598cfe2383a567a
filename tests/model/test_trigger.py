"""The outcome of each nominal fire: within grace it runs, older ones fall under the misfire policy, each is
recorded.
"""

from collections import Counter
from time import perf_counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.base.duration import DAY, HOUR, MINUTE
from horae.model.base.instant import parse_instant
from horae.model.triggers.decisions.decide import Decision, Fire, LedgerRun, cover, decide, is_spent
from horae.model.triggers.decisions.rules import Misfire, Rules, due_at, offset_in, parse_misfire, render_misfire
from horae.model.triggers.decisions.values import Cron, Interval, Once, Trigger, begin, next_fire, previous_fire

T0 = parse_instant("2026-11-15T08:00:00Z")
HOURLY = Cron(expression="0 * * * *")
EVERY_SECOND = Cron(expression="* * * * * *")
SKIP, LATEST = Rules(misfire=Misfire(policy="skip")), Rules()


def run(first, last, disposition):
    """Return a ledger run with its instants as hours after T0."""
    return (first, last, disposition)


def ledger(decision):
    return [((r.first - T0) / HOUR, (r.last - T0) / HOUR, r.disposition) for r in decision.ledger]


def fires(decision):
    return [(f.at - T0) / HOUR for f in decision.fires]


# --- instants ------------------------------------------------------------------------------------------------------


def test_an_interval_counts_from_its_creation_in_whole_seconds():
    every = Interval(every=5 * MINUTE, since=T0 + 700_000)

    assert next_fire(every, T0 + 700_000) == T0 + 5 * MINUTE
    assert next_fire(every, T0 + 5 * MINUTE) == T0 + 10 * MINUTE
    assert previous_fire(every, T0 + 5 * MINUTE) == T0


def test_an_anchor_sets_the_phase_before_and_after_it():
    every = Interval(every=HOUR, anchor=T0 + 30 * DAY + 7 * MINUTE, since=T0)

    assert next_fire(every, T0) == T0 + 7 * MINUTE
    assert next_fire(every, T0 + 60 * DAY) == T0 + 60 * DAY + 7 * MINUTE


def test_once_fires_once():
    once = Once(at=T0)

    assert next_fire(once, T0 - 1) == T0
    assert next_fire(once, T0) is None
    assert previous_fire(once, T0 + 1) == T0
    assert previous_fire(once, T0) is None


def test_an_instant_that_has_just_passed_still_fires():
    once = Once(at=T0 - 5 * SECOND)
    decision = decide(once, Rules(), begin(once, T0), T0, 10)

    assert decision.fires == (Fire(once.at, None),)
    assert decision.next_fire_at is None
    assert begin(HOURLY, T0) == T0


@pytest.mark.parametrize("trigger", [HOURLY, Interval(every=HOUR, since=T0), Once(at=T0)])
def test_triggers_are_encoded_as_json_with_their_kind(trigger):
    wire = msgspec.json.encode(trigger)

    assert msgspec.json.decode(wire, type=Trigger) == trigger
    assert b'"kind"' in wire


def test_field_names_on_the_wire_are_camel_case():
    wire = msgspec.to_builtins(Cron(expression="0 2 * * *", timezone="Europe/Paris", dst_gap="skip"))

    assert wire == {"kind": "cron", "expression": "0 2 * * *", "timezone": "Europe/Paris", "dstGap": "skip"}


def test_equal_triggers_are_equal_keys():
    assert len({HOURLY, Cron(expression="0 * * * *"), Interval(every=HOUR), Interval(every=HOUR)}) == 2


# --- decisions -----------------------------------------------------------------------------------------------------


def test_a_fire_on_time_runs_with_its_data_interval():
    decision = decide(HOURLY, LATEST, T0, T0 + HOUR, 10)

    assert decision == Decision(
        fires=(Fire(T0 + HOUR, T0),),
        ledger=(LedgerRun(T0 + HOUR, T0 + HOUR, "fired", "due"),),
        decided_through=T0 + HOUR,
        next_fire_at=T0 + 2 * HOUR,
    )


def test_no_due_fire_means_no_decision():
    assert decide(HOURLY, LATEST, T0, T0 + 5 * MINUTE, 10) == Decision((), (), T0 + 5 * MINUTE, T0 + HOUR)


def test_a_clock_set_back_repeats_no_fire():
    assert decide(HOURLY, LATEST, T0, T0 - 4 * MINUTE, 10) == Decision((), (), T0, T0 + HOUR)


@pytest.mark.parametrize("policy", ["skip", "latest", "all", "window"])
def test_a_fire_within_grace_is_late_and_runs_whatever_the_policy(policy):
    rules = Rules(misfire=Misfire(policy=policy))
    decision = decide(HOURLY, rules, T0, T0 + HOUR + MINUTE, 10)

    assert fires(decision) == [1]
    assert ledger(decision) == [run(1, 1, "fired")]
    assert decision.ledger[0].cause == "due"


def test_misfire_skip_runs_no_missed_fire():
    decision = decide(HOURLY, SKIP, T0, T0 + 5 * HOUR + 2 * MINUTE, 10)

    assert fires(decision) == []
    assert ledger(decision) == [run(1, 5, "skipped-misfire")]
    assert decision.next_fire_at == T0 + 6 * HOUR
    assert "misfire is skip" in decision.ledger[0].cause


def test_misfire_latest_runs_the_newest_missed_fire():
    decision = decide(HOURLY, LATEST, T0, T0 + 5 * HOUR + 2 * MINUTE, 10)

    assert fires(decision) == [5]
    assert ledger(decision) == [run(1, 4, "coalesced"), run(5, 5, "fired")]
    assert decision.fires[0].since == T0 + 4 * HOUR


def test_misfire_latest_runs_a_single_missed_fire():
    decision = decide(HOURLY, LATEST, T0, T0 + HOUR + 2 * MINUTE, 10)

    assert ledger(decision) == [run(1, 1, "fired")]
    assert decision.ledger[0].cause == "missed; misfire is latest"


def test_misfire_all_runs_the_newest_fires_up_to_its_limit():
    decision = decide(
        HOURLY, Rules(overlap="allow", misfire=Misfire(policy="all", most=3)), T0, T0 + 5 * HOUR + 2 * MINUTE, 10
    )

    assert fires(decision) == [3, 4, 5]
    assert ledger(decision)[0] == run(1, 2, "skipped-misfire")


def test_misfire_window_runs_fires_inside_the_window():
    rules = Rules(overlap="allow", misfire=Misfire(policy="window", within=2 * HOUR))
    decision = decide(HOURLY, rules, T0, T0 + 5 * HOUR + 2 * MINUTE, 10)

    assert fires(decision) == [4, 5]
    assert ledger(decision)[0] == run(1, 3, "skipped-misfire")


def test_missed_and_late_fires_are_distinguished():
    minutely = Cron(expression="* * * * *")
    decision = decide(minutely, SKIP, T0, T0 + HOUR + 30 * SECOND, 10)

    assert [f.at for f in decision.fires] == [T0 + HOUR]
    assert (decision.ledger[0].first, decision.ledger[0].last) == (T0 + MINUTE, T0 + 59 * MINUTE)


def test_a_limit_leaves_further_fires_due():
    rules = Rules(overlap="allow", misfire=Misfire(policy="all"))
    now = T0 + 5 * HOUR + 2 * MINUTE
    one = decide(HOURLY, rules, T0, now, 2)
    two = decide(HOURLY, rules, one.decided_through, now, 9)

    assert fires(one) == [1, 2]
    assert (one.decided_through, one.next_fire_at) == (T0 + 2 * HOUR, T0 + 3 * HOUR)
    assert fires(two) == [3, 4, 5]


def test_bounds_keep_fires_out():
    rules = Rules(start_at=T0 + 2 * HOUR, end_at=T0 + 4 * HOUR, overlap="allow", misfire=Misfire(policy="all"))
    decision = decide(HOURLY, rules, T0, T0 + 9 * HOUR, 10)

    assert fires(decision) == [2, 3]
    assert decision.next_fire_at is None
    assert decide(HOURLY, rules, T0, T0, 10).next_fire_at == T0 + 2 * HOUR


def test_a_trigger_ends_after_its_last_allowed_fire():
    rules = Rules(overlap="allow", max_fires=3, misfire=Misfire(policy="all"))
    decision = decide(HOURLY, rules, T0, T0 + 9 * HOUR, 10, fired=1)

    assert fires(decision) == [1, 2]
    assert (decision.decided_through, decision.next_fire_at) == (T0 + 2 * HOUR, None)
    assert decide(HOURLY, rules, T0 + 9 * HOUR, T0 + 99 * HOUR, 10, fired=3).next_fire_at is None


def test_only_fires_that_run_are_counted():
    rules = Rules(overlap="skip", max_fires=2, grace=9 * HOUR)
    one = decide(HOURLY, rules, T0, T0 + 5 * HOUR, 10)
    held = decide(HOURLY, rules, one.decided_through, T0 + 6 * HOUR, 10, fired=1, busy=True)
    two = decide(HOURLY, rules, held.decided_through, T0 + 7 * HOUR, 10, fired=1)

    assert (fires(one), one.next_fire_at) == ([5], T0 + 6 * HOUR)
    assert (fires(held), held.next_fire_at) == ([], T0 + 7 * HOUR)
    assert (fires(two), two.next_fire_at) == ([7], None)


def test_overlap_skip_records_one_run_while_the_last_execution_runs():
    decision = decide(HOURLY, Rules(grace=9 * HOUR), T0, T0 + 5 * HOUR, 10, busy=True)

    assert fires(decision) == []
    assert ledger(decision) == [run(1, 5, "skipped-overlap")]
    assert decision.ledger[0].cause == "the previous execution had not ended"
    assert decision.next_fire_at == T0 + 6 * HOUR


def test_overlap_skip_runs_the_newest_of_several_due_fires():
    decision = decide(HOURLY, Rules(grace=9 * HOUR), T0, T0 + 5 * HOUR, 2)

    assert fires(decision) == [5]
    assert decision.fires[0].since == T0 + 4 * HOUR
    assert ledger(decision) == [run(1, 4, "skipped-overlap"), run(5, 5, "fired")]
    assert decision.ledger[0].cause == "a newer fire was due as well and ran instead"


@pytest.mark.parametrize("overlap", ["queueOne", "cancelOther"])
@pytest.mark.parametrize("busy", [False, True])
def test_only_the_newest_of_several_replacing_fires_runs(overlap, busy):
    decision = decide(HOURLY, Rules(grace=9 * HOUR, overlap=overlap), T0, T0 + 5 * HOUR, 10, busy=busy, waiting=3)

    assert ledger(decision) == [run(1, 4, "skipped-overlap"), run(5, 5, "fired")]


def test_a_full_queue_skips_fires_in_one_run():
    rules = Rules(grace=9 * HOUR, overlap="queueAll", most_queued=3)
    decision = decide(HOURLY, rules, T0, T0 + 5 * HOUR, 10, busy=True, waiting=1)

    assert ledger(decision) == [run(1, 1, "fired"), run(2, 2, "fired"), run(3, 5, "skipped-overlap")]
    assert decision.ledger[-1].cause == "3 executions waited for the previous one already"
    assert (decision.decided_through, decision.next_fire_at) == (T0 + 5 * HOUR, T0 + 6 * HOUR)
    assert fires(decide(HOURLY, rules, T0, T0 + 5 * HOUR, 10)) == [1, 2, 3, 4]
    assert fires(decide(HOURLY, rules, T0, T0 + 5 * HOUR, 10, busy=True, waiting=9)) == []


def test_a_spread_trigger_fires_its_offset_after_each_instant():
    rules = Rules(spread=HOUR, offset=20 * MINUTE)
    early = decide(HOURLY, rules, T0, T0 + HOUR + 19 * MINUTE, 10)
    assert (early.fires, early.next_fire_at) == ((), T0 + HOUR + 20 * MINUTE)
    due = decide(HOURLY, rules, early.decided_through, T0 + HOUR + 20 * MINUTE, 10)

    assert ledger(due) == [run(1, 1, "fired")]
    assert due.ledger[0].cause == "due"
    assert (due.decided_through, due.next_fire_at) == (T0 + HOUR, T0 + 2 * HOUR + 20 * MINUTE)
    assert due_at(rules, "default/report/schedule", T0 + HOUR) == T0 + HOUR + 20 * MINUTE


def test_a_limit_of_zero_is_refused():
    with pytest.raises(ValueError, match="limit must be at least 1"):
        decide(HOURLY, LATEST, T0, T0, 0)


@pytest.mark.parametrize("trigger", [EVERY_SECOND, Interval(every=SECOND), Interval(every=100_000)])
@pytest.mark.parametrize("policy", ["skip", "latest", "all"])
def test_a_century_is_decided_quickly(trigger, policy):
    rules = Rules(misfire=Misfire(policy=policy, most=5), grace=0)
    began = perf_counter()
    decision = decide(trigger, rules, T0, T0 + 36_525 * DAY, 1_000)

    assert perf_counter() - began < 0.1
    assert len(decision.ledger) <= 7
    assert decision.ledger[0].first == next_fire(trigger, T0)


def test_a_pause_is_recorded_as_one_run():
    assert cover(HOURLY, LATEST, T0, T0 + 5 * HOUR, "skipped-paused", "paused by ann") == (
        LedgerRun(T0 + HOUR, T0 + 5 * HOUR, "skipped-paused", "paused by ann"),
    )
    assert cover(HOURLY, LATEST, T0, T0 + MINUTE, "skipped-paused", "paused by ann") == ()


TRIGGERS = st.sampled_from(
    [
        HOURLY,
        Cron(expression="30 1,2 * * *", timezone="America/New_York"),
        Cron(expression="*/30 1-3 * * *", timezone="Australia/Lord_Howe"),
        Cron(expression="0 0 * * *", timezone="Africa/Cairo", dst_overlap="both"),
        Interval(every=37 * MINUTE, since=T0),
        Interval(every=26 * HOUR, anchor=T0),
        Once(at=T0 + 3 * DAY),
    ]
)
RULES = st.builds(
    Rules,
    misfire=st.builds(
        Misfire,
        policy=st.sampled_from(["skip", "latest", "all", "window"]),
        most=st.integers(1, 10),
        within=st.integers(0, 5 * DAY),
    ),
    grace=st.sampled_from([0, MINUTE, 3 * HOUR]),
    start_at=st.none() | st.integers(T0, T0 + 2 * DAY),
    end_at=st.none() | st.integers(T0 + 2 * DAY, T0 + 9 * DAY),
    overlap=st.sampled_from(["allow", "skip", "queueOne", "queueAll", "cancelOther"]),
    most_queued=st.integers(1, 3),
    max_fires=st.none() | st.integers(1, 5),
    offset=st.sampled_from([0, 20 * MINUTE, 5 * HOUR]),
)


@given(
    TRIGGERS,
    RULES,
    st.lists(st.tuples(st.integers(-HOUR, 3 * DAY), st.booleans(), st.integers(0, 4)), min_size=1, max_size=6),
    st.integers(1, 7),
    st.integers(0, 300),
)
def test_every_nominal_fire_is_covered_by_exactly_one_run(trigger, rules, steps, limit, season):
    start = T0 + season * DAY  # in some seasons it covers clock changes of both halves of the year
    rules = msgspec.structs.replace(
        rules,
        start_at=None if rules.start_at is None else rules.start_at + season * DAY,
        end_at=None if rules.end_at is None else rules.end_at + season * DAY,
    )
    through, now, runs, fired = start, start, [], 0
    most = {"allow": limit, "queueOne": 1, "cancelOther": 1}
    for step, busy, waiting in steps:
        now += step
        decision = decide(trigger, rules, through, now, limit, fired=fired, busy=busy, waiting=waiting)
        fired += len(decision.fires)
        assert [(f.at, f.at) for f in decision.fires] == [
            (r.first, r.last) for r in decision.ledger if r.disposition == "fired"
        ]
        assert len(decision.fires) <= limit
        room = max(0, rules.most_queued - waiting) + (not busy and not waiting)
        assert len(decision.fires) <= {**most, "skip": not busy, "queueAll": room}[rules.overlap]
        assert all(f.at + rules.offset <= now for f in decision.fires)
        assert decision.decided_through >= through
        assert all(f.since is None or f.since == previous_fire(trigger, f.at) for f in decision.fires)
        through = decision.decided_through
        runs += decision.ledger
        if is_spent(rules, fired):
            break

    covered = [at for r in runs for at in nominal(trigger, rules, r.first - 1, r.last)]
    assert covered == nominal(trigger, rules, start, through)
    assert all(r.first == nominal(trigger, rules, r.first - 1, r.last)[0] for r in runs)
    assert all(r.last == nominal(trigger, rules, r.first - 1, r.last)[-1] for r in runs)
    following = (
        None if is_spent(rules, fired) else next(iter(nominal(trigger, rules, through, now + 900 * DAY, 1)), None)
    )
    assert decision.next_fire_at == (None if following is None else following + rules.offset)


def nominal(trigger, rules, after, until, most=10_000):
    found = []
    while (after := next_fire(trigger, after)) is not None and after <= until and len(found) < most:
        if (rules.start_at or 0) <= after and (rules.end_at is None or after < rules.end_at):
            found.append(after)
        elif rules.end_at is not None and after >= rules.end_at:
            break
    return found


# --- rules ---------------------------------------------------------------------------------------------------------


def test_spread_fills_a_window_evenly_with_stable_places():
    offsets = [offset_in(HOUR, f"default/job-{n}/schedule") for n in range(36_000)]
    minutes = Counter(offset // MINUTE for offset in offsets)

    assert offsets[:9] == [offset_in(HOUR, f"default/job-{n}/schedule") for n in range(9)]
    assert all(0 <= offset < HOUR and offset % SECOND == 0 for offset in offsets)
    assert len(minutes) == 60
    assert all(450 < count < 750 for count in minutes.values())  # 600 on average, 24 apart
    assert all(0 <= offset_in(5 * SECOND, str(n)) < 5 * SECOND for n in range(50))
    assert (offset_in(0, "x"), offset_in(1, "x")) == (0, 0)


def test_jitter_is_deterministic_and_bounded():
    rules = Rules(jitter=30 * SECOND)
    moved = [due_at(rules, "default/report", T0 + n * HOUR) - (T0 + n * HOUR) for n in range(50)]

    assert moved == [due_at(rules, "default/report", T0 + n * HOUR) - (T0 + n * HOUR) for n in range(50)]
    assert all(0 <= each <= 30 * SECOND for each in moved)
    assert len(set(moved)) > 40
    assert due_at(Rules(), "default/report", T0) == T0


@pytest.mark.parametrize("value", ["skip", "latest", {"all": 10}, {"window": "1h30m"}])
def test_a_misfire_policy_round_trips(value):
    assert render_misfire(parse_misfire(value)) == value


@pytest.mark.parametrize(
    "value", ["never", {"all": 0}, {"all": True}, {"all": 10**6}, {"window": "soon"}, {}, None, 5, []]
)
def test_a_wrong_misfire_policy_is_refused(value):
    with pytest.raises(BadInput) as refused:
        parse_misfire(value)

    assert refused.value.remedy
