"""The page of policies, generated from the output of the commands only."""

from bench.kit.results import Result, machine, measured
from bench.pages.document import Run
from bench.pages.policy_page import page


def result(bench: str, case: str, metric: str, value: float, **settings: object) -> Result:
    return measured(bench, case, metric, "", [value], {**settings, **machine()})


def run(*results: Result) -> Run:
    return Run(command="python -m bench x", at="now", commit="abc", machine=machine(), results=list(results))


def test_rates_and_ratios_are_side_by_side_and_missed_targets_are_marked():
    text = page(
        [
            run(
                result("policies", "fair: equal durations, parcels of 10", "Jain index", 0.97, about="x", seconds=60),
                result("policies", "sqlite fifo", "executions", 1000, executions=50_000),
                result("policies", "sqlite fair", "executions", 950, executions=50_000),
                result("policies", "sqlite fair", "ratio to fifo", 0.95, executions=50_000),
            ),
            run(result("claims", "sqlite 10 lanes", "executions claimed and reported", 9.0, executions=20_000)),
        ]
    )

    assert "| 0.9700 | at least 0.98 at seconds 40: **missed** | x |" in text
    assert "| sqlite fifo | 1,000 | 1 |  |" in text
    assert "| sqlite fair | 950 | 0.95 | at least 0.9 at executions 20,000: reached |" in text
    assert "| sqlite 10 lanes | 9 | 1 |  |" in text


def test_a_failed_command_is_reported():
    failed = Run(command="python -m bench claims", at="now", commit="abc", machine=machine(), failure="out of disk")

    assert "did not end well: out of disk" in page([failed])
