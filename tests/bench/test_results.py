"""Figures: medians, percentiles, targets, and their text."""

import pytest

from bench import BENCHES
from bench.kit.command import Steps
from bench.kit.results import Result, figure, judged, measured, median, percentile, verdict
from bench.kit.targets import TARGETS


def test_the_median_is_the_middle():
    assert median([3, 1, 2]) == 2
    assert median([4, 1, 3, 2]) == 2.5
    assert median([7]) == 7


@pytest.mark.parametrize(("share", "value"), [(0.5, 50), (0.9, 90), (0.99, 99), (1.0, 100), (0.0, 1)])
def test_a_percentile_is_a_value_that_occurred(share, value):
    assert percentile(range(100, 0, -1), share) == value


@pytest.mark.parametrize(("value", "text"), [(61347.9, "61,348"), (100, "100"), (0.2987, "0.299"), (24.61, "24.6")])
def test_a_figure_has_significant_digits(value, text):
    assert figure(value) == text


def test_the_median_of_several_runs_is_shown_with_them():
    result = measured("submit", "sqlite bulk", "submissions", "1/s", [3.0, 1.0, 2.0], {"store": "SQLite"})

    assert result.value == 2
    assert result.settings == {"store": "SQLite", "runs": [3.0, 1.0, 2.0]}


def result(case: str, metric: str, value: float, **settings: int) -> Result:
    bench = "concurrency" if "memory" in metric else "latency"
    return judged(Result(bench=bench, case=case, metric=metric, value=value, unit="", settings=settings))


def test_a_target_is_reached_missed_or_not_tried():
    assert verdict(result("sqlite idle pick-up", "p50", 2.9, samples=100)) == "under 3 at samples 100: reached"
    assert verdict(result("postgresql idle pick-up", "p50", 3.0, samples=200)) == "under 3 at samples 100: missed"
    assert verdict(result("sqlite idle pick-up", "p90", 2.9)) == ""
    small = result("sqlite async", "worker memory", 80, executions=1_000)
    assert verdict(small) == "under 500 at executions 10,000: not tried"
    assert small.reached is None
    assert result("sqlite async", "worker memory", 80, executions=10_000).reached is True


def test_every_target_is_of_a_bench():
    assert {bench for bench, _, _ in TARGETS} <= BENCHES.keys()


def test_progress_is_silent_without_a_terminal(capsys):
    with Steps(2) as steps:
        steps.begin("one")
        steps.done()

    assert capsys.readouterr() == ("", "")
