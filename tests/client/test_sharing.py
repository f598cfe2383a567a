"""Options of deduplication, debounce, batches and caches in the SDK and the command line."""

from datetime import timedelta

import pytest

from horae.cli.fields import value_of
from horae.client.app import App
from horae.model.definitions.job import JOB


def test_rules_are_sent_in_the_api_s_form():
    app = App()

    @app.job(unique={"key": "${params.table}", "for": timedelta(hours=1)}, cache={"ttl": "1h"})
    def reindex(table: str) -> None: ...

    @app.job(unique=True)
    def single() -> None: ...

    @app.job(debounce={"wait": timedelta(seconds=5), "keep": "first"})
    def render(page: int) -> None: ...

    defined = reindex.definition()
    assert (defined["unique"], defined["cache"]) == ({"key": "${params.table}", "for": 3600.0}, {"ttl": "1h"})
    assert single.definition()["unique"] is True
    assert render.definition()["debounce"] == {"wait": 5.0, "keep": "first"}


def test_the_params_of_a_batch_are_those_of_an_item():
    app = App()

    @app.job(batch={"size": 10})
    def index(items: list[dict]) -> None: ...

    assert index._call((), {"tenant": "acme", "document": 17, "priority": 6}) == (
        {"tenant": "acme", "document": 17},
        {"priority": 6},
    )


@pytest.mark.parametrize(
    ("option", "text", "rule"),
    [
        ("unique", "${params.a}", {"key": "${params.a}"}),
        ("unique", "true", True),
        ("unique", '{"for": "24h"}', {"for": "24h"}),
        ("debounce", "5s", {"wait": "5s"}),
        ("batch", "100", {"size": 100}),
        ("cache", "1h", {"ttl": "1h"}),
    ],
)
def test_an_option_stands_for_the_field_that_matters_most(option, text, rule):
    assert value_of(JOB[option], text) == rule
