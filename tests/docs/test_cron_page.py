"""The expressions in docs/cron.md have the described meaning."""

import re
from pathlib import Path

import pytest

from horae.model.triggers.cron.lint import lint
from horae.model.triggers.cron.parse import parse_cron
from horae.model.triggers.cron.words.calendar import cron_in_words

PAGE = (Path(__file__).parents[2] / "docs" / "cron.md").read_text()
ROW = re.compile(r"^\| `([^`]+)` \| (.+) \|$", re.MULTILINE)


def rows() -> list[tuple[str, str, str]]:
    unix, quartz = PAGE.split("## The quartz dialect")
    return [(dialect, *row) for dialect, part in (("unix", unix), ("quartz", quartz)) for row in ROW.findall(part)]


@pytest.mark.parametrize(("dialect", "expression", "words"), rows())
def test_an_expression_matches_its_description(dialect, expression, words):
    assert cron_in_words(parse_cron(expression, dialect)) == words


def test_the_page_shows_both_dialects():
    assert {dialect for dialect, _, _ in rows()} == {"unix", "quartz"}


@pytest.mark.parametrize("expression", ["*/90 * * * *", "* 9 * * *", "*/7 * * * *", "0 0 31 * *"])
def test_expressions_that_the_page_warns_of_get_a_warning(expression):
    assert f"`{expression}`" in PAGE
    assert lint(parse_cron(expression))
