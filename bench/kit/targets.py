"""Targets of Horae on two cores. A figure without an entry has no target.

Keys are (bench, case, metric); a case on a store is written once, with `*` for the store's name.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class Target(Struct, frozen=True):
    """A bound, and the size of run for which it is valid."""

    bound: float
    is_least: bool
    size: Mapping[str, int] = {}  # settings that must be at least as large

    def reached(self, value: float) -> bool:
        return value >= self.bound if self.is_least else value < self.bound

    def tried(self, settings: Mapping[str, Any]) -> bool:
        return all(settings.get(name, 0) >= least for name, least in self.size.items())


def least(bound: float, **size: int) -> Target:
    return Target(bound, True, size)


def under(bound: float, **size: int) -> Target:
    return Target(bound, False, size)


FIRING = (
    *(f"steady {rate}/s" for rate in (100, 5_000, 10_000, 20_000)),
    *(f"herd, {what}" for what in ("separate jobs", "one job", "2 servers", "3 servers")),
    "a server killed",
)
FAIRNESS = (
    "equal durations, parcels of 10",
    "equal durations, parcels of 1,000",
    "durations 100 times apart, parcels of 1,000",
)
COSTING = ("priority", "deadline", "shortest", "fair", "fair, priority within", "fifo, a label needed")
KEYED = ("a limit by key, parcels of 500", "a limit by key, parcels of one")
PAGES = (
    *("overview", "overview of a day", "overview of a week", "jobs", "jobs with statistics", "jobs by search"),
    *("jobs with statistics, further pages", "jobs by search, none", "jobs by prefix", "jobs by tag", "jobs by queue"),
    *("jobs by state", "statistics of a job", "days of a job", "grid of a job", "grid of a workflow", "executions"),
    *("executions, further pages", "executions that failed", "executions of a job"),
)
QUEUED = (100_000, 1_000_000, 5_000_000)
TARGETS: Mapping[tuple[str, str, str], Target] = {
    ("throughput", "* drain", "executions"): least(60_000, executions=50_000),
    ("throughput", "* whole life", "executions"): least(45_000, executions=50_000),
    ("throughput", "postgresql parcels of one", "executions"): least(15_000, executions=10_000, clients=64),
    ("submit", "* bulk", "submissions"): least(150_000, executions=100_000),
    ("submit", "* single", "submissions"): least(5_000, executions=10_000, clients=64),
    ("latency", "* idle pick-up", "p50"): under(3, samples=100),
    ("latency", "* idle pick-up", "p99"): under(10, samples=100),
    ("latency", "* half load pick-up", "p99"): under(50, samples=100),
    ("sustain", "* all it takes", "executions"): least(60_000, seconds=60),
    ("sustain", "* all it takes", "steadiness of the rate"): least(0.8, seconds=60),
    ("growth", "* history", "ratio"): least(0.8, history=10_000_000),
    ("growth", "* queued", "ratio"): least(0.8, queued=5_000_000),
    ("reads", "* reads", "reads"): least(3_000, clients=64, drain=20_000, history=10_000_000),
    ("reads", "* reads", "p99"): under(100, clients=64, drain=20_000, history=10_000_000),
    ("reads", "* two servers", "stale reads"): under(1),
    **{("api", f"postgresql {page}", "p99"): under(100, jobs=100_000, history=10_000_000) for page in PAGES},
    ("sessions", "* idle", "server processor"): under(15, sessions=1_000),
    ("sessions", "* trickle", "server processor"): under(40, sessions=1_000, rate=100),
    ("sessions", "* a server killed", "reconnected within"): under(10, sessions=3_000, servers=3),
    ("sessions", "* a server killed", "lost"): under(1),
    ("sessions", "* a server killed", "run twice"): under(1),
    ("concurrency", "* async", "worker memory"): under(500, executions=10_000),
    ("concurrency", "* async", "largest gap between heartbeats"): under(7.5, executions=10_000),
    ("concurrency", "* command", "largest gap between heartbeats"): under(7.5, executions=1_000, workers=10),
    **{("policies", f"fair: {case}", "Jain index"): least(0.98, seconds=40) for case in FAIRNESS},
    ("policies", "fair: a light tenant", "p99 of its wait"): under(170),
    ("policies", "priority: a stream of level 9", "overtaken past the bound"): under(1),
    ("policies", "deadline: a feasible set", "deadlines missed"): under(1),
    **{("policies", f"* {case}", "ratio to fifo"): least(0.9, executions=20_000) for case in COSTING},
    **{("policies", f"* {case}", "ratio to fifo"): least(0.6, executions=20_000) for case in KEYED},
    **{("claims", f"* {lanes:,} lanes", "ratio"): least(0.7, executions=5_000) for lanes in (10, 100, 1_000)},
    **{("claims", f"* {queued:,} queued", "ratio"): least(0.7, executions=5_000) for queued in QUEUED},
    ("timers", "* start", "first fire"): under(5, triggers=1_000_000),
    ("timers", "* start", "server memory"): under(300, triggers=1_000_000),
    ("timers", "postgresql steady 100/s", "lag p99"): under(30, triggers=10_000_000, seconds=60),
    ("timers", "postgresql steady 5000/s", "lag p50"): under(50, triggers=10_000_000, seconds=60),
    ("timers", "postgresql steady 5000/s", "lag p99"): under(250, triggers=10_000_000, seconds=60),
    ("timers", "postgresql steady 20000/s", "lag p99"): under(1_000, triggers=10_000_000, seconds=60),
    ("timers", "sqlite steady 10000/s", "lag p99"): under(1_000, triggers=1_000_000, seconds=60),
    ("timers", "postgresql herd, separate jobs", "fires"): least(25_000, herd=200_000),
    ("timers", "postgresql herd, one job", "fires"): least(40_000, herd=200_000),
    ("timers", "* herd, separate jobs", "API p99"): under(500, herd=200_000),
    ("timers", "* herd, one job", "API p99"): under(500, herd=200_000),
    ("timers", "* herd, 2 servers", "fires"): least(25_000, herd=200_000),
    ("timers", "* herd, 3 servers", "fires"): least(25_000, herd=200_000),
    ("timers", "* a server killed", "longest gap"): under(2, seconds=10),
    **{("timers", f"* {case}", metric): under(1) for case in FIRING for metric in ("not fired", "fired twice")},
    ("timers", "next() one after another", "cost"): under(10),
    ("timers", "next() of triggers alike", "cost"): under(10),
    ("workflows", "* chain", "hop p50"): under(4, chain=100),
    ("workflows", "* fan by foreach", "took"): under(1, fan=1_000),
    ("workflows", "* fan of steps", "took"): under(1, fan=998),
    ("workflows", "* diamonds", "steps"): least(3_000, diamonds=100),
    ("workflows", "* foreach", "steps"): least(20_000, foreach=10_000),
    ("workflows", "* durable", "remembered steps"): least(2_000, remembered=2_000),
    ("logs", "* at a rate", "lines"): least(20_000, rate=20_000, seconds=10),
    ("logs", "* at a rate", "lost"): under(1),
    ("logs", "* all it takes", "lost"): under(1),
    ("logs", "* all it takes", "worker memory"): under(300),
    ("events", "* coalesced", "listeners' processor"): under(20, listeners=200, rate=1_000),
    ("events", "* coalesced", "listeners' memory"): under(100, listeners=200, rate=1_000),
    ("disk", "* parcels of one", "overhead"): under(800, executions=5_000),
    ("disk", "* parcels of 500", "overhead"): under(150, executions=50_000),
    ("start", "horae up", "first execution finished"): under(1.5),
    ("idle", "horae up", "processor"): under(1),
    ("idle", "horae up", "memory"): under(150),
}


def target_of(bench: str, case: str, metric: str) -> Target | None:
    """Return the target of a figure, if there is one."""
    anywhere = f"* {case.partition(' ')[2]}"
    return TARGETS.get((bench, case, metric)) or TARGETS.get((bench, anywhere, metric))
