"""Figures: medians, percentiles, and how they are written."""

import pytest

from horae.bench.command import Steps
from horae.bench.results import figure, median, percentile


def test_the_median_is_the_middle():
    assert median([3, 1, 2]) == 2
    assert median([4, 1, 3, 2]) == 2.5
    assert median([7]) == 7


@pytest.mark.parametrize(("share", "value"), [(0.5, 50), (0.9, 90), (0.99, 99), (1.0, 100), (0.0, 1)])
def test_a_percentile_is_a_value_that_occurred(share, value):
    assert percentile(range(100, 0, -1), share) == value


@pytest.mark.parametrize(("value", "text"), [(61347.9, "61,348"), (100, "100"), (0.2987, "0.299"), (24.61, "24.6")])
def test_a_figure_has_the_digits_that_count(value, text):
    assert figure(value) == text


def test_progress_is_silent_when_nobody_watches(capsys):
    with Steps(2) as steps:
        steps.begin("one")
        steps.done()

    assert capsys.readouterr() == ("", "")
