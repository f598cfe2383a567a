"""Random expressions, zones and starts, given to Horae and to another implementation; every difference must have a
name.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from random import Random

from cronsim import CronSim, CronSimError
from msgspec import Struct, field

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.triggers.cron.fire import next_after
from horae.model.triggers.cron.parse import parse_cron
from horae.model.triggers.cron.wall import CronExpression
from horae.model.triggers.cron.zone import load as load_zone
from tests.model.cron import quartz, vixie
from tests.model.cron.writing import quartz_text, unix_text
from tests.model.zones import YEAR_2038, changes

YEAR_1971 = 31_536_000
LONG = 3 * 3600
NOT_VIXIE = re.compile(r"#|\dL|\dW|\bLW?\b|[A-Z]{3}L|(?:^|[ ,])\d+/")  # syntax unknown to Vixie's parser
ONE_VALUE = re.compile(r"\b(\w+)-\1/")


class Verdict(Struct):
    """The number of compared cases and fires, and the rules that explain differences."""

    cases: int = 0
    fires: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)

    def add(self, other: "Verdict") -> None:
        self.cases += other.cases
        self.fires += other.fires
        self.explained += other.explained
        self.unexplained += other.unexplained


def start_near_a_change(rng: Random, zone: str, before: int = 12 * 3600) -> int:
    """Return a whole minute, mostly shortly before one of the zone's clock changes."""
    known = _changes_since_1971(zone)
    if known and rng.random() < 0.8:
        return (rng.choice(known) - rng.randrange(before)) // 60 * 60
    return rng.randrange(YEAR_1971, YEAR_2038) // 60 * 60


@cache
def _changes_since_1971(zone: str) -> tuple[int, ...]:
    return tuple(at for at, _, _ in changes(zone) if at > YEAR_1971)


def ours(x: CronExpression, zone: str, start: int, end: int) -> Iterator[int]:
    """Return Horae's fires between two UTC seconds."""
    at: int | None = start * SECOND
    while (at := next_after(x, zone, at)) is not None and at <= end * SECOND:
        yield at // SECOND


def near(zone: str, second: int, reach: int = 26 * 3600) -> list[tuple[int, int, int]]:
    """Return the clock changes around a UTC second."""
    known = changes(zone)
    return list(known[bisect_left(known, (second - reach,)) : bisect_left(known, (second + reach,))])


# --- Vixie's loop --------------------------------------------------------------------------------------------------


def compare_with_vixie(cases: int, seed: int, zones: Sequence[str]) -> Verdict:
    """Compare 20 hours of Vixie's loop with Horae, mostly around a clock change, with ten expressions each."""
    rng, verdict = Random(seed), Verdict()
    while verdict.cases < cases:
        zone = rng.choice(zones)
        start = start_near_a_change(rng, zone)
        loop = vixie.Starts(zone, start - 6 * 3600, start + 20 * 3600 + 1)
        for text in [_vixie_text(rng) for _ in range(10)]:
            with suppress(BadInput):
                one_with_vixie(verdict, text, zone, start, start + 20 * 3600, loop)
    return verdict


def one_with_vixie(verdict: Verdict, text: str, zone: str, start: int, end: int, loop: vixie.Starts) -> None:
    """Compare one expression over one range of time."""
    x, entry = parse_cron(text), vixie.Entry.read(text)
    theirs = Counter(second for second in loop.of(entry) if start < second <= end)
    mine = list(ours(x, zone, start, end))
    verdict.cases += 1
    verdict.fires += len(mine)
    if any(times > 1 for times in theirs.values()):
        verdict.explained["several wall times in one gap are one fire; Vixie starts the job once for each"] += 1
    names = {_vixie_rule(x, zone, second) for second in set(mine) ^ set(theirs)}
    if None in names or mine != sorted(set(mine)):
        verdict.unexplained.append(f"{text} in {zone} from {start}: {sorted(set(mine) ^ set(theirs))[:3]}")
    verdict.explained.update(filter(None, names))


def _vixie_text(rng: Random) -> str:
    while NOT_VIXIE.search(text := unix_text(rng, seconds=False)):
        pass
    return text


def _vixie_rule(x: CronExpression, zone: str, second: int) -> str | None:
    for at, old, new in near(zone, second):
        if x.wild and second == at and (at + new) % 60:
            return "a wild expression does not fire in a minute whose beginning was jumped over; Vixie looks at minutes"
        if not x.wild and new - old < -LONG and at <= second < at + old - new:
            return "a fixed wall time fires once, also in an overlap of more than three hours; Vixie's loop starts anew"
    return None


# --- cronsim -------------------------------------------------------------------------------------------------------


class Stuck(Exception):
    """cronsim did not end its search."""


class Bounded(CronSim):
    """Return whether cronsim loops forever: it does so at some changes that are not on a whole hour."""

    left = 20_000

    def tick(self, seconds: int = 1) -> None:
        self.left -= 1
        if self.left < 0:
            raise Stuck
        super().tick(seconds)


def compare_with_cronsim(cases: int, seed: int, zones: Sequence[str]) -> Verdict:
    """Compare six fires in a row after each start, in all zones."""
    rng, verdict = Random(seed), Verdict()
    while verdict.cases < cases:
        zone = rng.choice(zones)
        text, start = unix_text(rng), start_near_a_change(rng, zone)
        with suppress(
            BadInput, CronSimError
        ):  # each refuses some that the other takes: W, names before L, 1/2 weekdays
            _one_with_cronsim(verdict, text, zone, start)
    return verdict


def _one_with_cronsim(verdict: Verdict, text: str, zone: str, start: int) -> None:
    x, theirs = parse_cron(text), Bounded(text, datetime.fromtimestamp(start, load_zone(zone)))
    verdict.cases += 1
    at = start * SECOND
    for _ in range(6):
        at = next_after(x, zone, at)
        try:
            other = int(next(theirs).timestamp())
        except Stuck:
            other = None
        if at // SECOND == other:
            verdict.fires += 1
            continue
        first = at // SECOND if other is None else min(at // SECOND, other)
        rule = _cronsim_rule(x, zone, first, text, stuck=other is None)
        if rule is None:
            verdict.unexplained.append(f"{text} in {zone} from {start}: {at // SECOND}, cronsim {other}")
        else:
            verdict.explained[rule] += 1
        return


def _cronsim_rule(x: CronExpression, zone: str, second: int, text: str, *, stuck: bool) -> str | None:
    if ONE_VALUE.search(text):
        return "3-3/5 is 3; cronsim reads it as 3/5"
    around = near(zone, second)
    if any((new - old) % 3600 or (at + old) % 3600 for at, old, new in around):
        return "a change by, or at, a part of an hour, where cronsim " + ("does not answer" if stuck else "errs")
    if not x.wild and any(new - old >= LONG for _, old, new in around):
        return "a gap of three hours and more is skipped; cronsim fires at its end"
    if not x.wild and len(text.split()) == 6 and around:
        return (
            "a fixed expression with seconds fires once in an overlap and at the end of a gap; cronsim's are all wild"
        )
    if x.wild and any(new > old and (at + old) % 86_400 == 0 for at, old, new in around):
        return "a wild expression does not fire at a midnight that was jumped over; cronsim does"
    return None


# --- quartz --------------------------------------------------------------------------------------------------------


def compare_quartz(cases: int, seed: int, zones: Sequence[str]) -> Verdict:
    """Compare quartz expressions with brute force, over hours for dense ones and years for rare ones."""
    rng, verdict = Random(seed), Verdict()
    while verdict.cases < cases:
        zone, text = rng.choice(zones), quartz_text(rng)
        with suppress(BadInput):
            x = parse_cron(text, "quartz")
            brute, start = quartz.Quartz(text), start_near_a_change(rng, zone)
            length = min(6 * 86_400, max(3 * 3600, 86_400 * 200 // len(brute.times)))
            if len(brute.times) < 3:
                length = 400 * 86_400
            end = min(start + length, YEAR_2038 - 400_000)
            mine = list(ours(x, zone, start, end))
            verdict.cases += 1
            verdict.fires += len(mine)
            if mine != quartz.fires(brute, zone, start, end):
                verdict.unexplained.append(f"{text} in {zone} from {start} to {end}")
    return verdict
