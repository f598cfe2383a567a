"""Properties of every expression in every zone at every clock change, and agreement with slow, obvious oracles."""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import product
from time import perf_counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.triggers.cron import fire, zone
from horae.model.triggers.cron.fire import last_before, next_after
from horae.model.triggers.cron.parse import parse_cron
from horae.model.triggers.cron.wall import CronExpression
from horae.model.triggers.cron.zone import load as load_zone
from horae.model.triggers.cron.zone import spans
from tests.model.cron.clockwork import boundaries, look_at_zone
from tests.model.cron.differences import compare_quartz, compare_with_cronsim, compare_with_vixie
from tests.model.cron.fuzz import LONGEST, fuzz
from tests.model.zones import PECULIAR, YEAR_2038, all_zones, changes

EXPRESSIONS = (
    "* * * * *",
    "*/7 * * * *",
    "0 * * * *",
    "30 1 * * *",
    "30 2 * * *",
    "0,30 1-3 * * *",
    "0 */2 * * *",
    "15 0,23 * * *",
    "59 23 L * *",
    "0 0 * * 0",
    "0 12 13 * 5",
    "0 0 15W * *",
    "10,40 */3 30 1,12 *",
    "*/20 * * * * *",
    "30 45 2 * * *",
)
CHANGING = tuple(zone for zone in PECULIAR if changes(zone))
GAPS, OVERLAPS = ("shift", "skip"), ("first", "second", "both")


@st.composite
def moments(draw):
    """Draw a zone and an instant, mostly within two days of one of its clock changes."""
    zone = draw(st.sampled_from(PECULIAR))
    known = changes(zone)
    if not known or draw(st.integers(0, 9)) == 0:
        return zone, draw(st.integers(0, YEAR_2038 * SECOND))
    near = draw(st.sampled_from(known))[0] * SECOND
    return zone, near + draw(st.integers(-2 * 86_400 * SECOND, 2 * 86_400 * SECOND) | st.sampled_from([-1, 0, 1]))


@given(st.sampled_from(EXPRESSIONS), moments(), st.sampled_from(GAPS), st.sampled_from(OVERLAPS))
def test_next_and_last_agree_and_always_move(expression, moment, gap, overlap):
    x, (zone, at) = parse_cron(expression), moment
    coming = next_after(x, zone, at, gap, overlap)
    past = last_before(x, zone, at, gap, overlap)

    assert past < at < coming
    assert last_before(x, zone, coming, gap, overlap) <= at
    assert next_after(x, zone, past, gap, overlap) >= at
    assert last_before(x, zone, coming + 1, gap, overlap) == coming
    assert next_after(x, zone, past - 1, gap, overlap) == past


@given(st.sampled_from(EXPRESSIONS), moments(), st.sampled_from(GAPS), st.sampled_from(OVERLAPS))
def test_forward_and_backward_list_the_same_instants(expression, moment, gap, overlap):
    x, (zone, at) = parse_cron(expression), moment
    forward = [at]
    for _ in range(12):
        forward.append(next_after(x, zone, forward[-1], gap, overlap))
    backward = [forward[-1]]
    for _ in range(11):
        backward.append(last_before(x, zone, backward[-1], gap, overlap))

    assert forward[1:] == backward[::-1]
    assert len(set(forward)) == 13


# --- against a walk through every minute ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Plain:
    """An expression of plain lists, with its values written out."""

    minutes: frozenset[int]
    hours: frozenset[int]
    star: str  # the field written as a star: "minute", "hour" or none
    date: datetime | None = None  # fire only on this day of the year

    @property
    def text(self) -> str:
        minute = "*" if self.star == "minute" else ",".join(map(str, sorted(self.minutes)))
        hour = "*" if self.star == "hour" else ",".join(map(str, sorted(self.hours)))
        return f"{minute} {hour} {f'{self.date.day} {self.date.month}' if self.date else '* *'} *"

    def matches(self, wall: datetime) -> bool:
        if self.date and (wall.month, wall.day) != (self.date.month, self.date.day):
            return False
        minute = self.star == "minute" or wall.minute in self.minutes
        return minute and (self.star == "hour" or wall.hour in self.hours) and wall.second == 0


PLAIN = st.builds(
    Plain,
    minutes=st.frozensets(st.integers(0, 59), min_size=1, max_size=3),
    hours=st.frozensets(st.sampled_from([0, 1, 2, 3, 4, 22, 23]), min_size=1, max_size=3),
    star=st.sampled_from(["", "", "minute", "hour"]),
)


def walk(plain, zone, utc, gap, overlap):
    """Return the fires among these UTC seconds, checking every minute or half minute by the rule's own definition."""
    walls = [datetime.fromtimestamp(second, zone).replace(tzinfo=None) for second in utc]
    if plain.star:
        return [second for second, wall in zip(utc, walls, strict=True) if plain.matches(wall)]
    found, passes = set(), {}
    for second, wall in zip(utc, walls, strict=True):
        if plain.matches(wall):
            passes.setdefault(wall, []).append(second)
    for seen in passes.values():
        found.update(seen[:1] if overlap == "first" else seen[-1:] if overlap == "second" else seen)
    for second, before, after in zip(utc[1:], walls, walls[1:], strict=False):
        missing = int((after - before).total_seconds()) - utc.step
        skipped = (before + timedelta(seconds=utc.step + s) for s in range(0, missing, utc.step))
        if gap == "shift" and 0 < missing < 3 * 3600 and any(map(plain.matches, skipped)):
            found.add(second)
    return sorted(found)


@given(PLAIN, st.sampled_from(CHANGING), st.integers(0, 10**6), st.sampled_from(GAPS), st.sampled_from(OVERLAPS))
@example(Plain(frozenset({0, 30}), frozenset({0, 23}), ""), "Africa/Monrovia", 0, "shift", "first")
@example(Plain(frozenset({10}), frozenset({0}), ""), "Asia/Kathmandu", 0, "shift", "first")
def test_fires_around_a_clock_change_are_those_of_a_walk_through_every_minute(plain, name, which, gap, overlap):
    change = changes(name)[which % len(changes(name))][0]

    assert found_around(plain, name, change, gap, overlap) == walked_around(plain, name, change, gap, overlap)


@given(PLAIN, st.sampled_from(CHANGING), st.integers(0, 10**6), st.sampled_from(OVERLAPS), st.integers(-20, 10**8))
def test_a_distant_date_with_a_clock_change_is_found(plain, name, which, overlap, before):
    change = changes(name)[which % len(changes(name))][0]
    plain = replace(plain, date=datetime.fromtimestamp(change - before % 2, load_zone(name)))

    walked = walked_around(plain, name, change, "shift", overlap)
    assert found_around(plain, name, change, "shift", overlap, max(0, before)) == walked


def found_around(plain, name, change, gap, overlap, before=0):
    """Return the fires within five hours of a change, computed from an earlier instant."""
    x, at, found = parse_cron(plain.text), (change - 5 * 3600 - 1 - before) * SECOND, []
    while (at := next_after(x, name, at, gap, overlap)) < (change + 5 * 3600) * SECOND:
        found.append(at // SECOND)
    return [each for each in found if each >= change - 5 * 3600]


def walked_around(plain, name, change, gap, overlap):
    """Return the same by brute force over a wider range, so that it sees both passes. Monrovia's clocks were at half
    minutes.
    """
    utc = range(change - 10 * 3600, change + 10 * 3600, 30 if name == "Africa/Monrovia" else 60)
    fires = walk(plain, load_zone(name), utc, gap, overlap)
    return [each for each in fires if change - 5 * 3600 <= each < change + 5 * 3600]


@pytest.mark.parametrize("name", ["Europe/London", "Australia/Lord_Howe", "America/Nuuk", "Pacific/Apia"])
@pytest.mark.parametrize("bits", [13, 16, 20], ids=["2 hours", "18 hours", "12 days"])
def test_the_size_of_zone_buckets_does_not_change_fires(bits, name):
    assert list(all_around(name, bits)) == list(all_around(name, 25))


def all_around(name: str, bits: int) -> Iterator[int]:
    """Return fires near a zone's last few clock changes, with buckets of 2**bits seconds."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (zone, fire):
            patch.setattr(module, "BUCKET_BITS", bits)
        patch.setattr(fire, "LAST_BUCKET", 10**6)
        spans.cache_clear()
        for expression, overlap in product(["30 1,2 * * *", "*/30 * * * *", "15 0,23 28-31 * *"], OVERLAPS):
            for second, _, _ in changes(name)[-6:]:
                yield from both_ways(parse_cron(expression), name, second * SECOND, overlap)
    spans.cache_clear()


def both_ways(x: CronExpression, name: str, around: int, overlap: str) -> Iterator[int]:
    forward, backward = around - 4 * 3600 * SECOND, around + 4 * 3600 * SECOND
    for _ in range(12):
        yield (forward := next_after(x, name, forward, "shift", overlap))
        yield (backward := last_before(x, name, backward, "shift", overlap))


# --- zones ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PECULIAR)
def test_spans_contain_every_clock_change_of_a_zone(name):
    assert changes(name) == boundaries(name)


# --- at single clock changes; `tools/time` checks all of them ---------------------------------------------------


@pytest.mark.parametrize("name", PECULIAR)
def test_at_a_clock_change_next_and_last_agree_and_always_move(name):
    _, verdict = look_at_zone(name, every=9)

    assert verdict.unexplained == []


# --- against other implementations, 2,000 cases each; `tools/time` compares 100,000 -----------------------------

SOME_ZONES = (*PECULIAR, *sorted(all_zones())[7::20])


@pytest.mark.parametrize("seed", [1, 2])
def test_every_difference_from_vixies_loop_has_a_name(seed):
    verdict = compare_with_vixie(1_000, seed, SOME_ZONES)

    assert verdict.unexplained == []
    assert verdict.cases >= 1_000
    assert verdict.fires > 20_000


@pytest.mark.parametrize("seed", [1, 2])
def test_every_difference_from_cronsim_has_a_name(seed):
    verdict = compare_with_cronsim(1_000, seed, SOME_ZONES)

    assert verdict.unexplained == []
    assert verdict.cases >= 1_000
    assert verdict.fires > 5_000


@pytest.mark.parametrize("seed", [1, 2])
def test_quartz_expressions_fire_as_brute_force_does(seed):
    verdict = compare_quartz(1_000, seed, SOME_ZONES)

    assert verdict.unexplained == []
    assert verdict.cases >= 1_000
    assert verdict.fires > 20_000


@pytest.mark.parametrize(
    ("compare", "cases"), [(compare_with_vixie, 200), (compare_with_cronsim, 1_000), (compare_quartz, 200)]
)
def test_a_difference_without_a_name_is_noticed(compare, cases, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fire, "LONG_GAP", 60)  # so nothing is shifted out of a gap

    assert compare(cases, 3, ["Europe/Paris"]).unexplained


def test_a_mutated_expression_is_parsed_or_refused_quickly():
    found = fuzz(5_000, seed=2026)

    assert found.accepted > 500
    assert found.slowest < 4 * LONGEST, found.slowest_text  # the margin is for a busy machine


# --- speed ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("expression", ["0 0 * * *", "*/5 * * * *", "0 9 * * MON-FRI"])
def test_next_is_quick(expression):
    x, at = parse_cron(expression), 1_767_225_600 * SECOND
    best = math.inf  # the best of several rounds, since a busy machine may interrupt some
    for _ in range(10):
        began = perf_counter()
        for _ in range(200):
            at = next_after(x, "America/New_York", at)
        best = min(best, (perf_counter() - began) / 200)

    assert best < 50e-6  # 10 us is the goal


@pytest.mark.parametrize(
    "text",
    ["H/1 " * 6, "1-59/2," * 140 + "1 * * * *", "0 0 " + "15W," * 240 + "L * *", "0 0 30 2 *", "x" * 1000, "* " * 499],
    ids=lambda text: text[:12],
)
def test_parsing_or_refusing_is_quick(text):
    def once() -> float:
        began = perf_counter()
        with suppress(BadInput):
            parse_cron.__wrapped__(text, "unix", "default/job")
        return perf_counter() - began

    assert min(once() for _ in range(3)) < 5e-3
